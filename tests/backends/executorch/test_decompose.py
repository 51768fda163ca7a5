"""Operators are taken apart one by one, each kind of call once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim, ExportedProgram

from transformers_exporters.backends.executorch.edge import _decompositions
from transformers_exporters.repair import decompose as room

_aten = torch.ops.aten


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(8) for _ in range(3))
        self.linears = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x float32 [batch, sequence, 8]."""
        for norm, linear in zip(self.norms, self.linears, strict=True):
            first, second = torch.nn.functional.silu(linear(norm(x))).chunk(2, -1)
            x = torch.nn.functional.normalize(torch.cat([second, first], -1), dim=-1) + x.mT.contiguous().mT
        return x, x.sum((1, 2)).reshape(-1, 1)


class Writes(torch.nn.Module):
    def forward(self, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        """Writes into its input."""
        cache.add_(x)
        return torch.nn.functional.normalize(cache, dim=-1)


def decompose(program: ExportedProgram, whole: tuple[Any, ...]) -> ExportedProgram:
    return room.decompose(program, _decompositions(whole), whole)


def traced(module: torch.nn.Module, *inputs: torch.Tensor, dynamic: bool = True) -> ExportedProgram:
    shapes = tuple({0: Dim.AUTO, 1: Dim.AUTO} if dynamic else None for _ in inputs)
    return torch.export.export(module, inputs, dynamic_shapes=shapes)


def ops(program: ExportedProgram) -> set[Any]:
    return {node.target for node in program.graph.nodes if node.op == "call_function"}


def test_it_computes_what_run_decompositions_computes() -> None:
    torch.manual_seed(0)
    module, x = Layers().double().eval(), torch.randn(2, 5, 8, dtype=torch.float64)
    whole = (_aten.linear.default,)
    ours, theirs = decompose(traced(module, x), whole), traced(module, x).run_decompositions(_decompositions(whole))
    assert _aten.linear.default in ops(ours)
    assert not ops(ours) - ops(theirs) - {_aten.view.default}
    ours.validate()
    for shape in ((2, 5, 8), (3, 9, 8)):
        x = torch.randn(shape, dtype=torch.float64)  # float32 shows the order of sums
        for got, expected in zip(ours.module()(x), module(x), strict=True):
            torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_equal_layers_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    original = room._traced

    def counted(node: Any, *rest: Any) -> Any:
        calls.append(node.target)
        return original(node, *rest)

    monkeypatch.setattr(room, "_traced", counted)
    decompose(traced(Layers().eval(), torch.randn(2, 5, 8)), (_aten.linear.default,))
    assert calls.count(_aten.silu.default) <= 1
    assert calls.count(_aten.layer_norm.default) == 1


def test_a_graph_that_writes_into_an_input_still_says_so() -> None:
    program = decompose(traced(Writes(), torch.ones(2, 3), torch.zeros(2, 3), dynamic=False), ())
    assert program.graph_signature.user_inputs_to_mutate
    cache = torch.zeros(2, 3)
    program.module()(torch.ones(2, 3), cache)
    assert cache.sum() == 6


class WritesIntoItsOwn(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x float32 [batch, sequence, 8], mask bool [batch, sequence]."""
        made = torch.nn.functional.normalize(x, dim=-1)
        made[:, 1:, :4] *= 2
        made.masked_fill_(mask[..., None], -1.0)
        first, second = made.chunk(2, -1)
        second.copy_(first + 1)
        return made, made.flatten(1).add_(1.0)


def test_writing_into_what_the_graph_made_needs_no_trace(monkeypatch: pytest.MonkeyPatch, export: Any) -> None:
    """One `masked_fill_` had Mask2Former's 1606 nodes traced again, which took minutes."""
    monkeypatch.setattr(ExportedProgram, "run_decompositions", lambda *_: pytest.fail("the graph is traced again"))
    exported = export(WritesIntoItsOwn(), {"x": torch.randn(2, 5, 8), "mask": torch.rand(2, 5) > 0.5})
    for shape in ((2, 5), (3, 9), (1, 2)):
        assert exported.error(x=torch.randn(*shape, 8), mask=torch.rand(*shape) > 0.5) < 1e-5


class WritesThroughAView(torch.nn.Module):
    def forward(self, cache: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """cache float32 [2, 6, 3], x float32 [2, 3]: a step's row goes into a place of the input."""
        cache.transpose(0, 1)[2].copy_(x)
        return cache.sum()


def test_writing_into_a_view_of_an_input_still_says_so() -> None:
    program = decompose(traced(WritesThroughAView(), torch.zeros(2, 6, 3), torch.ones(2, 3), dynamic=False), ())
    assert program.graph_signature.user_inputs_to_mutate


class Items(torch.nn.Module):
    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """x [rows, 8], ends int64 [2]: the rows before the first end, added to those before the second."""
        first, second = ends[0].item(), ends[1].item()
        torch._check(first >= 0)
        torch._check(second >= 0)
        return x[:first].sum(0) + 2 * x[:second].sum(0)


def test_two_numbers_of_one_kind_stay_two(export: Any) -> None:
    exported = export(Items(), {"x": torch.randn(7, 8), "ends": torch.tensor([2, 5])})
    for rows, ends in ((7, [2, 5]), (7, [6, 0]), (9, [4, 20])):
        assert exported.error(x=torch.randn(rows, 8), ends=torch.tensor(ends)) < 1e-5


class Mapped(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x float32 [b, t, 4]"""
        return torch.vmap(lambda rows: rows.cumsum(0) @ rows.mT)(x)


def test_a_vmap(export: Any) -> None:
    exported = export(Mapped(), {"x": torch.randn(2, 5, 4)})
    assert exported.error(x=torch.randn(2, 7, 4)) < 1e-4
