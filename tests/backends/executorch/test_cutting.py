"""Delegated parts are cut out of a graph in place."""

from __future__ import annotations

import operator

import torch
from torch.fx import Graph, GraphModule, Node

from transformers_exporters.backends.executorch.cutting import readers_behind_calls


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
