"""Questions about involved sizes are answered from the trace."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from transformers_exporters.backends.executorch.guards import INVOLVED, quick_guards
from transformers_exporters.trace.dims import shape_env_of


class Plus(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [rows, 3]."""
        return x + 1


def test_an_involved_size_is_not_proved_and_adds_no_guard() -> None:
    program = torch.export.export(Plus(), (torch.ones(5, 3),), dynamic_shapes=({0: Dim.AUTO},))
    shape_env = shape_env_of(program)
    rows = next(node for node in program.graph.nodes if node.op == "placeholder").meta["val"].shape[0]
    involved = rows
    for step in range(2, 2 + INVOLVED):
        involved = involved + rows // step
    assert involved.node.expr.count_ops() >= INVOLVED
    expected = bool(involved.node.expr.xreplace({rows.node.expr: 5}) > 7)
    before = len(shape_env.guards)
    with quick_guards(shape_env):
        assert bool(involved > 7) is expected
        assert len(shape_env.guards) == before
    assert not {"evaluate_expr", "_maybe_evaluate_static", "simplify"} & set(vars(shape_env))


def test_a_graph_without_symbols_needs_nothing() -> None:
    program = torch.export.export(Plus(), (torch.ones(5, 3),))
    with quick_guards(shape_env_of(program)):
        pass


class Count(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [rows]: the places of what is not zero, [count, 1]."""
        return torch.nonzero(x)


def test_a_size_that_is_data_is_taken_for_a_usual_one() -> None:
    program = torch.export.export(Count(), (torch.ones(5),))
    output = next(node for node in program.graph.nodes if node.op == "output").args[0][0]
    count = output.meta["val"].shape[0]
    with pytest.raises(GuardOnDataDependentSymNode):
        bool(count**2 < count)
    with quick_guards(count.node.shape_env):
        assert not bool(count**2 < count)  # which of two strides is larger
        assert not bool(count // 8 + 1 < 0)
        assert not bool(38 - 2 * count < 1)  # what is left of 38 is no longer there at 64
        with pytest.raises(GuardOnDataDependentSymNode):
            bool(count % 2 == 0)
