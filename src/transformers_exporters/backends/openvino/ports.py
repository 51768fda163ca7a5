"""Give a converted model the border of its spec: every input and output, by name, in order, with its dtype and axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from openvino import Dimension, Model, Output, PartialShape, op
from openvino import opset15 as ops

from ...artifact.spec import AxisRange, ComponentSpec, TensorSpec
from .call import cast
from .dtypes import PORT_TYPES

# OpenVINO holds a dimension's bounds in 64 bits.
_UNBOUNDED = -1


def with_ports(model: Model, spec: ComponentSpec, placeholders: Sequence[str], returned: Sequence[int]) -> Model:
    """The model with the ports of `spec`.

    Args:
        model: As converted: parameters named after placeholders.
        spec: The border.
        placeholders: The placeholder of each input of `spec`.
        returned: Which of the model's results each output of `spec` is.

    Returns:
        A model over the same nodes. Unused inputs are parameters too. An output whose dtype the conversion changed is
        cast back; one that is an input, a weight or another output has a tensor of its own.
    """
    known = {parameter.get_friendly_name(): parameter for parameter in model.get_parameters()}
    parameters = []
    for tensor, placeholder in zip(spec.inputs, placeholders, strict=True):
        parameter = known.get(placeholder) or op.Parameter(PORT_TYPES[tensor.dtype], PartialShape.dynamic())
        parameter.set_partial_shape(partial_shape(tensor, spec.axes))
        parameter.set_element_type(PORT_TYPES[tensor.dtype])
        _name(parameter.output(0), tensor.port)
        parameters.append(parameter)
    taken: list[Output] = []
    results = []
    converted = model.get_results()
    for tensor, number in zip(spec.outputs, returned, strict=True):
        value = cast(converted[number].input_value(0), PORT_TYPES[tensor.dtype])
        if _origin(value) in ("Parameter", "Constant") or value in taken:
            value = _copy(value)
        taken.append(value)
        value.get_tensor().set_names({tensor.port})
        named = op.Result(value)
        named.set_friendly_name(f"{tensor.port}/Result")
        results.append(named)
    made = Model(results, parameters, spec.name)
    try:
        made.validate_nodes_and_infer_types()
    except RuntimeError:
        # `-(-n // 8) * 8 - n` of an axis with a largest size may be negative by the bounds of its terms, which the engine
        # refuses (2026.4). The manifest keeps the largest size.
        for parameter in parameters:
            parameter.set_partial_shape(_without_largest(parameter.get_partial_shape()))
        made.validate_nodes_and_infer_types()
    return made


def _without_largest(shape: PartialShape) -> PartialShape:
    return PartialShape([size if size.is_static else Dimension(size.get_min_length(), _UNBOUNDED) for size in shape])


def partial_shape(tensor: TensorSpec, axes: Mapping[str, AxisRange]) -> PartialShape:
    """A tensor's shape, with the range of each named axis; an axis that is an expression of names is unbounded."""
    dimensions = []
    for size in tensor.shape:
        if isinstance(size, int):
            dimensions.append(Dimension(size))
        elif size in axes:
            known = axes[size]
            dimensions.append(Dimension(known.minimum, _UNBOUNDED if known.maximum is None else known.maximum))
        else:
            dimensions.append(Dimension())
    return PartialShape(dimensions)


def _name(output: Output, port: str) -> None:
    output.get_tensor().set_names({port})
    output.get_node().set_friendly_name(port)


def _origin(value: Output) -> str:
    """The type of the node that a value comes from, casts aside.

    A cast of an input to the type that it has is dropped by the CPU plugin, and the third call of the same sizes writes the
    result into the array that the second was given, which its owner may have freed (2026.4, Qwen3-VL's `embed_inputs`).
    """
    while value.get_node().get_type_name() == "Convert":
        value = value.get_node().input_value(0)
    name: str = value.get_node().get_type_name()
    return name


def _copy(value: Output) -> Output:
    """The same values in another tensor. OpenVINO names tensors, not ports: two ports need two tensors."""
    return ops.reshape(value, ops.shape_of(value), False).output(0)
