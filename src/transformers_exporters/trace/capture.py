"""`Prepared` → `torch.export` → `Traced`."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram

from ..artifact.spec import AxisRange
from ..configs import ExportConfig
from ..errors import TraceError
from ..hf.pytrees import register_known_caches, register_objects_in
from ..hf.replaced import replaced
from ..prepare.record import Prepared
from ..prepare.resize import resize
from ..prepare.untouched import put_back, written_weights
from .assumptions import accepts, answered_from_sample, asks_for_values, forget_sample
from .comparisons import noted_decisions
from .decisions import conditions, refused, with_conditions
from .describe import describe, sizes_of
from .dims import request_shapes
from .fixed_sums import with_fixed_sums
from .frozen import report_frozen
from .idioms.calling import is_models
from .idioms.pieces import with_pieces
from .larger_inputs import SingleInInput, has_single, larger_inputs, stopped_at_single
from .ranges import prove_ranges, wrong_sizes
from .read_only_weights import read_only_weights
from .record import Traced
from .remainders import any_remainder, with_multiples
from .unequal_sizes import where_unequal


def capture(prepared: Prepared, config: ExportConfig, fired: Mapping[str, int], *, remainders: bool = True) -> Traced:
    """Trace one component.

    The caller holds the patches and `untouched(model)`.

    Args:
        prepared: The component.
        config: Its export config; `dynamic`, `dynamic_shapes`, `strict` and
            `prefer_deferred_runtime_asserts_over_guards` are read here.
        fired: Live counts of the installed patches.
        remainders: Trace again between multiples, where the graph holds for multiples only.

    Raises:
        TraceError: If `torch.export` fails; names the component and the last line of model source.
        FrozenAxisError: If an axis asked for in `dynamic_shapes` came out constant.
    """

    def again(*, remainders: bool = remainders, **changes: Any) -> Traced:
        return capture(dataclasses.replace(prepared, **changes), config, fired, remainders=remainders)

    register_known_caches()
    register_objects_in(dict(prepared.inputs), empty=True)
    prepared = dataclasses.replace(prepared, inputs=row_major(prepared.inputs))
    shapes: Any = None
    if config.dynamic_shapes is not None:
        shapes = complete_shapes(config.dynamic_shapes, prepared.inputs)
    elif config.dynamic:
        shapes = request_shapes(prepared)
    if config.dynamic and config.dynamic_shapes is None:
        found = _export_or_larger(prepared, config, shapes)
        if isinstance(found, Mapping):
            return again(inputs=found)
        program, assumed = found
    else:
        program, assumed = _export(prepared, config, shapes)
    if assumed and not accepts(program, prepared.original):
        if sizes_of(prepared.inputs) != sizes_of(prepared.original):
            return again(inputs=prepared.original)
        raise TraceError(
            f"The graph of {prepared.name!r} refuses the inputs that it was traced with: the model decides by values that the "
            f"trace computed otherwise than eager PyTorch ({'; '.join(assumed)})."
        )
    fixed = with_fixed_sums(program, prepared) if config.dynamic and config.dynamic_shapes is None else prepared
    if fixed.static != prepared.static:
        return again(axes=fixed.axes, static=fixed.static)
    read_only_weights(program)
    drop_trivial_guards(program)
    carry_example(program, prepared)
    traced = describe(program, prepared, fired, explicit=config.dynamic_shapes is not None)
    traced = dataclasses.replace(traced, assumed=tuple(assumed))
    if config.dynamic and config.dynamic_shapes is None:
        return _as_far_as_it_reaches(traced, prepared, again, remainders=remainders)
    if config.dynamic_shapes is not None:
        return with_conditions(traced, prepared, conditions(traced, prepared))
    return traced


def _as_far_as_it_reaches(
    traced: Traced, prepared: Prepared, again: Callable[..., Traced], *, remainders: bool
) -> Traced:
    """The component with proved ranges; or traced again, where another trace reaches further or the caller's inputs are left out."""
    traced = prove_ranges(traced, prepared)
    if remainders:
        traced = where_unequal(traced, prepared, lambda other: again(inputs=other, remainders=False))
    lost, baked = left_out(traced, prepared), wrong_sizes(traced, prepared)
    inputs = resize(prepared.inputs, prepared.axes, {**baked, **lost})
    static = prepared.static | baked.keys()
    if sizes_of(inputs) != sizes_of(prepared.inputs) or static != prepared.static:
        return again(inputs=inputs, static=static)
    if remainders:
        traced, steps = any_remainder(traced, prepared, lambda other: again(inputs=other, remainders=False))
        traced = with_multiples(traced, steps)
        needed = conditions(traced, prepared)
        inputs = resize(prepared.inputs, prepared.axes, refused(traced, prepared, needed))
        if sizes_of(inputs) != sizes_of(prepared.inputs):
            return again(inputs=inputs)
        traced = with_conditions(traced, prepared, needed)
    report_frozen(traced, prepared)
    return traced


