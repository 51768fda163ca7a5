"""`backends.onnx.fixes.residual_in_float32`: a float16 model whose residual stream passes 65504 stays finite.

Run by onnx's reference evaluator, which computes float16 in float16; ONNX Runtime's CPU kernels compute it in float32 and
would hide the overflow that a GPU shows.
"""

import copy
from pathlib import Path

import pytest
import torch

onnx = pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator  # noqa: E402

from models import decoder, ids  # noqa: E402
from transformers_exporters import OnnxConfig, OnnxExporter  # noqa: E402

IDENTIFIER = "backends.onnx.fixes.residual_in_float32"


def _large_residual() -> torch.nn.Module:
    """A model whose stream grows past 65504, while every weight and every branch fits float16."""
    model = decoder("gemma3", tie_word_embeddings=False, num_hidden_layers=2, layer_types=["full_attention"] * 2)
    with torch.no_grad():
        for layer in model.model.layers:
            for norm in ("post_attention_layernorm", "post_feedforward_layernorm"):
                getattr(layer, norm).weight.add_(20_000)
    return model


def _run(directory: Path, disabled: tuple[str, ...] = ()) -> tuple[torch.Tensor, torch.Tensor, dict[str, int]]:
    model = _large_residual()
    half = copy.deepcopy(model).half()
    config = OnnxConfig(dynamic=True, disabled_workarounds=disabled)
    exported = OnnxExporter().export_model(half, {"input_ids": ids(2, 9), "use_cache": False}, config=config)
    exported.save_pretrained(directory)
    more = ids(3, 12, seed=1)
    with torch.no_grad():
        wanted = model(input_ids=more, use_cache=False, output_hidden_states=True)
    if max(float(state.abs().max()) for state in wanted.hidden_states) <= 65504:
        raise RuntimeError("the model of this test does not overflow")
    graph = onnx.load(directory / "model.onnx")
    (got,) = ReferenceEvaluator(graph).run(None, {"input_ids": more.numpy()})
    assert got.dtype == "float16"
    torch.testing.assert_close(
        exported(input_ids=more, use_cache=False).logits.float(), wanted.logits, atol=1e-2, rtol=1e-2
    )
    return torch.from_numpy(got).float(), wanted.logits, dict(exported.manifest.workarounds["model"])


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the residual Add overflows")
def test_needed(tmp_path: Path) -> None:
    got, _, _ = _run(tmp_path / "artifact", (IDENTIFIER,))
    assert torch.isfinite(got).all()


def test_works(tmp_path: Path) -> None:
    got, wanted, fired = _run(tmp_path / "artifact")
    assert fired[IDENTIFIER] == 4
    assert torch.isfinite(got).all()
    assert float((got - wanted).abs().max() / wanted.abs().max()) < 1e-2
