"""A literal argument, as the frontend sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from openvino import OVAny
from openvino.frontend.pytorch.py_pytorch_frontend import _FrontEndPytorchDecoder as Decoder

from .base import BaseDecoder
from .literals import argument_type, constant_of

if TYPE_CHECKING:
    from .graph import GraphDecoder


class InlinedDecoder(BaseDecoder):
    """A literal argument: a number, a list of numbers, or a list that mixes numbers and nodes."""

    def __init__(self, value: Any, graph: GraphDecoder) -> None:
        super().__init__()
        self.value, self.graph = value, graph
        self._items: Sequence[Any] = ()
        if isinstance(value, tuple | list) and any(isinstance(item, torch.fx.Node) for item in value):
            self._items = value

    def get_op_type(self) -> str:
        return "inlined.list.default" if self._items else "inlined.constant.default"

    def inputs(self) -> list[int]:
        return [self.graph.ids[a] if isinstance(a, torch.fx.Node) else 0 for a in self._items]

    def outputs(self) -> list[int]:
        return [0]

    def is_input_inlined(self, index: int) -> bool:
        return not isinstance(self._items[index], torch.fx.Node)

    def get_inlined_input_decoder(self, index: int) -> Decoder:
        decoder = InlinedDecoder(self._items[index], self.graph)
        self.children.append(decoder)
        return decoder

    def input_is_none(self, index: int) -> bool:
        return index < len(self._items) and self._items[index] is None

    def get_input_type(self, index: int) -> OVAny:
        return argument_type(self._items[index])

    def output_list_size(self) -> int:
        return 0

    def visit_subgraph(self, visit: Callable[[Decoder], None]) -> None:
        return None

    def as_constant(self) -> list[Any]:
        made = constant_of(self.value)
        return [] if made is None else list(made.outputs())