def left_out(traced: Traced, prepared: Prepared) -> dict[str, int]:
    """The caller's sizes of axes that came out constant at another size, or with a range without theirs, by axis name.

    The graph would refuse the very inputs that it was made for, so it has to be traced again at their sizes.
    """
    given = sizes_of(prepared.original)
    lost: dict[str, int] = {}
    for tensor in traced.spec.inputs:
        for size, own, name in zip(
            tensor.shape, given.get(tensor.name, ()), prepared.axes.get(tensor.name, ()), strict=False
        ):
            if isinstance(size, str):
                bounds = traced.spec.axes.get(size, AxisRange(minimum=own, maximum=own))
            else:
                bounds = AxisRange(minimum=size, maximum=size)
            reached = bounds.minimum <= own and (bounds.maximum is None or own <= bounds.maximum)
            if name is not None and not reached:
                lost[name] = int(own)
    return lost


def row_major(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs with every tensor in the order of its axes, as the run doors feed them.

    The convolution state of RecurrentGemma is a transposed view; ExecuTorch writes an input's order into its program.
    """
    ordered: dict[str, Any] = pytree.tree_map(
        lambda leaf: leaf.contiguous() if isinstance(leaf, torch.Tensor) else leaf, dict(inputs)
    )
    return ordered


def _export_or_larger(
    prepared: Prepared, config: ExportConfig, shapes: Any
) -> tuple[ExportedProgram, list[str]] | Mapping[str, Any]:
    """As `_export`; or inputs with larger images, where the program would be right only for small ones."""
    larger = larger_inputs(prepared)
    if larger is None:
        return _export(prepared, config, shapes)
    try:
        with stopped_at_single(prepared):
            found = _export(prepared, config, shapes)
    except SingleInInput:
        return larger
    return larger if has_single(found[0], prepared) else found


def _export(prepared: Prepared, config: ExportConfig, shapes: Any) -> tuple[ExportedProgram, list[str]]:
    """The program, and what it assumes about the values of its inputs."""

    def export() -> ExportedProgram:
        forward = _exportable_forward(prepared.model, prepared.inputs, strict=config.strict)
        with torch.no_grad(), _without_partial_graph(), noted_decisions(), forward:
            return torch.export.export(
                prepared.model,
                (),
                dict(prepared.inputs),
                dynamic_shapes=shapes,
                strict=config.strict,
                prefer_deferred_runtime_asserts_over_guards=config.prefer_deferred_runtime_asserts_over_guards,
            )

    try:
        return export(), []
    except Exception as error:  # noqa: BLE001 - torch.export raises whatever the model's code and dozens of its own classes raise
        failure = error
    again = ""
    if asks_for_values(failure, prepared):
        written = written_weights(prepared.model, prepared.inputs)  # the trace computes with real weights
        try:
            with answered_from_sample(prepared.name) as assumed:
                program = forget_sample(export())
            return program, assumed
        except Exception as error:  # noqa: BLE001 - as above
            again = f" Traced with its sample's values known, it stops as well: {first_line(error)} (at {model_line(error)})."
        finally:
            put_back(written)
    if ".numpy()" in str(failure):
        raise TraceError(
            f"{prepared.name!r} leaves torch for NumPy (at {model_line(failure)}), which no graph can hold: write that with "
            "torch's functions; a loop over experts runs over all of them, each with the tokens of `torch.where(mask[expert])`."
        ) from failure
    raise TraceError(
        f"torch.export could not trace {prepared.name!r}: {first_line(failure)} (at {model_line(failure)}).{again}"
    ) from failure


@contextmanager
def _without_partial_graph() -> Iterator[None]:
    """While held, torch does not print the graph so far of a failed trace to stderr, thousands of lines (torch 2.13)."""
    module = importlib.import_module("torch.export._trace")

    vars(module)["print"] = lambda *args, **kwargs: None
    try:
        yield
    finally:
        del vars(module)["print"]


def _exportable_forward(
    model: torch.nn.Module, inputs: Mapping[str, Any], *, strict: bool
) -> AbstractContextManager[None]:
    """Give forward a signature in which every input is a parameter of its own, and outputs that pytrees know.

    torch.export 2.13 lays inputs that forward takes through `**kwargs` next to the dynamic shapes in two different
    orders (`_get_range_constraints`) and fails on its own message. It knows no class of the model's own, such as a cache.
    """
    original = model.forward
    signature = inspect.signature(original)
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    known = {p.name for p in named}
    extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in inputs if name not in known]
    if strict and not extra:
        return nullcontext()

    def forward(*args: Any, **kwargs: Any) -> Any:
        outputs = original(*args, **kwargs)
        if not strict:  # a strict trace reads this function instead of running it
            register_objects_in(outputs)
            outputs = with_pieces(outputs)
            outputs = in_field_order(outputs)
            outputs = pytree.tree_map_only(torch.SymInt, _computed, outputs)
        return outputs

    forward.__signature__ = signature.replace(parameters=[*named, *extra])  # type: ignore[attr-defined]
    return replaced(model, forward)


def _computed(number: Any) -> Any:
    """A number that follows from the sizes, among the outputs: an int64 scalar tensor, as a graph returns tensors only."""
    known = number.node.maybe_as_int()
    return torch.scalar_tensor(number, dtype=torch.int64) if known is None else known


def in_field_order(outputs: Any) -> Any:
    """The outputs with the fields of each object in the order of its class, which is theirs whenever they are rebuilt.

    InternVL fills `pooler_output` after `hidden_states`: flattened as returned and as rebuilt, its leaves would have two
    different orders.
    """
    rebuilt = pytree.tree_map(lambda leaf: leaf, outputs)
    before, after = (pytree.tree_flatten_with_path(tree)[0] for tree in (outputs, rebuilt))
    return outputs if [path for path, _ in before] == [path for path, _ in after] else rebuilt


def complete_shapes(shapes: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The caller's `dynamic_shapes`, with every input that it leaves out held static."""

    def static(value: Any) -> Any:
        return pytree.tree_map(lambda leaf: None, value)

    unknown = sorted(set(shapes) - set(inputs))
    if unknown:
        raise TraceError(f"dynamic_shapes names {unknown[0]!r}, which is not among the inputs {sorted(inputs)}.")
    return {name: shapes[name] if name in shapes else static(value) for name, value in inputs.items()}


def first_line(error: BaseException) -> str:
    """The first line of an error that says something, shortened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")[:300]


def model_line(error: BaseException) -> str:
    """`file:line, in function` of the innermost frame of an error that lies in modelling code."""
    frames = traceback.extract_tb(error.__traceback__)
    foreign = [f for f in frames if is_models(f.filename)]
    modelling = [f for f in foreign if "modeling" in f.filename] or foreign or frames
    if not modelling:
        return "no source line known"
    frame = modelling[-1]
    return f"{frame.filename}:{frame.lineno}, in {frame.name}: {(frame.line or '').strip()}"


def drop_trivial_guards(program: ExportedProgram) -> None:
    """Keep only the input guards that say which inputs belong together.

    torch.export records every comparison of the trace, most of which only exclude a size of 0 or 1 or a special case
    that the graph covers as well. What the graph's ranges really are is proved in `trace.ranges`.
    """
    program._guards_code = [guard for guard in program._guards_code if " == " in guard and "%" not in guard]


def carry_example(program: ExportedProgram, prepared: Prepared) -> None:
    """Let the program carry the caller's own inputs, not the traced sizes: a saved `.pt2` offers its cache as a template."""
    if pytree.tree_structure(dict(prepared.original)) == pytree.tree_structure(dict(prepared.inputs)):
        program.example_inputs = ((), dict(prepared.original))
