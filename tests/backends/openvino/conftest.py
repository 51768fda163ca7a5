import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("openvino")
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def llama() -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="session")
def bert() -> torch.nn.Module:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    return BertModel(config).eval()


@pytest.fixture
def check(tmp_path: Any) -> Callable[..., Any]:
    """Export a module, save it, open it with the run door and compare it with eager on every given input.

    `config` are fields of `OpenVINOConfig`; default: dynamic.
    """

    def run(module: torch.nn.Module, *inputs: dict[str, Any], atol: float = 1e-5, **config: Any) -> Any:
        from transformers_exporters import OpenVINOConfig, OpenVINOExporter
        from transformers_exporters.hf.exported import ExportedModel

        module = module.eval()
        asked = OpenVINOConfig(**(config or {"dynamic": True}))
        exported = OpenVINOExporter().export_model(module, copy.deepcopy(inputs[0]), asked)
        exported.save_pretrained(tmp_path / "artifact")
        component = next(iter(ExportedModel.from_pretrained(tmp_path / "artifact").components.values()))
        for kwargs in inputs:
            with torch.no_grad():
                wanted = torch.utils._pytree.tree_leaves(module(**copy.deepcopy(kwargs)))
            feeds = component.feeds(kwargs)
            got = component.run(feeds)
            assert len(got) == len(wanted)
            for tensor, reference in zip(got.values(), wanted, strict=True):
                assert tensor.dtype == reference.dtype
                torch.testing.assert_close(tensor, reference, atol=atol, rtol=1e-4)
        return component

    return run
