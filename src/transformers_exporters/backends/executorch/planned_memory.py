"""How much memory a graph's intermediate values take at given bounds of its axes, before anything is lowered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils._sympy.value_ranges import ValueRanges

from .layout import is_never_empty
from .upper_sizes import largest_size

#: The bytes of one element, then the sizes of the axes.
Shape = tuple[sympy.Expr, ...]


class Memory:
    """The values of a graph and when they are alive. Views count as copies: few of them are free in ExecuTorch.

    Args:
        program: The graph.
        counts: Sizes that are data, in those that bound them.
    """

    def __init__(
        self, program: ExportedProgram, counts: Mapping[sympy.Symbol, sympy.Expr] = MappingProxyType({})
    ) -> None:
        nodes = [node for node in program.graph.nodes if node.op != "output"]
        fixed = of_weights(program)
        computed = [node.op == "call_function" and node not in fixed for node in nodes]
        made = [_shapes(n) if own or _is_dynamic(n) else [] for n, own in zip(nodes, computed, strict=True)]
        self._made = [[tuple(size.xreplace(counts) for size in shape) for shape in shapes] for shapes in made]
        self._known: dict[tuple[Any, ...], int] = {}
        last = {source: at for at, node in enumerate(nodes) for source in node.all_input_nodes}
        for source in program.graph.output_node().all_input_nodes:
            last[source] = len(nodes)
        self._freed: list[list[int]] = [[] for _ in range(len(nodes) + 1)]
        for at, node in enumerate(nodes):
            self._freed[last.get(node, at)].append(at)

    def needed(self, bounds: Mapping[sympy.Symbol, int]) -> int:
        """The most bytes that are alive at once, with every axis at its bound."""
        sizes = [sum(self.bytes(shape, bounds) for shape in shapes) for shapes in self._made]
        alive = most = 0
        for size, freed in zip(sizes, self._freed, strict=False):
            alive += size
            most = max(most, alive)
            alive -= sum(sizes[at] for at in freed)
        return most

    def largest(self, bounds: Mapping[sympy.Symbol, int]) -> Shape:
        """The shape that takes most bytes and has a symbol in it; empty if there is none."""
        shapes = {shape for made in self._made for shape in made if any(size.free_symbols for size in shape)}
        return max(sorted(shapes, key=str), key=lambda shape: self.bytes(shape, bounds), default=())

    def bytes(self, shape: Shape, bounds: Mapping[sympy.Symbol, int]) -> int:
        """What a shape takes."""
        return math.prod(self._largest_size(size, bounds) for size in shape)

    def _largest_size(self, size: sympy.Expr, bounds: Mapping[sympy.Symbol, int]) -> int:
        own = {symbol: bounds[symbol] for symbol in size.free_symbols if symbol in bounds}
        key = (size, *sorted(own.items(), key=str))
        if key not in self._known:
            ranges = {symbol: ValueRanges(sympy.Integer(0), sympy.Integer(bound)) for symbol, bound in own.items()}
            self._known[key] = largest_size(size, ranges) or 1
        return self._known[key]


def of_weights(program: ExportedProgram) -> set[Node]:
    """The nodes that compute with weights alone: a quantized model's float weights, which delegates take as they are.

    Where none does, they take memory whatever the bounds are.
    """
    inputs = set(program.graph_signature.user_inputs)
    found: set[Node] = set()
    for node in program.graph.nodes:
        weight = node.op == "get_attr" or (node.op == "placeholder" and node.name not in inputs)
        sources = node.all_input_nodes
        if weight or (node.op == "call_function" and sources and found.issuperset(sources)):
            found.add(node)
    return found


def _is_dynamic(node: Node) -> bool:
    """Whether a node is an input that has memory of its own; weights have no symbols."""
    return node.op == "placeholder" and any(size.free_symbols for shape in _shapes(node) for size in shape)


def _shapes(node: Node) -> list[Shape]:
    values = [value for value in pytree.tree_leaves(node.meta.get("val")) if isinstance(value, torch.Tensor)]
    shapes = [(sympy.Integer(value.element_size()), *map(_expression, value.shape)) for value in values]
    return shapes + _scores(node, shapes)


def _scores(node: Node, shapes: list[Shape]) -> list[Shape]:
    """The scores of an attention that may be empty: XNNPACK does not take it, and two of them are alive at once."""
    if node.target is not torch.ops.aten.scaled_dot_product_attention.default or is_never_empty(node.meta["val"]):
        return []
    key: Any = node.args[1]
    return [(*shapes[0][:-1], _expression(key.meta["val"].shape[-2]))] * 2


def _expression(size: Any) -> sympy.Expr:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
