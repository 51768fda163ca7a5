"""One node of a graph, as the frontend sees it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from openvino import OVAny, PartialShape
from openvino.frontend.pytorch.py_pytorch_frontend import _FrontEndPytorchDecoder as Decoder
from openvino.frontend.pytorch.py_pytorch_frontend import _Type as DecoderType

from ..dtypes import OV_TYPES
from .base import BaseDecoder
from .conversion import TRANSLATED
from .inlined import InlinedDecoder
from .literals import argument_type, constant_of, element_type, rank_only
from .names import lookup_name

if TYPE_CHECKING:
    from .graph import GraphDecoder


class NodeDecoder(BaseDecoder):
    """One node: an op, or a weight (shown as `get_attr`)."""

    def __init__(self, node: torch.fx.Node, graph: GraphDecoder) -> None:
        super().__init__()
        self.node, self.graph = node, graph
        self.subgraphs: list[torch.fx.GraphModule] = []
        self._arguments: list[Any] = []
        self._translated = node.op == "call_function" and graph.conversion.translates(node)
        if self._translated:
            self._arguments = [graph.conversion.register(node), *node.all_input_nodes]
        elif node.op == "call_function":
            for argument in node.args:
                self._add(argument)

    def _add(self, argument: Any) -> None:
        if isinstance(argument, torch.fx.Node) and argument.op == "get_attr":
            found = attribute(self.graph.module, argument.target)
            if isinstance(found, torch.fx.GraphModule):
                self.subgraphs.append(found)
                return
        if isinstance(self.node.target, torch._ops.HigherOrderOperator) and isinstance(argument, tuple | list):
            self._arguments.extend(argument)
            return
        self._arguments.append(argument)

    def _argument(self, index: int) -> Any:
        return self._arguments[index] if index < len(self._arguments) else None

    def inputs(self) -> list[int]:
        return [self.graph.ids[a] if isinstance(a, torch.fx.Node) else 0 for a in self._arguments]

    def outputs(self) -> list[int]:
        return [self.graph.ids[self.node]]

    def is_input_inlined(self, index: int) -> bool:
        return not isinstance(self._arguments[index], torch.fx.Node)

    def get_inlined_input_decoder(self, index: int) -> Decoder:
        decoder = InlinedDecoder(self._arguments[index], self.graph)
        self.children.append(decoder)
        return decoder

    def input_is_none(self, index: int) -> bool:
        return self._argument(index) is None

    def get_input_type(self, index: int) -> OVAny:
        return argument_type(self._argument(index))

    def get_input_shape(self, index: int) -> PartialShape:
        return rank_only(self._argument(index))

    def get_output_shape(self, index: int) -> PartialShape:
        return rank_only(self.node)

    def get_output_type(self, index: int) -> OVAny:
        return element_type(self.node)

    def get_input_strides(self, index: int) -> list[int]:
        argument = self._argument(index)
        value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
        if not isinstance(value, torch.Tensor) or any(not isinstance(s, int) for s in value.stride()):
            return []
        return list(value.stride())

    def get_op_type(self) -> str:
        if self.node.op in ("get_attr", "placeholder"):
            return "get_attr"
        return TRANSLATED if self._translated else lookup_name(self.node)

    def get_attribute(self, name: str) -> OVAny:
        if name not in self.node.kwargs:
            return OVAny(None)
        value = self.node.kwargs[name]
        if isinstance(value, torch.dtype):
            return OVAny(OV_TYPES[value])
        if isinstance(value, torch.device):
            return OVAny(value.type)
        if isinstance(value, str):
            return OVAny(value)
        made = constant_of(value)
        return OVAny(DecoderType.PyNone()) if made is None else OVAny(made.output(0))

    def get_named_input(self, name: str) -> int:
        value = self.node.kwargs.get(name)
        if isinstance(value, torch.fx.Node):
            return self.graph.ids[value]
        raise RuntimeError(f"{name} is not computed by a node")

    def get_subgraphs(self) -> list[Any]:
        return self.subgraphs

    def get_subgraph_decoder(self, index: int) -> Decoder:
        decoder = self.graph.of_branch(self.subgraphs[index])
        self.children.append(decoder)
        return decoder

    def visit_subgraph(self, visit: Callable[[Decoder], None]) -> None:
        return None

    def output_list_size(self) -> int:
        items = [user.args[1] for user in self.node.users if user.target is operator.getitem]
        return max((int(i) for i in items if isinstance(i, int)), default=-1) + 1

    def as_constant(self) -> list[Any]:
        name = self.node.name if self.node.op == "placeholder" else str(self.node.target)
        return list(self.graph.conversion.load(self.graph.weights.get(name, name)).outputs())

    def mark_node(self, node: Any) -> Any:
        kind = node.get_type_name()
        if self.node.op == "call_function":
            node.set_friendly_name(f"{self.node.name}/{kind}")
        if "FrameworkNode" in kind and self.node not in self.graph.conversion.errors:
            self.graph.conversion.failed.append(self.node)
        return node


def attribute(module: torch.nn.Module, target: Any) -> Any:
    """What a dotted path leads to; None where it leads nowhere."""
    found: Any = module
    for part in str(target).split("."):
        found = getattr(found, part, None)
    return found
