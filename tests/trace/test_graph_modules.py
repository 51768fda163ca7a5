"""A traced program as a graph module and back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

from transformers_exporters import DynamoConfig
from transformers_exporters.doors import find_backend
from transformers_exporters.errors import TraceError, UnsupportedModelError
from transformers_exporters.pipeline import trace_part
from transformers_exporters.prepare.record import Part
from transformers_exporters.trace.graph_modules import as_graph_module, from_graph_module
from transformers_exporters.trace.record import Traced


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.register_buffer("shift", torch.randn(6), persistent=False)

    def forward(self, x: torch.Tensor, flag: bool = True, extra: Any = None) -> dict[str, torch.Tensor]:
        y = self.layer(x) + self.shift
        return {"y": y, "total": y.sum(1)}


def traced(model: nn.Module) -> Traced:
    part = Part("model", model.eval(), {"x": torch.randn(2, 3, 6), "flag": True})
    return trace_part(part, find_backend("dynamo"), DynamoConfig(dynamic=True))


def run(component: Traced, x: torch.Tensor) -> dict[str, torch.Tensor]:
    result: dict[str, torch.Tensor] = component.program.module(check_guards=False)(x=x, flag=True)
    return result


def test_there_and_back_changes_nothing() -> None:
    model = Network()
    before = traced(model)
    after = from_graph_module(before, as_graph_module(before))
    assert after.spec == before.spec
    assert set(after.weights) == set(before.weights) == {"layer.weight", "layer.bias", "shift"}
    assert after.program.state_dict["layer.weight"] is before.program.state_dict["layer.weight"]
    for shape in ((2, 3, 6), (5, 1, 6)):
        x = torch.randn(shape)
        for name, value in run(after, x).items():
            torch.testing.assert_close(value, model(x)[name])


def test_what_a_tool_adds_becomes_part_of_the_program() -> None:
    class Doubles(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("factor", torch.full((6,), 2.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    model = Network()
    before = traced(model)
    module = as_graph_module(before)
    module.add_module("doubles", Doubles())
    (linear,) = module.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)
    with module.graph.inserting_after(linear):
        doubled = module.graph.call_module("doubles", (linear,))
    linear.replace_all_uses_with(doubled, delete_user_cb=lambda user: user is not doubled)
    after = from_graph_module(before, module)
    assert torch.equal(after.program.state_dict["doubles.factor"], torch.full((6,), 2.0))
    x = torch.randn(4, 7, 6)
    torch.testing.assert_close(run(after, x)["y"], 2 * model.layer(x) + model.shift)
    torch.testing.assert_close(run(before, x)["y"], model(x)["y"])


def test_refusals() -> None:
    before = traced(Network())
    module = as_graph_module(before)
    output = module.graph.output_node()
    output.args = (output.args[0][:1],)  # type: ignore[index]
    with pytest.raises(TraceError, match="returns 1 values in the place of 2"):
        from_graph_module(before, module)
    reference = before.weights["layer.weight"]
    empty = dataclasses.replace(reference, tensor=torch.empty(6, 6, device="meta"))  # type: ignore[call-arg]
    with pytest.raises(UnsupportedModelError, match="load the checkpoint"):
        as_graph_module(dataclasses.replace(before, weights={**before.weights, "layer.weight": empty}))
