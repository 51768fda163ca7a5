"""Shows a traced program to OpenVINO's PyTorch frontend, node by node, with its weights as references.

OpenVINO ships a decoder of its own (`openvino.frontend.pytorch.fx_decoder`). This one exists because that one looks every
node up in a list (quadratic in the graph's size), knows no element types (so that a Python number and a tensor promote
alike), unlifts the program first (which needs the values of all weights) and re-decomposes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from openvino import Output, OVAny, PartialShape, Shape, Type, op
from openvino import opset15 as ops
from openvino.frontend.pytorch import ConversionExtension
from openvino.frontend.pytorch.py_pytorch_frontend import _FrontEndPytorchDecoder as Decoder
from openvino.frontend.pytorch.py_pytorch_frontend import _Type as DecoderType

from .call import Call, Translation
from .dtypes import OV_TYPES

#: Makes the constant of a weight: fully qualified name -> node.
WeightLoader = Callable[[str], op.Constant]

#: The op type under which the frontend hands every node with a translation of ours back to us.
_TRANSLATED = "exported.translated"

# Ops that the frontend knows under another op's name, with the same arguments.
_SYNONYMS = {
    "aten.reshape.default": "aten.view.default",
    "aten.__and__.Tensor": "aten.bitwise_and.Tensor",
    "aten.__or__.Tensor": "aten.bitwise_or.Tensor",
    "aten.__xor__.Tensor": "aten.bitwise_xor.Tensor",
    "aten.clip.default": "aten.clamp.default",
    "aten.concat.default": "aten.cat.default",
    "aten.concatenate.default": "aten.cat.default",
    "aten.absolute.default": "aten.abs.default",
    "aten.true_divide.Tensor": "aten.div.Tensor",
    "aten.multiply.Tensor": "aten.mul.Tensor",
    "aten.subtract.Tensor": "aten.sub.Tensor",
    "aten.swapaxes.default": "aten.transpose.int",
    "aten.swapdims.default": "aten.transpose.int",
    "aten.special_expm1.default": "aten.expm1.default",
    "aten.greater.Tensor": "aten.gt.Tensor",
    "aten.less.Tensor": "aten.lt.Tensor",
}


class _Base(Decoder):
    """What the frontend asks of every decoder; the answers that are the same for all of them."""

    def __init__(self) -> None:
        Decoder.__init__(self)
        self.children: list[Decoder] = []  # the frontend keeps no reference of its own

    def decoder_type_name(self) -> str:
        return "fx"

    def get_schema(self) -> str:
        return "NONE"

    def get_subgraphs(self) -> list[Any]:
        return []

    def get_subgraph_size(self) -> int:
        return len(self.get_subgraphs())

    def as_string(self) -> None:
        return None

    def may_produce_alias(self, in_index: int, out_index: int) -> bool:
        return False

    def get_rt_info(self) -> dict[str, Any]:
        return {}

    def get_input_debug_name(self, index: int) -> str:
        return f"input{index}"

    def get_input_signature_name(self, index: int) -> str:
        return f"input{index}"

    def get_output_debug_name(self, index: int) -> str:
        return f"output{index}"

    def get_input_shape(self, index: int) -> PartialShape:
        return PartialShape.dynamic()

    def get_output_shape(self, index: int) -> PartialShape:
        return PartialShape.dynamic()

    def get_input_type(self, index: int) -> OVAny:
        return OVAny(Type.dynamic)

    def get_output_type(self, index: int) -> OVAny:
        return OVAny(Type.dynamic)

    def get_input_strides(self, index: int) -> list[int]:
        return []

    def is_input_inlined(self, index: int) -> bool:
        return False

    def input_is_none(self, index: int) -> bool:
        return False

    def num_of_outputs(self) -> int:
        return len(self.outputs())

    def output(self, index: int) -> int:
        return int(self.outputs()[index])

    def mark_node(self, node: Any) -> Any:
        return node


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
        return ConversionExtension(_TRANSLATED, self._translate)

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


class GraphDecoder(_Base):
    """A whole graph: inputs, then every node in order, then the outputs.

    Args:
        graph: The graph, of a program or of a branch of a control-flow op.
        module: Where `get_attr` nodes find their subgraphs.
        weights: Placeholder or attribute name -> fully qualified name of a weight.
        conversion: Shared state.
        outputs: The nodes to return; default: all of the graph's outputs.
    """

    def __init__(
        self,
        graph: torch.fx.Graph,
        module: torch.nn.Module,
        weights: Mapping[str, str],
        conversion: Conversion,
        outputs: Sequence[torch.fx.Node] | None = None,
    ) -> None:
        super().__init__()
        self.module, self.weights, self.conversion = module, weights, conversion
        self.ids = {node: i for i, node in enumerate(graph.nodes)}
        self._parameters = [
            n for n in graph.nodes if n.op == "placeholder" and n.name not in weights and _is_dynamic_value(n)
        ]
        returned = graph.output_node().args[0]
        listed = returned if isinstance(returned, list | tuple) else (returned,)
        self._outputs = list(outputs) if outputs is not None else [n for n in listed if isinstance(n, torch.fx.Node)]

    def inputs(self) -> list[int]:
        return [self.ids[node] for node in self._parameters]

    def outputs(self) -> list[int]:
        return [self.ids[node] for node in self._outputs]

    def get_input_debug_name(self, index: int) -> str:
        return str(self._parameters[index].name)

    def get_input_signature_name(self, index: int) -> str:
        return str(self._parameters[index].name)

    def get_input_shape(self, index: int) -> PartialShape:
        value = self._parameters[index].meta.get("val")
        if not isinstance(value, torch.Tensor):
            return PartialShape([])
        return PartialShape([size if isinstance(size, int) else -1 for size in value.shape])

    def get_input_type(self, index: int) -> OVAny:
        return _element_type(self._parameters[index])

    def get_op_type(self) -> str:
        return "graph"

    def output_list_size(self) -> int:
        return 0

    def visit_subgraph(self, visit: Callable[[Decoder], None]) -> None:
        for node in self.ids:
            if node.op == "output" or (node.op == "placeholder" and node.name not in self.weights):
                continue
            if node.op == "get_attr" and isinstance(_attribute(self.module, node.target), torch.fx.GraphModule):
                continue
            if node.users:
                decoder = NodeDecoder(node, self)
                self.children.append(decoder)
                visit(decoder)


class NodeDecoder(_Base):
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
            attribute = _attribute(self.graph.module, argument.target)
            if isinstance(attribute, torch.fx.GraphModule):
                self.subgraphs.append(attribute)
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
        return _argument_type(self._argument(index))

    def get_input_shape(self, index: int) -> PartialShape:
        return _rank_only(self._argument(index))

    def get_output_shape(self, index: int) -> PartialShape:
        return _rank_only(self.node)

    def get_output_type(self, index: int) -> OVAny:
        return _element_type(self.node)

    def get_input_strides(self, index: int) -> list[int]:
        argument = self._argument(index)
        value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
        if not isinstance(value, torch.Tensor) or any(not isinstance(s, int) for s in value.stride()):
            return []
        return list(value.stride())

    def get_op_type(self) -> str:
        if self.node.op in ("get_attr", "placeholder"):
            return "get_attr"
        return _TRANSLATED if self._translated else lookup_name(self.node)

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
        made = _constant(value)
        return OVAny(DecoderType.PyNone()) if made is None else OVAny(made.output(0))

    def get_named_input(self, name: str) -> int:
        value = self.node.kwargs.get(name)
        if isinstance(value, torch.fx.Node):
            return self.graph.ids[value]
        raise RuntimeError(f"{name} is not computed by a node")

    def get_subgraphs(self) -> list[Any]:
        return self.subgraphs

    def get_subgraph_decoder(self, index: int) -> Decoder:
        branch = self.subgraphs[index]
        attributes = {n.name: str(n.target) for n in branch.graph.nodes if n.op == "get_attr"}
        decoder = GraphDecoder(branch.graph, branch, attributes, self.graph.conversion)
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


class InlinedDecoder(_Base):
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
        return _argument_type(self._items[index])

    def output_list_size(self) -> int:
        return 0

    def visit_subgraph(self, visit: Callable[[Decoder], None]) -> None:
        return None

    def as_constant(self) -> list[Any]:
        made = _constant(self.value)
        return [] if made is None else list(made.outputs())


def op_name(node: torch.fx.Node) -> str:
    """`aten.add.Tensor`, `<built-in function add>`, `torch.sym_max`."""
    if isinstance(node.target, FunctionType):
        return f"{node.target.__module__}.{node.target.__name__}"
    return str(node.target)


def lookup_name(node: torch.fx.Node) -> str:
    """The name of a node's translation: `complex.<op name>` where a complex tensor goes in or comes out.

    A complex tensor is a tensor of reals with a last axis of size 2, so a rule for real tensors would silently miscount
    its axes; the frontend must not find one.
    """
    touched = [node.meta.get("val"), *(source.meta.get("val") for source in node.all_input_nodes)]
    flat = [v for value in touched for v in (value if isinstance(value, list | tuple) else [value])]
    is_complex = any(isinstance(v, torch.Tensor) and v.is_complex() for v in flat)
    return f"complex.{op_name(node)}" if is_complex else _SYNONYMS.get(op_name(node), op_name(node))


def _constant(value: Any) -> op.Constant | None:
    if isinstance(value, bool):
        return op.Constant(Type.boolean, Shape([]), [value])
    if isinstance(value, int):
        return op.Constant(Type.i64, Shape([]), [value])
    if isinstance(value, float):
        return op.Constant(Type.f32, Shape([]), [value])
    if isinstance(value, str):
        return op.Constant(Type.u8, Shape([len(value.encode())]), list(value.encode()))
    if isinstance(value, torch.dtype):
        return None
    if isinstance(value, list | tuple):
        if not value:
            return op.Constant(Type.i32, Shape([0]), [])
        kind = Type.boolean if isinstance(value[0], bool) else Type.i64 if isinstance(value[0], int) else Type.f32
        return op.Constant(kind, Shape([len(value)]), list(value))
    return None


def _argument_type(argument: Any) -> OVAny:
    if isinstance(argument, torch.fx.Node):
        return _element_type(argument)
    if isinstance(argument, bool):
        return OVAny(DecoderType.PyScalar(OVAny(Type.boolean)))
    if isinstance(argument, int):
        return OVAny(DecoderType.PyScalar(OVAny(Type.i64)))
    if isinstance(argument, float):
        return OVAny(DecoderType.PyScalar(OVAny(Type.f32)))
    if isinstance(argument, list | tuple):
        return OVAny(DecoderType.List(_argument_type(argument[0]) if argument else OVAny(Type.i32)))
    return OVAny(Type.dynamic)


def _element_type(node: torch.fx.Node) -> OVAny:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return OVAny(OV_TYPES[value.dtype]) if value.dtype in OV_TYPES else OVAny(Type.dynamic)
    if isinstance(value, torch.SymBool | bool):
        return OVAny(DecoderType.PyScalar(OVAny(Type.boolean)))
    if isinstance(value, torch.SymInt | int):
        return OVAny(DecoderType.PyScalar(OVAny(Type.i64)))
    if isinstance(value, torch.SymFloat | float):
        return OVAny(DecoderType.PyScalar(OVAny(Type.f32)))
    return OVAny(Type.dynamic)


def _rank_only(argument: Any) -> PartialShape:
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
    return PartialShape([-1] * value.dim()) if isinstance(value, torch.Tensor) else PartialShape.dynamic()


def _is_dynamic_value(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool)


def _attribute(module: torch.nn.Module, target: Any) -> Any:
    found: Any = module
    for part in str(target).split("."):
        found = getattr(found, part, None)
    return found
