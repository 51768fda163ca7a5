"""`Traced` → `ExportedProgram` → files. The traced program already is what this backend runs."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument
from torch.fx import GraphModule
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from ...artifact.weights import TensorSource, write_safetensors
from ...prepare.references import memory_key, tensor_bytes
from ...trace.record import Traced
from ..contract import Lowered
from .config import DynamoConfig
from .flat import flat_call
from .lighter_steps import with_lighter_steps
from .quantized import has_quantized_ops, with_fast_products
from .rewritten import rewritten

WEIGHTS = "model.safetensors"
_TRACES = ("stack_trace", "nn_module_stack", "torch_fn", "source_fn_stack")


def lower(traced: Traced, config: DynamoConfig) -> Lowered:
    """Hand the program on: weights of a checkpoint are mapped from its file already."""
    program = with_lighter_steps(with_fast_products(traced.program))
    options = {
        **traced.spec.options,
        "aot_compile": config.aot_compile,
        **({"quantized_ops": True} if has_quantized_ops(program) else {}),
    }
    return Lowered(spec=dataclasses.replace(traced.spec, options=options), program=program, weights=traced.weights)


def save(components: Sequence[Lowered], directory: Path, weights: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Write one `.pt2` a component; with several components, their parameters and buffers once, beside them.

    A single component's `.pt2` is complete: `torch.export.load` needs nothing else. Of several, each `.pt2` holds its
    parameters without values, and `model.safetensors` holds the values; the run door puts them together.
    """
    shared = len(components) > 1
    names = _write_shared(components, directory) if shared else {}
    files: dict[str, tuple[str, ...]] = {}
    for component in components:
        name = component.spec.name
        program = _without_texts(component.program)
        saved = _without_values(program) if shared else copy.copy(program)
        saved._range_constraints = _whole_bounds(program)
        with _without_traces(saved):
            torch.export.save(saved, directory / f"{name}.pt2")
        files[name] = (f"{name}.pt2",)
        if shared:
            (directory / f"{name}.weights.json").write_text(_as_json(names[name]), encoding="utf-8")
            files[name] += (f"{name}.weights.json", WEIGHTS)
        if component.spec.options.get("aot_compile"):
            package = directory / f"{name}.aoti.pt2"
            with torch.no_grad():
                torch._inductor.aoti_compile_and_package(flat_call(program), package_path=str(package))
            files[name] += (package.name,)
    return files


def _without_texts(program: ExportedProgram) -> ExportedProgram:
    """The program with None for each string that it returns, which torch 2.13 saves and cannot load; the manifest holds them."""
    if not any(isinstance(value, str) for value in program.graph.output_node().args[0]):
        return program
    with rewritten(program) as made:
        output = made.graph.output_node()
        output.args = (tuple(None if isinstance(value, str) else value for value in output.args[0]),)
        for spec in made.graph_signature.output_specs:
            if isinstance(spec.arg, ConstantArgument) and isinstance(spec.arg.value, str):
                spec.arg = ConstantArgument(name=spec.arg.name, value=None)
    return made


def _whole_bounds(program: ExportedProgram) -> dict[Any, Any]:
    """The bounds of every size in the graph, as torch needs them to load it (torch 2.13).

    Without those of fractions, which torch writes down and cannot save: a scale that a model computes with is a symbol of its
    own in a trace with values, bounded by its value on both sides (Emu3). And with those of sizes that a repair made, such as
    the number of true values of a mask, which torch's program does not list (GLM-Image).
    """
    bounds = dict(program.range_constraints)
    for node in program.graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            for size in value.shape if isinstance(value, torch.Tensor) else [value]:
                if isinstance(size, torch.SymInt):
                    known = size.node.shape_env.var_to_range
                    for symbol in size.node.expr.free_symbols:
                        bounds.setdefault(symbol, known.get(symbol, ValueRanges(0, int_oo)))
    return {symbol: reach for symbol, reach in bounds.items() if not reach.is_float}


@contextmanager
def _without_traces(program: ExportedProgram) -> Iterator[None]:
    """While held, the nodes do not know their lines of model source: half of a saved graph (2.3 MB for SmolLM2's decode)."""
    nodes = [n for m in program.graph_module.modules() if isinstance(m, GraphModule) for n in m.graph.nodes]
    held = [(node, {key: node.meta.pop(key) for key in _TRACES if key in node.meta}) for node in nodes]
    try:
        yield
    finally:
        for node, trace in held:
            node.meta.update(trace)


def _write_shared(components: Sequence[Lowered], directory: Path) -> dict[str, dict[str, str]]:
    """Write every distinct parameter and buffer once; by component: the program's name → the file's name."""
    stored: dict[tuple[Any, ...], str] = {}
    sources: list[TensorSource] = []
    names: dict[str, dict[str, str]] = {}
    for component in components:
        mapping = names[component.spec.name] = {}
        for name, tensor in component.program.state_dict.items():
            key = memory_key(tensor)
            if key not in stored:
                stored[key] = name if name not in stored.values() else f"{component.spec.name}.{name}"
                sources.append(
                    TensorSource(stored[key], str(tensor.dtype)[6:], tuple(tensor.shape), partial(tensor_bytes, tensor))
                )
            mapping[name] = stored[key]
    write_safetensors(directory / WEIGHTS, sources)
    return names


def _without_values(program: ExportedProgram) -> ExportedProgram:
    stripped = copy.copy(program)
    stripped._state_dict = {
        name: torch.nn.Parameter(torch.empty_like(value, device="meta"), requires_grad=False)
        if isinstance(value, torch.nn.Parameter)
        else torch.empty_like(value, device="meta")
        for name, value in program.state_dict.items()
    }
    return stripped


def _as_json(names: Mapping[str, str]) -> str:
    return json.dumps(dict(names), indent=0)
