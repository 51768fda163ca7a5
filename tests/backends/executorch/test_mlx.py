"""The MLX target, as far as the installed wheel goes: only the one for macOS carries its serializer."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

from transformers_exporters.errors import MissingBackendError, UnsupportedModelError


def _mlx_is_complete() -> bool:
    try:
        importlib.import_module("executorch.backends.mlx")
    except ImportError:
        return False
    return True


def model() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2
    )
    return LlamaForCausalLM(config).eval()


@pytest.mark.skipif(_mlx_is_complete(), reason="this executorch has MLX")
def test_a_wheel_without_mlx_is_said_so(export: Any) -> None:
    with pytest.raises(MissingBackendError, match="macOS"):
        export(model(), {"input_ids": torch.ones(2, 5, dtype=torch.int64), "use_cache": False}, backend="mlx")


@pytest.mark.skipif(not _mlx_is_complete(), reason="the Linux wheel of executorch lacks MLX's serializer")
def test_mlx_lowers_ahead_of_time(export: Any) -> None:
    exported = export(model(), {"input_ids": torch.ones(2, 5, dtype=torch.int64), "use_cache": False}, backend="mlx")
    assert exported.notes["delegated"] > 0


def test_mlx_refuses_a_static_cache(export: Any) -> None:
    llama = model()
    cache = StaticCache(config=llama.config, max_cache_len=8)
    with torch.no_grad():
        llama(input_ids=torch.ones(1, 2, dtype=torch.int64), past_key_values=cache)
    inputs = {"input_ids": torch.ones(1, 2, dtype=torch.int64), "past_key_values": cache}
    with pytest.raises(UnsupportedModelError, match="StaticCache"):
        export(llama, inputs, backend="mlx", dynamic=False)
