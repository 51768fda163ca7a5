"""What lowering and saving write: small graph files, each weight once, names, every opset."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch

from models import left_padded
from transformers_exporters import ExportedModel, OnnxConfig, OnnxExporter
from transformers_exporters.backends.onnx.lower import lower, save
from transformers_exporters.backends.onnx.names import name_values
from transformers_exporters.backends.onnx.run import open_session
from transformers_exporters.doors import find_backend
from transformers_exporters.errors import LoweringError
from transformers_exporters.pipeline import trace_part
from transformers_exporters.prepare.record import Part
from transformers_exporters.trace.record import Traced


@pytest.fixture(scope="module")
def traced(llama: Any) -> Traced:
    inputs = {**{name: value[:2] for name, value in left_padded(3, 11, (4, 1)).items()}, "use_cache": False}
    return trace_part(Part("model", llama, inputs), find_backend("onnx"), OnnxConfig(dynamic=True))


def test_two_components_weigh_as_much_as_the_weights(growing_artifact: Path, llama: Any) -> None:
    weights = sum(p.numel() * p.element_size() for p in llama.parameters())
    graphs = sum(file.stat().st_size for file in growing_artifact.glob("*.onnx"))
    stored = sum(file.stat().st_size for file in growing_artifact.glob("*.safetensors"))
    assert stored < 1.03 * weights + 16_384  # the header of a model of 0.3 MB
    assert graphs < 2 * 40_000


def test_no_trace_of_the_conversion_is_saved(growing_artifact: Path) -> None:
    for file in growing_artifact.glob("*.onnx"):
        assert b"pkg.torch" not in file.read_bytes()
        assert b"modeling_llama" not in file.read_bytes()


def test_lowering_copies_no_weight(traced: Traced, llama: Any) -> None:
    program = lower(traced, OnnxConfig(dynamic=True)).program
    own = {parameter.data_ptr() for parameter in llama.parameters() if parameter.nbytes > 1024}
    held = [
        value.const_value.raw.data_ptr()
        for value in program.model.graph.initializers.values()
        if isinstance(getattr(value.const_value, "raw", None), torch.Tensor) and value.const_value.nbytes > 1024
    ]
    assert len(held) == len(own)
    assert set(held) == own


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23, 24, 25])
def test_every_opset_loads_and_computes_the_same(traced: Traced, llama: Any, opset: int, tmp_path: Path) -> None:
    lowered = lower(traced, OnnxConfig(dynamic=True, opset_version=opset))
    files = save([lowered], tmp_path)
    assert onnx.load(tmp_path / "model.onnx", load_external_data=False).opset_import[0].version == opset
    session = open_session(tmp_path, dataclasses.replace(lowered.spec, files=files["model"]), threads=1)
    assert [port.name for port in session.engine.get_inputs()] == ["input_ids", "attention_mask"]
    inputs = left_padded(3, 11, (4, 1))
    got = session.run({name: value.numpy() for name, value in inputs.items()})["logits"]
    with torch.no_grad():
        np.testing.assert_allclose(got, llama(**inputs).logits.numpy(), atol=1e-5)


def test_a_growing_cache_goes_from_step_to_step_without_a_copy(growing_artifact: Path, llama: Any) -> None:
    """What `decode` returned is fed to the next step from ONNX Runtime's own memory."""
    exported = ExportedModel.from_pretrained(growing_artifact, threads=1)
    session = exported["decode"].session
    run, fed, made = session.run, [], []

    def watched(feeds: dict[str, Any]) -> dict[str, Any]:
        fed.append(feeds["cache.layers.1.values"].ctypes.data)
        outputs = run(feeds)
        made.append(next(value.ctypes.data for name, value in outputs.items() if name.endswith("layers.1.values")))
        return outputs

    session.run = watched  # type: ignore[method-assign]
    greedy = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}
    got, wanted = (
        exported.generate(**left_padded(3, 11, (4, 1)), **greedy),
        llama.generate(**left_padded(3, 11, (4, 1)), **greedy),
    )
    torch.testing.assert_close(got, wanted, atol=0, rtol=0)
    assert len(fed) == 7
    assert fed[1:] == made[:-1]


def test_slices_from_the_end_of_an_axis_that_was_short(tmp_path: Path) -> None:
    """A guard with a `max` of the traced size fixed the axis in the converter, in silence."""

    class Last(torch.nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return rows[-3:-1] * 2

    exported = OnnxExporter().export_model(Last().eval(), {"rows": torch.randn(2, 6)}, OnnxConfig(dynamic=True))
    for count in (2, 3, 4, 7):
        rows = torch.randn(count, 6)
        torch.testing.assert_close(exported(rows=rows), Last()(rows))


def test_an_axis_that_the_converter_fixes_is_an_error(traced: Traced) -> None:
    model = lower(traced, OnnxConfig(dynamic=True)).program.model
    model.graph.inputs[0].shape = ir.Shape([2, "sequence"])
    with pytest.raises(LoweringError, match=r"axis 0 of 'input_ids' \('batch'\) at 2"):
        name_values(model, traced.spec)
