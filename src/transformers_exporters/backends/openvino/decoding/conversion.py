"""What the decoders of one conversion share: weights, our own translations, and what went wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from openvino import Output, op
from openvino import opset15 as ops
from openvino.frontend.pytorch import ConversionExtension

from ..call import Call, Translation
from .names import lookup_name

#: Makes the constant of a weight: fully qualified name -> node.
WeightLoader = Callable[[str], op.Constant]

#: The op type under which the frontend hands every node with a translation of ours back to us.
TRANSLATED = "exported.translated"


class Conversion:
    """What the decoders of one conversion share.

    Attributes:
        load: Makes the constant of a weight, by its fully qualified name.
        failed: Nodes that the frontend could not convert, in order.
        errors: What a translation of ours raised.
    """

    def __init__(self, load: WeightLoader, table: Mapping[str, Translation]) -> None:
        self.load = load
        self.failed: list[torch.fx.Node] = []
        self.errors: dict[torch.fx.Node, Exception] = {}
        self._table = table
        self._nodes: list[torch.fx.Node] = []
        self._inputs: list[tuple[torch.fx.Node, ...]] = []
        self._results: dict[torch.fx.Node, Sequence[Output]] = {}

    def translates(self, node: torch.fx.Node) -> bool:
        """Whether a node is translated here: by the table, or because it picks from such a node's results."""
        if node.target is operator.getitem:
            return isinstance(node.args[0], torch.fx.Node) and self.translates(node.args[0])
        return lookup_name(node) in self._table

    def register(self, node: torch.fx.Node) -> int:
        """The number under which `translate` finds a node again."""
        self._nodes.append(node)
        return len(self._nodes) - 1

    def extension(self) -> ConversionExtension:
        """The frontend's hook for all translated nodes."""
        return ConversionExtension(TRANSLATED, self._translate)

    def _translate(self, context: Any) -> list[Output]:
        node = self._nodes[context.get_values_from_const_input(0)]
        if node.target is operator.getitem:
            return [self._results[node.args[0]][node.args[1]]]
        inputs = {source: context.get_input(i + 1) for i, source in enumerate(node.all_input_nodes)}
        try:
            made = self._table[lookup_name(node)](Call(node, inputs))
        except Exception as error:  # shown to the frontend as a failed op; `lower` tells the user
            self.errors[node] = error
            self.failed.append(node)
            raise
        taken = list(inputs.values())
        if isinstance(made, Output):
            return [_other(made, taken)]
        self._results[node] = [_other(output, taken) for output in made]
        return [self._results[node][0]]


def _other(made: Output, taken: Sequence[Output]) -> Output:
    """A translation's result, as another tensor if it is an input: the frontend numbers tensors, each once."""
    return ops.convert(made, made.get_element_type()).output(0) if made in taken else made
