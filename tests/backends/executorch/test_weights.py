"""Weights that a graph computes from others are computed once, at export."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

import transformers_exporters as te
from transformers_exporters.backends.executorch.weights import compute_weights


def traced(module: nn.Module, *inputs: Any) -> torch.export.ExportedProgram:
    return torch.export.export(module.eval(), inputs)


def held(program: torch.export.ExportedProgram) -> int:
    return sum(1 for spec in program.graph_signature.input_specs if "USER" not in spec.kind.name)


def test_a_convolution_with_weight_norm_is_delegated(export: Any) -> None:
    """In ExecuTorch's own kernel it takes some fifty times as long."""

    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = weight_norm(nn.Conv1d(4, 8, 3, padding=1))

        def forward(self, input_values: torch.Tensor) -> torch.Tensor:
            return self.conv(input_values)

    torch.manual_seed(0)
    exported = export(Normed(), {"input_values": torch.randn(2, 4, 20)})
    assert exported.error(input_values=torch.randn(3, 4, 31)) < 1e-5
    assert not [op for op in exported.notes["undelegated_ops"] if "conv" in op or "norm" in op]


def test_results_are_those_of_the_weights() -> None:
    class Doubled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))
            self.scale = nn.Buffer(torch.randn(3, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ (self.weight * self.scale).t()

    model, x = Doubled(), torch.randn(5, 4)
    program = traced(model, x)
    assert compute_weights(program) == 1
    assert [
        node.target for node in program.graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor)
    ] == []
    torch.testing.assert_close(program.module()(x), model(x))


def test_a_weight_that_is_read_elsewhere_is_not_there_twice() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(7, 4))

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.table[ids] @ self.table.t()

    program = traced(Tied(), torch.tensor([1, 2]))
    assert compute_weights(program) == 0
    assert held(program) == 1


def test_what_grows_or_changes_stays_computed() -> None:
    class Kept(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.row = nn.Parameter(torch.randn(1, 4))
            self.small = nn.Parameter(torch.randn(4).to(torch.float16))
            self.count = nn.Buffer(torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            noise = torch.rand_like(self.row)
            return x + self.row.repeat(3, 1) + self.small.float() + self.count * 2 + noise

    program = traced(Kept(), torch.randn(3, 4))
    assert compute_weights(program) == 0


class Stacked(torch.nn.Module):
    """Experts in one weight, each of which a part of the graph takes for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = torch.nn.Parameter(torch.randn(3, 8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [batch, 8] -> [batch, 8]."""
        for expert in range(3):
            x = torch.nn.functional.linear(x, self.experts[expert]).relu() + 1
        return x


def test_slices_of_one_weight_keep_their_values() -> None:
    model = Stacked().eval()
    exported = te.ExecutorchExporter().export_model(model, {"x": torch.randn(2, 8)}, te.ExecutorchConfig(dynamic=True))
    x = torch.randn(3, 8)
    torch.testing.assert_close(exported(x=x), model(x), atol=1e-4, rtol=1e-4)
