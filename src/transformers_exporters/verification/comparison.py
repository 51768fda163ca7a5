"""Hold what an artifact computes against what its model computes."""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..hf.exported import ExportedComponent
from ..hf.near_ties import selected_otherwise
from ..hf.pieces import as_packed
from ..hf.pytrees import register_objects_in
from ..prepare.axes import leaf_path
from ..prepare.counters import numbers_as_tensors
from ..prepare.record import Part
from ..runtime.assumed import OUTPUT
from .report import AGREEMENT, Row

logger = logging.getLogger(__name__)

#: The largest accepted error of an output by dtype, relative to the output's largest value. float32 leaves room for
#: another order of summation in deep models; the 16-bit ones for a few units in the last place. Integers are exact.
TOLERANCES: Mapping[str, float] = {"float64": 1e-3, "float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2}

#: Other selections that are tried: a single tie is settled by one of the first few.
_SELECTIONS = 8


@contextmanager
def _same_random_numbers(seed: int) -> Iterator[None]:
    """While held, the random numbers of the CPU are those of a seed; afterwards they go on as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def model_outputs(part: Part, case: str, kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor] | None:
    """What the model computes, or None where it does not take these inputs."""
    try:
        with _same_random_numbers(0):
            return _named(part.model(**copy.deepcopy(dict(kwargs))))
    except Exception as error:  # noqa: BLE001 - any refusal counts: models raise whatever their ops raise
        logger.debug("%s refuses %s: %s", part.name, case, error)
        return None


def compare(
    component: ExportedComponent,
    part: Part,
    case: str,
    kwargs: dict[str, Any],
    wanted: Mapping[str, torch.Tensor],
    quantized: bool,
) -> list[Row]:
    """The rows of one component in one case.

    Args:
        component: The artifact's.
        part: The model's, which it came from.
        case: The sizes, as text.
        kwargs: The inputs, at those sizes.
        wanted: What the model computes, by leaf path.
        quantized: Whether the artifact is.
    """
    with _same_random_numbers(0):
        got = component.compute(copy.deepcopy(kwargs))
    wanted = as_packed(wanted, got)
    rows = []
    again: Mapping[str, torch.Tensor] | None = None
    for output in component.spec.outputs:
        if output.name == OUTPUT:  # of the graph, not of the model; it has been checked
            continue
        tolerance = TOLERANCES.get(output.dtype, 0.0)
        absolute, relative = error_of(wanted.get(output.name), got[output.name])
        if quantized:
            rows.append(_agreement(part.name, output.name, case, absolute, relative, wanted.get(output.name), got))
            continue
        if relative > tolerance:
            # A model that draws random numbers can be held to shapes and finite values only; one that draws the shape of
            # an output, to its rank.
            if again is None:
                with _same_random_numbers(1):
                    again = as_packed(_named(part.model(**copy.deepcopy(kwargs))), got)
            noise = error_of(wanted.get(output.name), again.get(output.name))[1]
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
            errors = [error_of(outputs.get(row.output), got[row.output]) for row in rows]
            if all(relative <= row.tolerance for row, (_, relative) in zip(rows, errors, strict=True)):
                return [
                    dataclasses.replace(row, abs=absolute, rel=relative, ok=True, note=note)
                    for row, (absolute, relative) in zip(rows, errors, strict=True)
                ]
            for row in rows:
                if not row.ok and error_of(wanted.get(row.output), outputs.get(row.output))[1] > row.tolerance:
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


def error_of(wanted: torch.Tensor | None, got: torch.Tensor | None) -> tuple[float, float]:
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
