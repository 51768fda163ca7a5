"""What a saved program holds."""

from __future__ import annotations

from pathlib import Path

import sympy
import torch
from torch.export import Dim
from torch.utils._sympy.value_ranges import ValueRanges

import transformers_exporters as te
from transformers_exporters.artifact.spec import ComponentSpec
from transformers_exporters.backends.contract import Lowered
from transformers_exporters.backends.dynamo.lower import save


class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_bounds_of_fractions_are_not_saved(tmp_path: Path) -> None:
    """`json.dumps` knows no sympy number, and that is what torch makes of 3.75."""
    program = torch.export.export(Doubled(), (torch.ones(2, 3),), dynamic_shapes=({0: Dim.AUTO},))
    program._range_constraints[sympy.Symbol("zuf0")] = ValueRanges(sympy.Float(3.75), sympy.Float(3.75))
    bounds = dict(program.range_constraints)
    spec = ComponentSpec(name="model", inputs=(), outputs=())
    save([Lowered(spec=spec, program=program, weights={})], tmp_path)
    assert program.range_constraints == bounds, "the caller's program is as it was"
    loaded = torch.export.load(tmp_path / "model.pt2")
    assert len(loaded.range_constraints) == len(bounds) - 1
    torch.testing.assert_close(loaded.module()(torch.ones(5, 3)), torch.full((5, 3), 2.0))


def test_a_saved_graph_has_no_lines_of_model_source_and_the_program_in_memory_keeps_them(tmp_path: Path) -> None:
    exported = te.DynamoExporter().export_model(Doubled(), {"x": torch.ones(2, 3)}, te.DynamoConfig(dynamic=True))
    exported.save_pretrained(tmp_path / "artifact")

    def traced(program: torch.export.ExportedProgram) -> bool:
        return any("stack_trace" in node.meta for node in program.graph.nodes)

    assert traced(exported["model"].program)
    assert not traced(torch.export.load(tmp_path / "artifact" / "model.pt2"))


class Named(torch.nn.Module):
    def forward(self, x: torch.Tensor, mode: str = "mean") -> dict[str, object]:
        return {"y": x * 2, "mode": mode, "count": 3}


def test_a_string_among_the_outputs(tmp_path: Path) -> None:
    exported = te.DynamoExporter().export_model(Named(), {"x": torch.ones(2, 3)}, te.DynamoConfig(dynamic=True))
    exported.save_pretrained(tmp_path / "artifact")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "artifact", trust_remote_code=True)
    x = torch.randn(4, 3)
    outputs = loaded(x=x)
    torch.testing.assert_close(outputs.pop("y"), x * 2)
    assert outputs == {"mode": "mean", "count": 3}


class Columns(torch.nn.Module):
    def forward(self, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return values[:, mask]


def test_a_size_that_a_repair_made_is_saved_with_its_bounds(tmp_path: Path) -> None:
    """The number of true values of a mask among other indices; torch cannot load a size without bounds."""
    inputs = {"values": torch.randn(3, 5), "mask": torch.tensor([True, False, True, True, False])}
    exported = te.DynamoExporter().export_model(Columns(), inputs, te.DynamoConfig(dynamic=True))
    exported.save_pretrained(tmp_path / "artifact")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "artifact", trust_remote_code=True)
    for count in (0, 1, 7):
        values, mask = torch.randn(2, 7), torch.arange(7) < count
        torch.testing.assert_close(loaded(values=values, mask=mask), values[:, mask])
