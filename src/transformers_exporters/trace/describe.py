"""The border of a traced program: names, dtypes and axes of its inputs and outputs, and how they nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from ..artifact.spec import ComponentSpec, TensorSpec
from ..artifact.structure import leaf_paths
from ..prepare.axes import named_leaves
from ..prepare.record import Prepared
from .dims import Leaf, axis_ranges, name_symbols, shape_of
from .record import Traced
from .structure import structure_of
from .weights import weight_refs


def sizes_of(kwargs: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor in nested kwargs, by leaf path."""
    return {path: tuple(value.shape) for path, value in named_leaves(kwargs) if isinstance(value, torch.Tensor)}


def describe(
    program: ExportedProgram, prepared: Prepared, fired: Mapping[str, int], *, explicit: bool = False
) -> Traced:
    """Read the border of a traced program: names, dtypes, axes (with the caller's bounds if `explicit`), structures."""
    call = program.call_spec
    assert call.in_spec is not None and call.out_spec is not None
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    in_paths = spec_paths(call.in_spec.children()[1])
    out_paths = spec_paths(call.out_spec)
    user_inputs = [s.arg for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    user_outputs = [s.arg for s in program.graph_signature.output_specs if s.kind == OutputKind.USER_OUTPUT]
    given = sizes_of(prepared.original)
    leaves: dict[str, Leaf] = {
        arg.name: Leaf(path, prepared.axes.get(path, ()), given.get(path, ()))
        for arg, path in zip(user_inputs, in_paths, strict=True)
    }
    names = name_symbols(program, leaves)
    in_tensors, in_leaves = _tensors(user_inputs, in_paths, values, names)
    out_tensors, out_leaves = _tensors(user_outputs, out_paths, values, names)
    both = {name for name, *_ in in_tensors} & {name for name, *_ in out_tensors}
    options: dict[str, Any] = {"numbers": dict(prepared.numbers)} if prepared.numbers else {}
    if repeated := one_for_all({name: shape for name, _, shape in in_tensors}, given):
        options["one_for_all"] = repeated
    spec = ComponentSpec(
        name=prepared.name,
        inputs=tuple(TensorSpec(n, f"input.{n}" if n in both else n, d, s) for n, d, s in in_tensors),
        outputs=tuple(TensorSpec(n, f"output.{n}" if n in both else n, d, s) for n, d, s in out_tensors),
        axes=axis_ranges(program, names, explicit=explicit),
        input_structure=structure_of(call.in_spec.children()[1], in_leaves),
        output_structure=structure_of(call.out_spec, out_leaves),
        state=state_pairs([n for n, *_ in in_tensors], [n for n, *_ in out_tensors]),
        options=options,
        constants={p: leaf[0] for p, leaf in zip(in_paths, in_leaves, strict=True) if isinstance(leaf, tuple)},
    )
    samples = {
        path: value
        for path, value in zip(in_paths, pytree.tree_leaves(dict(prepared.inputs)), strict=True)
        if isinstance(value, torch.Tensor)
    }
    return Traced(
        spec=spec, program=program, weights=weight_refs(program), symbols=names, fired=dict(fired), samples=samples
    )


def one_for_all(shapes: Mapping[str, Any], given: Mapping[str, Sequence[int]]) -> list[str]:
    """The inputs that the caller gave with one entry along an axis along which others have more, which it stands for.

    Args:
        shapes: Of the graph's inputs, with axis names.
        given: The caller's, by input name.
    """
    pairs = [(name, size, own) for name in shapes for size, own in zip(shapes[name], given.get(name, ()), strict=False)]
    most: dict[Any, int] = {}
    for _, size, own in pairs:
        most[size] = max(own, most.get(size, 0))
    return sorted({name for name, size, own in pairs if isinstance(size, str) and own == 1 < most[size]})


_CACHE_ARGUMENTS = ("cache", "past_key_values", "cache_params")


def state_pairs(inputs: Sequence[str], outputs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs (input, output) of the same cache tensor; the argument's name may differ from the output's field."""

    def inner(path: str) -> str | None:
        head, _, rest = path.partition(".")
        return rest if head in _CACHE_ARGUMENTS and rest else None

    by_inner = {inner(path): path for path in outputs}
    return tuple((path, by_inner[inner(path)]) for path in inputs if inner(path) and inner(path) in by_inner)


def spec_paths(spec: pytree.TreeSpec) -> list[str]:
    """Leaf paths of a spec, in order."""
    tree = structure_of(spec, list(range(spec.num_leaves)))
    return [path for _, path in sorted(leaf_paths(tree))]


def _tensors(
    args: list[Any], paths: list[str], values: Mapping[str, Any], names: Mapping[str, str]
) -> tuple[list[tuple[str, str, Any]], list[Any]]:
    tensors: list[tuple[str, str, Any]] = []
    leaves: list[Any] = []
    for arg, path in zip(args, paths, strict=True):
        value = values.get(getattr(arg, "name", ""))
        if isinstance(value, torch.Tensor):
            leaves.append(len(tensors))
            tensors.append((path, str(value.dtype).removeprefix("torch."), shape_of(value, names)))
        else:
            constant = getattr(arg, "value", None)
            leaves.append((plain_number(constant),))
    return tensors, leaves


def plain_number(constant: Any) -> Any:
    """A number that torch's shape algebra holds as its own, as Python's."""
    if not isinstance(constant, sympy.Basic):
        return constant
    return (
        bool(constant)
        if constant in (sympy.true, sympy.false)
        else int(constant)
        if constant.is_integer
        else float(constant)
    )
