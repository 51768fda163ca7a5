"""Input axes that only vary against each other."""

from __future__ import annotations

import dataclasses

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from ..prepare.record import Prepared
from .describe import spec_paths


def with_fixed_sums(program: ExportedProgram, prepared: Prepared) -> Prepared:
    """Holds axes static of which one's size is a number minus the other's: their sum is fixed, so they do not vary.

    Moshi takes the codebooks of two speakers and has layers for all of them. torch cannot load a program with such sizes.
    """
    inputs = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    assert program.call_spec.in_spec is not None
    paths = spec_paths(program.call_spec.in_spec.children()[1])
    sizes = [
        (path, dim, size.node.expr)
        for argument, path in zip(inputs, paths, strict=True)
        if isinstance(values.get(argument), torch.Tensor)
        for dim, size in enumerate(values[argument].shape)
        if isinstance(size, torch.SymInt)
    ]
    fixed = {s for *_, size in sizes for s in size.free_symbols if size.as_coefficients_dict().get(s, 0) < 0}
    axes, static = dict(prepared.axes), set(prepared.static)
    for path, dim, size in sizes:
        if size.free_symbols & fixed:
            names = list(axes.get(path) or [None] * values[inputs[paths.index(path)]].dim())
            held = names[dim] = names[dim] or f"{path}:{dim}"
            axes[path] = tuple(names)
            static.add(held)
    return dataclasses.replace(prepared, axes=axes, static=frozenset(static))
