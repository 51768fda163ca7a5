"""`backends.onnx.fixes.residual_in_float32`: a float16 model whose residual stream passes 65504 stays finite."""

import copy

import pytest
import torch

pytest.importorskip("onnxruntime")

from models import decoder
from transformers_exporters import OnnxConfig, OnnxExporter

IDENTIFIER = "backends.onnx.fixes.residual_in_float32"


def _large_residual(name: str) -> torch.nn.Module:
    """A model whose stream grows past 65504, while every weight and every branch fits float16."""
    model = decoder(name, tie_word_embeddings=False)
    with torch.no_grad():
        for layer in model.model.layers:
            for norm in ("post_attention_layernorm", "post_feedforward_layernorm"):
                getattr(layer, norm).weight.add_(9000)
    return model


def _run(disabled: tuple[str, ...] = ()) -> tuple[torch.Tensor, torch.Tensor, dict[str, int]]:
    model = _large_residual("gemma3")
    half = copy.deepcopy(model).half()
    ids = torch.randint(3, 100, (2, 9), generator=torch.Generator().manual_seed(1))
    config = OnnxConfig(dynamic=True, disabled_workarounds=disabled)
    exported = OnnxExporter().export_model(half, {"input_ids": ids, "use_cache": False}, config=config)
    more = torch.randint(3, 100, (3, 12), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        wanted = model(input_ids=more, use_cache=False, output_hidden_states=True)
    assert max(float(state.abs().max()) for state in wanted.hidden_states) > 65504
    got = exported(input_ids=more, use_cache=False).logits
    assert got.dtype == torch.float16
    return got.float(), wanted.logits, dict(exported.manifest.workarounds["model"])


@pytest.mark.xfail(strict=True, reason="the residual Add overflows")
def test_needed() -> None:
    got, _, _ = _run((IDENTIFIER,))
    assert torch.isfinite(got).all()


def test_works() -> None:
    got, wanted, fired = _run()
    assert fired[IDENTIFIER] == 8
    assert torch.isfinite(got).all()
    assert float((got - wanted).abs().max() / wanted.abs().max()) < 1e-2
