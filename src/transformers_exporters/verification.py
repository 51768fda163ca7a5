"""Compare an artifact, run in its real runtime, with the model that it came from."""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from .artifact.spec import ComponentSpec
from .artifact.store import open_artifact, write_manifest
from .errors import VerificationError
from .hf.cache_layers import full_windows
from .hf.engine_state import with_state
from .hf.exported import ExportedComponent, ExportedModel
from .hf.near_ties import selected_otherwise
from .hf.pieces import as_packed
from .hf.pytrees import register_known_caches, register_objects_in
from .prepare.axes import AxisNames, leaf_path, name_axes, named_leaves, own_name, with_traced_names
from .prepare.counters import numbers_as_tensors
from .prepare.record import Part
from .prepare.resize import axis_size, axis_sizes, resize
from .prepare.samples import sample_inputs
from .prepare.split import split_for_generation
from .prepare.untouched import kept_weights, untouched
from .runtime.assumed import OUTPUT
from .runtime.axis_expressions import holds

__all__ = ["TOLERANCES", "Report", "Row", "verify"]

logger = logging.getLogger(__name__)

#: The largest accepted error of an output by dtype, relative to the output's largest value. float32 leaves room for
#: another order of summation in deep models; the 16-bit ones for a few units in the last place. Integers are exact.
TOLERANCES: Mapping[str, float] = {"float64": 1e-3, "float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2}

#: A quantized artifact does not compute what the model computes. Below this cosine similarity to the model's output
#: it computes something else.
AGREEMENT = 0.8

#: Other selections that are tried: a single tie is settled by one of the first few.
_SELECTIONS = 8

_SEQUENCES = ("sequence", "decoder_sequence", "encoder_sequence")
_EXTENTS = ("height", "width", "frames", "samples")


@dataclass(frozen=True)
class Row:
    """One output of one component in one case.

    Attributes:
        component: The component's name.
        output: The output's leaf path.
        case: The sizes of the inputs, e.g. `batch=5, sequence=22`.
        abs: Largest absolute error; inf for a wrong shape, or where only the model's value is finite.
        rel: `abs` divided by the largest absolute value of the model's output.
        tolerance: What `rel` may be; inf for a quantized artifact, which is held to `cosine`.
        ok: Whether it is.
        cosine: Of a quantized artifact's floating-point output, the cosine similarity to the model's.
        top1: Of a quantized artifact's `logits`, how often the largest one is the model's, from 0 to 1.
        note: Where the model selects among values that are equal up to rounding, which ones. An `ok` row equals what the
            model computes with others of them; one that is not `ok` could not be compared.
    """

    component: str
    output: str
    case: str
    abs: float
    rel: float
    tolerance: float
    ok: bool
    cosine: float | None = None
    top1: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class Report:
    """What a verification measured.

    Attributes:
        rows: One for each component, case and output.
        refused: Cases that the model itself does not take, as `component: sizes`.
        fixed: Sizes that the model takes and the artifact does not, because it keeps the axis at the exported size, as
            `component: sizes`. They do not count against `ok`: an export without dynamic axes has nothing else.
    """

    rows: tuple[Row, ...]
    refused: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether something was compared and every output was within its tolerance."""
        return bool(self.rows) and all(row.ok for row in self.rows)

    @property
    def undecided(self) -> bool:
        """Whether nothing is known to be wrong, and something could not be compared."""
        return not self.ok and bool(self.rows) and all(row.ok or row.note for row in self.rows)

    def worst(self) -> list[Row]:
        """The worst row of each output of each component."""
        found: dict[tuple[str, str], Row] = {}
        for row in self.rows:
            held = found.setdefault((row.component, row.output), row)
            if _badness(row) > _badness(held):
                found[row.component, row.output] = row
        return list(found.values())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: `ok`, `rows`, `refused` and `fixed`."""
        rows = [dataclasses.asdict(row) for row in self.rows]
        return {"ok": self.ok, "rows": rows, "refused": list(self.refused), "fixed": list(self.fixed)}

    def check(self) -> None:
        """Raise `VerificationError` naming the worst output, if one is not within its tolerance."""
        if not self.rows:
            raise VerificationError("Nothing was compared: the model takes none of the tried inputs.")
        if not self.ok:
            row = max(self.worst(), key=_badness)
            if row.cosine is not None:
                raise VerificationError(
                    f"{row.component}: the quantized {row.output} has a cosine similarity of {row.cosine:.3f} to the "
                    f"model's at {row.case}, {AGREEMENT} is accepted; quantize with more bits or smaller blocks."
                )
            if row.note is not None:
                raise VerificationError(
                    f"{row.component}: {row.output} cannot be compared at {row.case}: {row.note}; verify with other inputs."
                )
            raise VerificationError(
                f"{row.component}: {row.output} differs from the model's by {row.rel:.1e} of its largest value at "
                f"{row.case}, {row.tolerance:.0e} is accepted."
            )


def _badness(row: Row) -> tuple[bool, bool, float, float]:
    return (not row.ok, row.note is None, -1.0 if row.cosine is None else -row.cosine, row.rel)


def verify(
    model: torch.nn.Module,
    artifact: ExportedModel | Path | str,
    inputs: Mapping[str, Any] | None = None,
    *,
    trust_remote_code: bool = False,
) -> Report:
    """Compare every output of every component with the eager model, at the given sizes and at others.

    A quantized artifact is not held to equality: its rows say how far it agrees (`Row.cosine`, `Row.top1`).

    Beside the inputs as they are, each component runs on another batch and on shorter and longer sequences, as far as
    its axes are dynamic and the model takes them. What was measured is written into the artifact's manifest.

    Args:
        model: The source model, in eval mode. Left as it was.
        artifact: The directory of a saved artifact, or an `ExportedModel`.
        inputs: Forward kwargs, or generate kwargs for an artifact for generation; None makes some from the config.
        trust_remote_code: See `ExportedModel.from_pretrained`.

    Raises:
        VerificationError: If the artifact's components are not those of the model.
        ArtifactError: If the artifact cannot be opened.
    """
    exported = artifact
    if not isinstance(exported, ExportedModel):
        exported = ExportedModel.from_pretrained(exported, trust_remote_code=trust_remote_code)
    rows: list[Row] = []
    refused: list[str] = []
    fixed: list[str] = []
    quantized = exported.manifest.config.get("quantizer") is not None
    for part in _parts(model, exported, inputs):
        component = exported[part.name]
        windows = full_windows() if part.full_windows else nullcontext()
        with untouched(part.model), kept_weights(part.model), windows, torch.no_grad():
            spec = with_state(component.spec)
            for case, kwargs in _cases(spec, part):
                if (wanted := _wanted(part, case, kwargs)) is None:
                    refused.append(f"{part.name}: {case}")
                    continue
                rows += _compare(component, part, case, kwargs, wanted, quantized)
            fixed += [f"{part.name}: {case}" for case in _fixed(spec, part)]
    report = Report(tuple(rows), tuple(refused), tuple(fixed))
    _record(exported, report)
    return report


def _parts(model: torch.nn.Module, exported: ExportedModel, inputs: Mapping[str, Any] | None) -> list[Part]:
    generation = exported.manifest.generation
    if not generation:
        if inputs is None:
            taken = {tensor.name for component in exported.values() for tensor in component.spec.inputs}
            inputs = {name: value for name, value in sample_inputs(model).items() if name in taken}
        return [Part("model", model, inputs)]
    config = None
    if generation.get("static"):
        config = copy.deepcopy(exported.generation_config)
        config.cache_implementation, config.max_cache_len = "static", generation["max_cache_len"]
    split = split_for_generation(
        model,
        inputs if inputs is not None else sample_inputs(model, "generation"),
        generation_config=config,
        multi_token_decode=bool(generation.get("multi_token_decode")),
        read_values=True,
    )
    if missing := sorted({part.name for part in split.parts} ^ set(exported)):
        raise VerificationError(f"The artifact and {type(model).__name__} differ in the component {missing[0]}.")
    return list(split.parts)


def _cases(spec: ComponentSpec, part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    """(sizes as text, kwargs) of every case, each set of sizes once."""
    register_known_caches()
    register_objects_in(dict(part.inputs))
    kwargs = {name: value for name, value in part.inputs.items() if value is not None}
    axes = with_traced_names(_tied(name_axes(kwargs), spec), spec.inputs)
    free = {name for name in _axis_names(axes) if _is_free(spec, axes, name)}
    own = axis_sizes(kwargs, axes, sorted(free))
    seen = set()
    for sizes in ({}, *_variations(own, spec)):
        wanted = {**own, **sizes}
        case = ", ".join(f"{name}={size}" for name, size in wanted.items()) or "the given sizes"
        if any(holds(condition, wanted) is False for condition in spec.options.get("conditions", ())):
            continue  # the artifact refuses them, and says so
        resized = resize(kwargs, axes, sizes)
        if case not in seen and _masked_rows(resized) <= _masked_rows(kwargs):
            seen.add(case)
            yield case, resized


def _tied(axes: Mapping[str, AxisNames], spec: ComponentSpec) -> dict[str, AxisNames]:
    """The axes, where the artifact says that one varies with another, by the other's name: they change together.

    Mllama itself takes a cross-attention mask with more rows than the text has tokens; a graph ties the two.
    """
    known, tied = _axis_names(axes), dict(axes)
    for tensor in spec.inputs:
        names = axes.get(tensor.name, ())
        if len(names) == len(tensor.shape):
            tied[tensor.name] = tuple(
                size if isinstance(size, str) and size in known else name
                for size, name in zip(tensor.shape, names, strict=True)
            )
    return tied


def _masked_rows(kwargs: Mapping[str, Any]) -> bool:
    """Whether a mask hides a whole row, which says nothing about the row: a shorter one may have lost what it showed."""
    masks = (value for name, value in kwargs.items() if name.endswith("attention_mask"))
    return any(isinstance(m, torch.Tensor) and m.dim() == 2 and not bool((m != 0).any(dim=1).all()) for m in masks)


@contextmanager
def _same_random_numbers(seed: int) -> Iterator[None]:
    """While held, the random numbers of the CPU are those of a seed; afterwards they go on as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _wanted(part: Part, case: str, kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor] | None:
    """What the model computes, or None where it does not take these inputs."""
    try:
        with _same_random_numbers(0):
            return _named(part.model(**copy.deepcopy(dict(kwargs))))
    except Exception as error:  # noqa: BLE001 - any refusal counts: models raise whatever their ops raise
        logger.debug("%s refuses %s: %s", part.name, case, error)
        return None


def _fixed(spec: ComponentSpec, part: Part) -> Iterator[str]:
    """The cases that the model takes with tensors of the ranks of its own case: no graph returns two ranks."""
    taken = {case: other for case, kwargs in _fixed_cases(spec, part) if (other := _wanted(part, case, kwargs))}
    if not taken:
        return
    given = {name: value for name, value in part.inputs.items() if value is not None}
    own = _wanted(part, "the given sizes", given) or {}
    for case, other in taken.items():
        if all(own[name].dim() == value.dim() for name, value in other.items() if name in own):
            yield case


def _fixed_cases(spec: ComponentSpec, part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    """One larger size for each axis that was to vary and that the artifact keeps constant."""
    kwargs = {name: value for name, value in part.inputs.items() if value is not None}
    axes = name_axes(kwargs)
    graph = {path: names for path, names in axes.items() if path in {tensor.name for tensor in spec.inputs}}
    for name in sorted(_axis_names(graph) - part.static):
        own = axis_size(kwargs, axes, name)
        if len(_sizes_of(kwargs, axes, name)) > 1:
            continue  # tensors that broadcast against each other: not one axis
        if own and name in ("batch", *_SEQUENCES, *_EXTENTS) and not _is_free(spec, axes, name):
            size = 2 * own if name in _EXTENTS else 2 * own + 1
            yield f"{name}={size}", resize(kwargs, axes, {name: size})


def _sizes_of(kwargs: Mapping[str, Any], axes: Mapping[str, AxisNames], name: str) -> set[int]:
    shapes = {path: value.shape for path, value in named_leaves(kwargs) if isinstance(value, torch.Tensor)}
    return {int(shapes[path][dim]) for path, names in axes.items() for dim, axis in enumerate(names) if axis == name}


def _variations(own: Mapping[str, int], spec: ComponentSpec) -> Iterator[dict[str, int]]:
    """Sizes to try beside the given ones: a batch of 1 and of 5, a shorter and a longer sequence, both together.

    Images, sounds and what has no name are doubled: what divides their size still does.
    """
    lengths = [name for name in _SEQUENCES if name in own]
    longer = {name: 2 * own[name] + 3 for name in lengths}
    shorter = {name: max(1, own[name] // 2) for name in lengths}
    if "cache" in own:
        query = own["total_sequence"] - own["cache"] if "total_sequence" in own else 0
        for sizes, cache in ((longer, 2 * own["cache"] + 3), (shorter, max(1, own["cache"] // 2))):
            sizes["cache"] = cache
            if "total_sequence" in own:
                name = "sequence" if "sequence" in own else "decoder_sequence"
                sizes["total_sequence"] = cache + sizes.get(name, own.get(name, query))
    doubled = {name: 2 * own[name] for name in _EXTENTS if name in own}
    traced = {
        name for tensor in spec.inputs for dim, name in enumerate(tensor.shape) if name == own_name(tensor.name, dim)
    }
    tried: list[tuple[int | None, dict[str, int]]] = [(5, {}), (1, {}), (None, longer), (None, shorter)]
    tried += [(3, longer), (1, shorter), (None, doubled)]
    tried += [(None, {name: 2 * own[name]}) for name in sorted(traced & own.keys())]
    for batch, sizes in tried:
        changed = dict(sizes) if batch is None or "batch" not in own else {"batch": batch, **sizes}
        if changed and all(_in_range(spec, name, size) for name, size in changed.items()):
            yield changed


def _in_range(spec: ComponentSpec, name: str, size: int) -> bool:
    return name not in spec.axes or spec.axes[name].allows(size)


def _axis_names(axes: Mapping[str, AxisNames]) -> set[str]:
    return {name for names in axes.values() for name in names if name is not None}


def _is_free(spec: ComponentSpec, axes: Mapping[str, AxisNames], name: str) -> bool:
    """Whether every input of the graph leaves this axis open."""
    shapes = {tensor.name: tensor.shape for tensor in spec.inputs}
    sizes = [
        shapes[path][dim] for path, names in axes.items() if path in shapes for dim, n in enumerate(names) if n == name
    ]
    return bool(sizes) and all(isinstance(size, str) for size in sizes)


def _compare(
    component: ExportedComponent,
    part: Part,
    case: str,
    kwargs: dict[str, Any],
    wanted: Mapping[str, torch.Tensor],
    quantized: bool,
) -> list[Row]:
    with _same_random_numbers(0):
        got = component.compute(copy.deepcopy(kwargs))
    wanted = as_packed(wanted, got)
    rows = []
    again: Mapping[str, torch.Tensor] | None = None
    for output in component.spec.outputs:
        if output.name == OUTPUT:  # of the graph, not of the model; it has been checked
            continue
        tolerance = TOLERANCES.get(output.dtype, 0.0)
        absolute, relative = _error(wanted.get(output.name), got[output.name])
        if quantized:
            rows.append(_agreement(part.name, output.name, case, absolute, relative, wanted.get(output.name), got))
            continue
        if relative > tolerance:
            # A model that draws random numbers can be held to shapes and finite values only; one that draws the shape of
            # an output, to its rank.
            if again is None:
                with _same_random_numbers(1):
                    again = as_packed(_named(part.model(**copy.deepcopy(kwargs))), got)
            noise = _error(wanted.get(output.name), again.get(output.name))[1]
            if (0 < noise < math.inf and relative < math.inf) or _random_shape(output.name, wanted, again, got):
                tolerance = math.inf
        rows.append(Row(part.name, output.name, case, absolute, relative, tolerance, relative <= tolerance))
    if quantized or all(row.ok for row in rows) or any(row.rel == math.inf for row in rows):
        return rows
    return _with_near_ties(rows, part, kwargs, wanted, got)


def _with_near_ties(
    rows: list[Row],
    part: Part,
    kwargs: dict[str, Any],
    wanted: Mapping[str, torch.Tensor],
    got: Mapping[str, torch.Tensor],
) -> list[Row]:
    """The rows, where the model selects among values that are equal up to rounding, held to its other selections.

    An artifact that equals one of them in every output is right. Where that cannot be shown, an output that another
    selection changes by more than its tolerance is not said to differ: its row stays without `ok`, with a note.
    """

    def run() -> dict[str, torch.Tensor]:
        with _same_random_numbers(0):
            return as_packed(_named(part.model(**copy.deepcopy(kwargs))), got)

    notes: dict[str, str] = {}
    try:
        for outputs, places in selected_otherwise(run, _SELECTIONS):
            note = f"the model selects among values that are equal up to rounding ({', '.join(places)})"
            errors = [_error(outputs.get(row.output), got[row.output]) for row in rows]
            if all(relative <= row.tolerance for row, (_, relative) in zip(rows, errors, strict=True)):
                return [
                    dataclasses.replace(row, abs=absolute, rel=relative, ok=True, note=note)
                    for row, (absolute, relative) in zip(rows, errors, strict=True)
                ]
            for row in rows:
                if not row.ok and _error(wanted.get(row.output), outputs.get(row.output))[1] > row.tolerance:
                    notes.setdefault(row.output, note)
    except Exception as error:  # noqa: BLE001 - a model may do what no dispatch mode follows; then its rows say all there is
        logger.debug("%s: no other selections: %s", part.name, error)
    return [dataclasses.replace(row, note=notes.get(row.output)) for row in rows]


def _random_shape(name: str, *outputs: Mapping[str, torch.Tensor]) -> bool:
    """Whether two runs of the model give an output two shapes, and the artifact gives it the same rank."""
    first, second, *others = (one.get(name) for one in outputs)
    if first is None or second is None or first.shape == second.shape:
        return False
    return all(other is not None and other.dim() == first.dim() for other in others)


def _agreement(
    component: str,
    output: str,
    case: str,
    absolute: float,
    relative: float,
    wanted: torch.Tensor | None,
    got: Mapping[str, torch.Tensor],
) -> Row:
    """How far a quantized output agrees. A wrong shape, dtype, NaN or infinity is an error as ever."""
    if wanted is None or absolute == math.inf or not wanted.is_floating_point() or wanted.numel() == 0:
        return Row(component, output, case, absolute, relative, math.inf, absolute < math.inf)
    kept = torch.isfinite(wanted).cpu()
    a, b = wanted.detach().cpu()[kept].double(), got[output].detach().cpu()[kept].double()
    lengths = float(a.norm() * b.norm())
    cosine = float(a @ b) / lengths if lengths else float(a.norm() == b.norm())
    top1 = None
    if output == "logits" and wanted.dim() > 1:
        top1 = float((wanted.argmax(-1) == got[output].argmax(-1)).float().mean())
    return Row(component, output, case, absolute, relative, math.inf, cosine >= AGREEMENT, cosine, top1)


def _error(wanted: torch.Tensor | None, got: torch.Tensor | None) -> tuple[float, float]:
    """Largest absolute error, and the same relative to the largest wanted value; inf for another shape or dtype."""
    if wanted is None or got is None or wanted.shape != got.shape or wanted.dtype != got.dtype:
        return math.inf, math.inf
    if wanted.numel() == 0:
        return 0.0, 0.0
    wanted, got = wanted.detach().cpu().double(), got.detach().cpu().double()
    finite = torch.isfinite(wanted)
    if not bool(torch.isfinite(got[finite]).all()):
        return math.inf, math.inf
    if not bool(finite.any()):
        return 0.0, 0.0
    absolute = float((wanted - got)[finite].abs().max())
    return absolute, absolute / max(float(wanted[finite].abs().max()), 1e-5)


def _named(outputs: Any) -> dict[str, torch.Tensor]:
    """Tensors of what a module returned, by leaf path; an object's whole numbers are tensors too."""
    numbers_as_tensors(outputs)
    register_objects_in(outputs)
    flat, _ = pytree.tree_flatten_with_path(outputs)
    return {leaf_path(path) or "output": value for path, value in flat if isinstance(value, torch.Tensor)}


def _record(exported: ExportedModel, report: Report) -> None:
    """The worst row of each output goes into the manifest, of a saved artifact at once."""
    rows = [dataclasses.asdict(row) for row in report.worst()]
    exported.manifest = dataclasses.replace(exported.manifest, verification=rows)
    if exported.directory is not None:
        root, saved = open_artifact(exported.directory)
        write_manifest(root, dataclasses.replace(saved, verification=rows))
