"""Fold the cache of a component into variables of the model: state that lives from call to call."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from openvino import Dimension, Model, Output, PartialShape, Type, op
from openvino import opset15 as ops

from ...artifact.spec import ComponentSpec, Json, Size, TensorSpec
from ...errors import LoweringError
from .call import constant
from .dtypes import PORT_TYPES

#: The input that says which row of the last call each row continues: int32 [batch].
BEAM_INDEX = "beam_idx"


def fold_state(model: Model, spec: ComponentSpec) -> tuple[Model, ComponentSpec]:
    """Turn the state pairs of a component into variables.

    A variable starts as zeros: of the batch of the inputs that stay, of length zero along an axis that only the state
    has (the cache grows from nothing), of the full size along a fixed axis. At every call its rows are first picked by
    `beam_idx`, an added input.

    Args:
        model: With the ports of `spec`.
        spec: Its border, with at least one state pair.

    Returns:
        The stateful model, and its border: without the state, and with `options["stateful"]` saying so.

    Raises:
        LoweringError: If the batch of no state is the batch of an input that stays.
    """
    state = dict(spec.state)
    inputs = {tensor.name: tensor for tensor in spec.inputs}
    parameters = {t.name: p for t, p in zip(spec.inputs, model.get_parameters(), strict=True)}
    results = {t.name: r for t, r in zip(spec.outputs, model.get_results(), strict=True)}
    kept = [tensor for tensor in spec.inputs if tensor.name not in state]
    sizes = _sizes(kept, {name: parameters[name].output(0) for name in parameters if name not in state})
    beam = op.Parameter(Type.i32, PartialShape([Dimension()]))
    beam.output(0).get_tensor().set_names({BEAM_INDEX})
    beam.set_friendly_name(BEAM_INDEX)
    sinks, batched = [], []
    for source, target in spec.state:
        parameter = parameters[source]
        users = parameter.output(0).get_target_inputs()
        initial = _zeros(inputs[source], sizes)
        read = ops.read_value(initial, source, parameter.get_element_type(), _variable_shape(inputs[source]))
        value = read.output(0)
        if inputs[source].shape and inputs[source].shape[0] in sizes:
            value = ops.gather(value, beam, constant(0, Type.i64)).output(0)
            batched.append(source)
        for user in users:
            user.replace_source_output(value)
        new = results[target].input_value(0)
        if len(new.get_node().outputs()) > 1:  # `assign` takes a node of one output
            new = ops.reshape(new, ops.shape_of(new), False).output(0)
        sinks.append(ops.assign(new.get_node(), source))
    if not batched:
        raise LoweringError(f"stateful=True: no state of {spec.name!r} has the batch axis of one of its other inputs.")
    made = Model(
        [results[t.name] for t in spec.outputs if t.name not in state.values()],
        sinks,
        [*(parameters[tensor.name] for tensor in kept), beam],
        spec.name,
    )
    made.validate_nodes_and_infer_types()
    return made, _without_state(spec, batched)


def _sizes(kept: list[TensorSpec], values: Mapping[str, Output]) -> dict[Size, Output]:
    """Every named axis of the inputs that stay, as an int64 [1]."""
    sizes: dict[Size, Output] = {}
    for tensor in kept:
        for axis, size in enumerate(tensor.shape):
            if isinstance(size, str) and size not in sizes:
                shape = ops.shape_of(values[tensor.name], Type.i64)
                sizes[size] = ops.gather(shape, constant([axis], Type.i64), constant(0, Type.i64)).output(0)
    return sizes


def _zeros(tensor: TensorSpec, sizes: Mapping[Size, Output]) -> Output:
    """The state before the first call."""
    zero = constant(0, PORT_TYPES[tensor.dtype])
    parts = [
        constant([size], Type.i64) if isinstance(size, int) else sizes.get(size, constant([0], Type.i64))
        for size in tensor.shape
    ]
    return ops.broadcast(zero, ops.concat(parts, 0)).output(0) if parts else zero


def _variable_shape(tensor: TensorSpec) -> PartialShape:
    return PartialShape([Dimension(size) if isinstance(size, int) else Dimension() for size in tensor.shape])


def _without_state(spec: ComponentSpec, batched: list[str]) -> ComponentSpec:
    sources, targets = {s for s, _ in spec.state}, {t for _, t in spec.state}
    state = [tensor for tensor in spec.inputs if tensor.name in sources]
    others = {tensor.name for tensor in spec.inputs} - sources
    return dataclasses.replace(
        spec,
        inputs=tuple(tensor for tensor in spec.inputs if tensor.name not in sources),
        outputs=tuple(tensor for tensor in spec.outputs if tensor.name not in targets),
        input_structure=without_leaves(spec.input_structure, _numbers(spec.inputs, sources)),
        output_structure=without_leaves(spec.output_structure, _numbers(spec.outputs, targets)),
        state=(),
        options={
            **spec.options,
            "stateful": {
                "beam_idx": BEAM_INDEX,
                "variables": {t.name: {"dtype": t.dtype, "shape": list(t.shape)} for t in state},
                "structure": without_leaves(spec.input_structure, _numbers(spec.inputs, others)),
                "field": spec.state[0][1].partition(".")[0],
                "reordered": batched,
            },
        },
    )


def _numbers(tensors: tuple[TensorSpec, ...], names: Collection[str]) -> set[int]:
    return {i for i, tensor in enumerate(tensors) if tensor.name in names}


def without_leaves(tree: Json, removed: Collection[int]) -> Json:
    """A structure tree without some of its leaves; the others are renumbered. What held only removed leaves is None."""
    pruned = _prune(tree, removed)
    return {"value": None} if pruned is None else pruned


def _prune(tree: Json, removed: Collection[int]) -> Json | None:
    if not isinstance(tree, Mapping) or "value" in tree:
        return tree
    if "leaf" in tree:
        number = tree["leaf"]
        return None if number in removed else {"leaf": number - sum(other < number for other in removed)}
    made = dict(tree)
    for kind in ("list", "tuple", "dict", "fields"):
        if kind not in made:
            continue
        children = made[kind]
        pairs = list(children.items()) if isinstance(children, Mapping) else list(enumerate(children))
        pruned = {key: _prune(child, removed) for key, child in pairs}
        had_state = any(value is None for value in pruned.values())
        if had_state and all(value is None or not _has_leaf(value) for value in pruned.values()):
            return None
        filled = {key: {"value": None} if value is None else value for key, value in pruned.items()}
        made[kind] = filled if isinstance(children, Mapping) else list(filled.values())
    return made


def _has_leaf(tree: Json) -> bool:
    if not isinstance(tree, Mapping):
        return False
    if "leaf" in tree:
        return True
    parts = [tree[kind] for kind in ("list", "tuple", "dict", "fields") if kind in tree]
    return any(_has_leaf(c) for part in parts for c in (part.values() if isinstance(part, Mapping) else part))
