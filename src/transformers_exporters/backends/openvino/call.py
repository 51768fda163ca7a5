"""One node of the traced graph as a translation sees it: arguments by name, tensors as OpenVINO outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from openvino import Output, Shape, Type, op
from openvino import opset15 as ops

from .dtypes import OV_TYPES

#: Builds the OpenVINO nodes of one traced node; several outputs for an op that returns several tensors.
Translation = Callable[["Call"], "Output | Sequence[Output]"]


class Call:
    """The arguments of a traced node.

    Args:
        node: The node.
        inputs: What the nodes it takes have become.
    """

    def __init__(self, node: torch.fx.Node, inputs: Mapping[torch.fx.Node, Output]) -> None:
        self.node = node
        self._inputs = inputs
        self._arguments = _bind(node)

    @property
    def names(self) -> list[str | int]:
        """The names of the arguments, in the schema's order."""
        return list(self._arguments)

    def __getitem__(self, name: str | int) -> Any:
        """An argument by its name in the op's schema (or by position for a Python function), tensors resolved."""
        return self._resolve(self._arguments[name])

    def traced(self, name: str | int) -> Any:
        """The fake tensor or symbolic number of an argument, as it was traced."""
        value = self._arguments[name]
        return value.meta["val"] if isinstance(value, torch.fx.Node) else value

    def traced_item(self, name: str | int, index: int) -> Any:
        """`traced`, of an item of a list argument."""
        value = self._arguments[name][index]
        return value.meta["val"] if isinstance(value, torch.fx.Node) else value

    def tensor(self, name: str | int, kind: Type | None = None) -> Output:
        """An argument as an OpenVINO output, cast to `kind`; a Python number becomes a constant."""
        value = self[name]
        if not isinstance(value, Output):
            return op.Constant(np.asarray(value)).output(0) if kind is None else constant(value, kind)
        return value if kind is None else cast(value, kind)

    @property
    def result(self) -> Any:
        """The fake tensor (or tuple of them) that the node was traced to return."""
        return self.node.meta["val"]

    @property
    def result_type(self) -> Type:
        """The OpenVINO type of the (first) tensor that the node returns."""
        value = self.result
        return OV_TYPES[(value[0] if isinstance(value, list | tuple) else value).dtype]

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return self._inputs[value]
        if isinstance(value, list | tuple):
            return [self._resolve(item) for item in value]
        return value


def constant(value: Any, kind: Type) -> Output:
    """A constant of an OpenVINO type from a number or a (nested) list of numbers."""
    made = op.Constant(kind, Shape(list(np.shape(value))), np.asarray(value).flatten().tolist())
    return made.output(0)


def cast(value: Output, kind: Type) -> Output:
    """`value` as `kind`; the very same output if it is of that type already."""
    return value if value.get_element_type() == kind else ops.convert(value, kind).output(0)


def number(value: Any) -> Output:
    """A number, or an output of one element, as int64 [1]."""
    if not isinstance(value, Output):
        return constant([int(value)], Type.i64)
    return ops.reshape(cast(value, Type.i64), constant([1], Type.i64), False).output(0)


def numbers(values: Sequence[Any]) -> Output:
    """Numbers and outputs of one element as int64 [n]."""
    if not any(isinstance(value, Output) for value in values):
        return constant([int(value) for value in values], Type.i64)
    return number(values[0]) if len(values) == 1 else ops.concat([number(v) for v in values], 0).output(0)


def shape_of(value: Output) -> Output:
    """int64 [rank]."""
    return ops.shape_of(value, Type.i64).output(0)


def _bind(node: torch.fx.Node) -> dict[str | int, Any]:
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return dict([*enumerate(node.args), *node.kwargs.items()])
    bound: dict[str | int, Any] = {}
    for i, argument in enumerate(schema.arguments):
        if i < len(node.args):
            bound[argument.name] = node.args[i]
        elif argument.name in node.kwargs:
            bound[argument.name] = node.kwargs[argument.name]
        else:
            bound[argument.name] = argument.default_value
    return bound
