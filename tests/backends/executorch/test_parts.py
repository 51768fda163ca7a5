"""Parts of a graph that never wait for themselves."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from transformers_exporters.backends.executorch.xnnpack.parts import levels


def names(parts: list[list[Node]]) -> list[set[str]]:
    return [{node.name for node in part} for part in parts]


def call(graph: Graph, name: str, *sources: Node) -> Node:
    return graph.create_node("call_function", torch.add, sources, name=name)


def test_what_lies_behind_a_node_outside_is_a_part_of_its_own() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    a = call(graph, "a", x)
    outside = call(graph, "outside", a)
    b = call(graph, "b", a)
    c = call(graph, "c", outside, b)
    graph.output(c)
    assert names(levels(graph, [[a], [b], [c]])) == [{"a", "b"}, {"c"}]


def test_two_towers_that_meet_give_no_cycle() -> None:
    """CLIP: each tower has nodes outside, at different depths, and torch's partitioner left a cycle of three parts."""
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    a1 = call(graph, "a1", x)
    a2 = call(graph, "a2", call(graph, "out_a", a1))
    b1 = call(graph, "b1", y)
    b2 = call(graph, "b2", call(graph, "out_c", call(graph, "out_b", b1)), a1)
    met = call(graph, "met", a2, b2)
    graph.output(met)
    parts = levels(graph, [[node] for node in (a1, a2, b1, b2, met)])
    assert names(parts) == [{"a1", "b1"}, {"a2", "b2", "met"}]


def test_a_group_stays_together_and_takes_its_weight_along() -> None:
    graph = Graph()
    weight, x = graph.placeholder("weight"), graph.placeholder("x")
    turned = call(graph, "turned", weight)
    a = call(graph, "a", x)
    outside = call(graph, "outside", a)
    product = call(graph, "product", outside, turned)
    graph.output(product)
    assert names(levels(graph, [[a], [weight, turned, product]])) == [{"a"}, {"weight", "turned", "product"}]


def test_a_group_that_needs_its_own_result_through_a_node_outside_is_left_out() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    first = call(graph, "first", x)
    last = call(graph, "last", call(graph, "outside", first))
    other = call(graph, "other", x)
    graph.output((last, other))
    assert names(levels(graph, [[first, last], [other]])) == [{"other"}]


def test_what_comes_out_of_a_tuple_belongs_to_the_part_that_made_the_tuple() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    pair = call(graph, "pair", x)
    item = graph.create_node("call_function", operator.getitem, (pair, 0), name="item")
    graph.output(item)
    assert names(levels(graph, [[pair]])) == [{"pair", "item"}]


class SevenAxes(torch.nn.Module):
    """As the location-variable convolution of UnivNet: XNNPACK holds tensors of six axes."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """values float32 [batch, 64] -> [batch, 64]."""
        split = values.reshape(-1, 2, 2, 2, 2, 2, 2)
        return (split.permute(0, 2, 1, 6, 3, 4, 5) * split + 1).flatten(1).sigmoid()


def test_tensors_of_seven_axes(export: Any) -> None:
    exported = export(SevenAxes(), {"values": torch.randn(2, 64)})
    assert exported.error(values=torch.randn(5, 64)) < 1e-6
