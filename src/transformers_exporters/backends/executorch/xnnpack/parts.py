"""Gather the nodes that a delegate computes into few parts, none of which waits for itself.

A node's level is the number of times that the way to it leaves the delegate: nodes of one level never depend on each
other through a node outside, so each level is one part. Torch's own partitioners merge pairs of parts and search the
graph for a cycle each time; they take long, and still leave cycles between three parts (CLIP's two towers).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from torch.fx import Graph, Node


def levels(graph: Graph, groups: Sequence[Sequence[Node]]) -> list[list[Node]]:
    """The parts, first ones first, their nodes in the graph's order.

    Args:
        graph: The graph.
        groups: What the delegate can compute: each group as a whole or not at all. Its placeholders are its weights.
    """
    group_of = {node: i for i, group in enumerate(groups) for node in group if node.op == "call_function"}
    for node in graph.nodes:  # a value that comes out of a tuple belongs to the node that made the tuple
        if node.target is operator.getitem and node.args[0] in group_of:
            group_of[node] = group_of[node.args[0]]
    while True:
        level, late = _levels(graph, group_of)
        if not late:
            break
        # A group that needs its own result through a node outside of it cannot be one part.
        group_of = {node: i for node, i in group_of.items() if i not in late}
    weights = {node: i for i, group in enumerate(groups) for node in group if node.op == "placeholder" and i in level}
    group_of = weights | group_of
    parts: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node in group_of:
            parts.setdefault(level[group_of[node]], []).append(node)
    return [parts[i] for i in sorted(parts)]


def _levels(graph: Graph, group_of: dict[Node, int]) -> tuple[dict[int, int], set[int]]:
    """The level of each group, and groups whose level grows without end."""
    level: dict[int, int] = {}
    # A group's nodes may lie apart, so a level found late changes levels in between; each round settles one more.
    for _ in range(len(set(group_of.values())) + 2):
        before = dict(level)
        _raise_levels(graph.nodes, group_of, level)
        if level == before:
            return level, set()
    return level, {i for i in level if level[i] != before[i]}


def _raise_levels(nodes: Iterable[Node], group_of: dict[Node, int], level: dict[int, int]) -> None:
    outside: dict[Node, int] = {}  # parts that must be done before a node outside can run
    for node in nodes:
        needed = 0
        own = group_of.get(node)
        for source in node.all_input_nodes:
            if source not in group_of:
                needed = max(needed, outside.get(source, 0))
            elif own is None:
                needed = max(needed, level[group_of[source]] + 1)
            else:
                needed = max(needed, level[group_of[source]])
        if own is None:
            outside[node] = needed
        else:
            level[own] = max(level.get(own, 0), needed)
