"""Delegated parts are cut out of a graph in place."""

from __future__ import annotations

import operator

import torch
from torch.fx import Graph, GraphModule, Node

from transformers_exporters.backends.executorch.cutting import readers_behind_calls, weights_of_its_own


def call(graph: Graph, name: str, *sources: Node) -> Node:
    return graph.create_node("call_function", torch.add, sources, name=name)


def test_readers_move_behind_the_results_in_their_order() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    before = call(graph, "before", x)
    reader, other = call(graph, "reader", x), call(graph, "other", x)
    second = call(graph, "second", reader, other)
    part = graph.create_node("call_module", "part", (before,), name="part")
    result = graph.create_node("call_function", operator.getitem, (part, 0), name="result")
    late = call(graph, "late", result, second)
    graph.output(late)
    reader.args = (result,)
    module = GraphModule({"part": torch.nn.Identity()}, graph)
    assert readers_behind_calls(module) is module
    module.graph.lint()
    names = [node.name for node in module.graph.nodes]
    assert names == ["x", "before", "other", "part", "result", "reader", "second", "late", "output"]


def test_a_part_that_stands_before_another_moves_with_its_results() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    one = graph.create_node("call_module", "one", (x,), name="one")
    of_one = graph.create_node("call_function", operator.getitem, (one, 0), name="of_one")
    two = graph.create_node("call_module", "two", (x,), name="two")
    of_two = graph.create_node("call_function", operator.getitem, (two, 0), name="of_two")
    graph.output((of_one, of_two))
    one.args = (of_two,)
    module = GraphModule({"one": torch.nn.Identity(), "two": torch.nn.Identity()}, graph)
    readers_behind_calls(module)
    module.graph.lint()
    assert [node.name for node in module.graph.nodes] == ["x", "two", "of_two", "one", "of_one", "output"]


def test_a_weight_of_several_parts_is_one_tensor() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(7, 4))

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(self.table[ids] * 2, self.table) + self.table.sum()

    program = torch.export.export(Tied(), (torch.tensor([1, 2]),))
    weight, ids = program.graph.find_nodes(op="placeholder")
    weight.meta["delegation_tag"] = "tag0"
    product, total = (user for user in weight.users if "index" not in user.name)
    product.meta["delegation_tag"] = "tag0"
    total.meta["delegation_tag"] = "tag1"
    weights_of_its_own(program, "tag0")
    program.graph.lint()
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    placeholders = program.graph.find_nodes(op="placeholder")
    assert [node.name for node in placeholders] == list(specs)
    assert {specs[node.name].target for node in placeholders if node is not ids} == {"table"}
    assert list(weight.users) == [product]
    assert [n.meta.get("delegation_tag") for n in placeholders if n.target != weight.target and n is not ids] == [
        None,
        "tag1",
    ]
    assert list(program.state_dict) == ["table"]
    weights_of_its_own(program, "tag1")
    assert len(program.graph.find_nodes(op="placeholder")) == len(placeholders)
