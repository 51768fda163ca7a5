"""A `ComponentSpec` as JSON and back, exactly."""

from __future__ import annotations

from typing import Any

from ..errors import ArtifactError
from .fields import Fields, checked, text
from .files import check_name
from .spec import AxisRange, ComponentSpec, Json, Size, TensorSpec

__all__ = ["decode_component", "encode_component"]


def encode_component(spec: ComponentSpec) -> dict[str, Json]:
    """The spec as a JSON object; its name is the key under which the manifest stores it."""
    return {
        "inputs": [_encode_tensor(tensor) for tensor in spec.inputs],
        "outputs": [_encode_tensor(tensor) for tensor in spec.outputs],
        "axes": {
            name: {"minimum": axis.minimum, "maximum": axis.maximum, "multiple_of": axis.multiple_of}
            for name, axis in spec.axes.items()
        },
        "input_structure": spec.input_structure,
        "output_structure": spec.output_structure,
        "state": [list(pair) for pair in spec.state],
        "constants": dict(spec.constants),
        "files": list(spec.files),
        "options": dict(spec.options),
    }


def decode_component(name: str, value: Any, path: str) -> ComponentSpec:
    """Rebuild a spec.

    Raises:
        ArtifactError: If a field is missing or wrong, a tensor's name is used twice on one side, a structure points
            at a leaf that is not there, or a state pair or file name is not what it should be.
    """
    fields = Fields(value, path)
    inputs, outputs = fields.list_of("inputs", _decode_tensor), fields.list_of("outputs", _decode_tensor)
    for side, tensors in (("inputs", inputs), ("outputs", outputs)):
        names = [tensor.name for tensor in tensors]
        if len(set(names)) != len(names):
            raise ArtifactError(f"The manifest is wrong at {path}.{side}: two tensors have the same name.")
    state = fields.list_of("state", _decode_pair)
    known = ({tensor.name for tensor in inputs}, {tensor.name for tensor in outputs})
    for source, target in state:
        if source not in known[0] or target not in known[1]:
            raise ArtifactError(f"The manifest is wrong at {path}.state: {source} -> {target} names an unknown tensor.")
    return ComponentSpec(
        name=name,
        inputs=inputs,
        outputs=outputs,
        axes=fields.dict_of("axes", _decode_axis),
        input_structure=_check_tree(fields.json("input_structure"), len(inputs), f"{path}.input_structure"),
        output_structure=_check_tree(fields.json("output_structure"), len(outputs), f"{path}.output_structure"),
        state=state,
        constants=fields.object("constants"),
        files=tuple(check_name(file) for file in fields.list_of("files", text)),
        options=fields.object("options"),
    )


def _encode_tensor(tensor: TensorSpec) -> dict[str, Json]:
    return {"name": tensor.name, "port": tensor.port, "dtype": tensor.dtype, "shape": list(tensor.shape)}


def _decode_tensor(value: Any, path: str) -> TensorSpec:
    fields = Fields(value, path)
    shape = fields.list_of("shape", _decode_size)
    return TensorSpec(fields.text("name"), fields.text("port"), fields.text("dtype"), shape)


def _decode_size(value: Any, path: str) -> Size:
    if type(value) is int and value >= 0:
        return value
    return checked(value, str, path)


def _decode_axis(value: Any, path: str) -> AxisRange:
    fields = Fields(value, path)
    maximum = None if fields.json("maximum") is None else fields.integer("maximum")
    return AxisRange(fields.integer("minimum"), maximum, fields.integer("multiple_of"))


def _decode_pair(value: Any, path: str) -> tuple[str, str]:
    pair = checked(value, list, path)
    if len(pair) != 2:
        raise ArtifactError(f"The manifest is wrong at {path}: a pair (input, output) is needed, got {value!r:.60}.")
    return text(pair[0], f"{path}.0"), text(pair[1], f"{path}.1")


def _check_tree(tree: Any, leaves: int, path: str) -> Json:
    """Return a structure tree (see `artifact.structure`) or None, once every node is one that `rebuild` knows."""
    if tree is None:
        return None
    node = checked(tree, dict, path)
    kind = next((kind for kind in ("leaf", "value", "list", "tuple", "dict", "object") if kind in node), None)
    if kind == "leaf" and not (type(node["leaf"]) is int and 0 <= node["leaf"] < leaves):
        raise ArtifactError(f"The manifest is wrong at {path}: there is no tensor number {node['leaf']!r:.20}.")
    if kind in ("list", "tuple"):
        for i, child in enumerate(checked(node[kind], list, f"{path}.{kind}")):
            _check_child(child, leaves, f"{path}.{i}")
    elif kind in ("dict", "object"):
        fields = Fields(node, path)
        if kind == "object":
            fields.text("object")
        for key, child in fields.object("dict" if kind == "dict" else "fields").items():
            _check_child(child, leaves, f"{path}.{key}")
    elif kind is None:
        raise ArtifactError(f"The manifest is wrong at {path}: {node!r:.60} is not a node of a structure.")
    return node


def _check_child(tree: Any, leaves: int, path: str) -> None:
    _check_tree(checked(tree, dict, path), leaves, path)
