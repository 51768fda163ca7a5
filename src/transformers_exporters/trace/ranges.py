"""Prove how far a traced graph reaches: widen the ranges that torch.export narrowed for no reason.

A trace compares sizes (is this axis 1? is it above the window?) and torch.export turns every answer into a bound. Some
bounds are the model's own, some only mean "not 1", some are a branch that the graph has lost. The difference is measured:
where the eager model accepts a size outside of the bound and the traced program computes the same there, the bound goes.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import logging
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from ..artifact.spec import AxisRange
from ..prepare.axes import AxisNames, with_traced_names
from ..prepare.record import Prepared
from ..prepare.references import is_referenced
from ..prepare.resize import axis_size, axis_sizes, resize
from ..prepare.untouched import kept_weights, untouched
from .comparisons import decisions_of
from .pinned_sizes import pinned_ranges, unrolls
from .record import Traced

logger = logging.getLogger(__name__)

#: Axes that models resize together.
JOINT = (("height", "width"),)
# The number of a layer in the name of an axis of a cache (`cache_layers_3_conv_states_0_2`).
_LAYER = re.compile(r"(?<=_layers_)\d+(?=_)")
_SMALL = (1, 2, 3, 4, 8, 16, 32)
#: Above this, trying a size would cost more than the knowledge is worth.
LARGEST_TRIAL = 4096
# From here on a trial has two rows: Doge's tiny model takes 10 GB for seven rows of 4097 tokens, Align's a minute for thirteen
# images of 519 pixels.
_FEW_ROWS, _FEW_IMAGES = 512, 128 * 128
# A trial that makes a larger tensor ends there: sparse attention with 2048 chosen keys took 10 GB for a model of 3 MB.
_MOST_BYTES = 2**30
_RELATIVE_TOLERANCE = 1e-3


class _TooLarge(Exception):
    """A trial would need too much memory."""


class _Bounded(TorchDispatchMode):
    """While held, an op whose result takes more than `_MOST_BYTES` ends the computation."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        large = {memory.data_ptr() for memory in _memory_of(result) if memory.nbytes() > _MOST_BYTES}
        if large and large - {memory.data_ptr() for memory in _memory_of((args, kwargs))}:  # not a view of a weight
            raise _TooLarge(f"{func} makes more than {_MOST_BYTES} bytes")
        return result


def _memory_of(values: Any) -> list[torch.UntypedStorage]:
    return [each.untyped_storage() for each in tree_leaves(values) if isinstance(each, torch.Tensor)]


class Trial:
    """The eager model and the traced program, on inputs of other sizes.

    Attributes:
        traced: The program and its border.
        prepared: What was traced.
    """

    def __init__(self, traced: Traced, prepared: Prepared) -> None:
        self.prepared = prepared
        self.traced = traced
        self._too_large = math.inf

    def same(self, sizes: Mapping[str, int]) -> bool | None:
        """Whether the program computes what the model computes at these sizes.

        None where the model itself refuses, or a trial would need too much memory.
        """
        prepared = self.prepared
        if max(sizes.values()) >= _FEW_ROWS or sizes.get("height", 1) * sizes.get("width", 1) >= _FEW_IMAGES:
            sizes = {**self._few_rows(), **sizes}
        if max(sizes.values()) >= self._too_large:
            return None
        logger.debug("%s: trying %s", prepared.name, dict(sizes))
        try:
            with _Bounded():
                verdict = self.agrees(resize(prepared.inputs, self.axes, _with_parts(prepared, sizes)))
                with_images = _with_images(prepared, sizes)
                if verdict is None and with_images:
                    verdict = self.agrees(resize(prepared.inputs, self.axes, with_images))
                return verdict
        except _TooLarge as error:
            logger.debug("%s: %s", prepared.name, error)
            self._too_large = max(sizes.values())
            return None

    def agrees(self, inputs: Mapping[str, Any]) -> bool | None:
        """The same of inputs."""
        model = self.prepared.model
        try:
            with untouched(model), kept_weights(model), torch.no_grad():
                wanted = _by_path(model(**copy.deepcopy(dict(inputs))))
        except _TooLarge:
            raise
        except Exception as error:  # noqa: BLE001 - any refusal counts: models raise whatever their ops raise
            logger.debug("%s refuses: %s", self.prepared.name, error)
            return None
        try:
            with torch.no_grad():
                got = _by_path(self._run(**copy.deepcopy(dict(inputs))))
        except _TooLarge:
            raise
        except Exception as error:  # noqa: BLE001 - a baked size fails in whatever op meets it first
            logger.debug("%s: the program fails: %s", self.prepared.name, error)
            return False
        # Whole numbers beside others are chosen by these (`argmax`), and may be chosen otherwise among equals.
        exact = not any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in wanted.values())
        return wanted.keys() == got.keys() and all(_close(wanted[path], got[path], exact) for path in wanted)

    def _few_rows(self) -> dict[str, int]:
        """Two rows, and two images where there is one for each row."""
        known, static = self.traced.spec.axes, self.prepared.static
        names = [name for name in ("batch", "images") if name in known and name not in static]
        rows = axis_sizes(self.prepared.original, self.prepared.axes, names)
        if len(set(rows.values())) > 1:
            rows.pop("images", None)
        return {name: max(2, known[name].minimum) for name in rows}

    @functools.cached_property
    def axes(self) -> dict[str, AxisNames]:
        """The names of the inputs' axes, those included that only the trace names."""
        return with_traced_names(self.prepared.axes, self.traced.spec.inputs)

    @functools.cached_property
    def _run(self) -> Callable[..., Any]:
        """The program as a module, which is made once: that takes longer than a call of it."""
        return self.traced.program.module(check_guards=False)


def prove_ranges(traced: Traced, prepared: Prepared) -> Traced:
    """The traced component with ranges that were tried on the eager model.

    Args:
        traced: As described after the trace.
        prepared: What was traced. Its model runs here, in eager mode.
    """
    unrolled = unrolls(traced.program)
    if is_referenced(prepared.model) and not unrolled:
        return traced  # a trial would read every weight of the checkpoint
    ranges, pinned = dict(traced.spec.axes), pinned_ranges(traced)
    if is_referenced(prepared.model):
        return dataclasses.replace(traced, spec=dataclasses.replace(traced.spec, axes=ranges | pinned))
    if "cache" in ranges and not unrolled:
        pinned = {}  # one axis alone, changed beside a cache, makes inputs that do not belong together: they tell nothing
    constraints = traced.program.range_constraints
    narrowed = dict(constraints)
    # A trial outside of the bounds must reach the graph; what holds is written back below.
    constraints.update({symbol: ValueRanges(1, int_oo) for symbol in constraints if str(symbol) in traced.symbols})
    trial = Trial(traced, prepared)
    for group in _groups(ranges):
        held = {name: pinned[name] for name in group if name in pinned}
        # The traced program itself is right at other sizes where it calls an LSTM; the one that a backend unrolls is not.
        if held and (unrolled or _wrong_beyond(trial, {name: ranges[name] for name in group} | held)):
            ranges.update(held)
            continue
        narrow = {name: ranges[name] for name in group if ranges[name].minimum > 1 or ranges[name].maximum is not None}
        if narrow:
            ranges.update(_widen(trial, narrow))
    constraints.update(
        {symbol: _bounds(narrowed[symbol], ranges.get(traced.symbols.get(str(symbol), ""))) for symbol in narrowed}
    )
    return dataclasses.replace(traced, spec=dataclasses.replace(traced.spec, axes=ranges))


def _bounds(narrowed: ValueRanges[Any], proved: AxisRange | None) -> ValueRanges[Any]:
    """torch's form of a proved range; a lower bound of 1 is written as torch's own 2, which it does not check."""
    if proved is None:
        return narrowed
    lower = min(narrowed.lower, max(proved.minimum, 2))
    return ValueRanges(lower, int_oo if proved.maximum is None else max(narrowed.lower, proved.maximum))


def _groups(ranges: Mapping[str, AxisRange]) -> list[tuple[str, ...]]:
    """The axes that are tried together: those of JOINT, and those that differ by the layer whose cache they are of."""
    groups: dict[Any, list[str]] = {}
    for name, bounds in ranges.items():
        alike = next((group for group in JOINT if name in group), (_LAYER.sub("", name), bounds))
        groups.setdefault(alike, []).append(name)
    return sorted((tuple(names) for names in groups.values()), key=lambda group: group not in JOINT)


def _widen(trial: Trial, narrow: Mapping[str, AxisRange]) -> dict[str, AxisRange]:
    minimum = max(bounds.minimum for bounds in narrow.values())
    maxima = [bounds.maximum for bounds in narrow.values() if bounds.maximum is not None]
    prepared = trial.prepared
    known = trial.traced.spec.axes
    sizes = axis_sizes(prepared.inputs, trial.axes, known)
    decisions = decisions_of(trial.traced) if "cache" not in known else []
    own = axis_sizes(prepared.original, prepared.axes, narrow).values()
    low, high = minimum, min(maxima, default=None)
    for size in sorted({*_SMALL, *own, minimum // 2, minimum - 1}, reverse=True):
        if 0 < size < low:
            verdict = trial.same(dict.fromkeys(narrow, size))
            if verdict is False and not any(each.is_broken(sizes | dict.fromkeys(narrow, size)) for each in decisions):
                break  # where another branch of the model explains it, `decisions` says for which sizes the graph is
            low = size if verdict else low
    if high is not None and high < LARGEST_TRIAL:
        beyond = [trial.same(dict.fromkeys(narrow, size)) for size in (high + 1, 2 * high + 1)]
        if True in beyond and False not in beyond:
            high = None
    return {
        name: AxisRange(
            minimum=min(low, bounds.minimum),
            maximum=None if high is None and bounds.maximum is not None else bounds.maximum,
            multiple_of=bounds.multiple_of,
        )
        for name, bounds in narrow.items()
    }


def _wrong_beyond(trial: Trial, reach: Mapping[str, AxisRange]) -> bool:
    """Whether the program is wrong at a size outside of those for which its comparisons hold."""
    low = max(bounds.minimum for bounds in reach.values()) - 1
    high = min((bounds.maximum for bounds in reach.values() if bounds.maximum is not None), default=None)
    sizes = [low] if low else []
    if high is not None and high < LARGEST_TRIAL:
        sizes += [high + 1, 2 * high + 1]
    return any(trial.same(dict.fromkeys(reach, size)) is False for size in sizes)


def wrong_sizes(traced: Traced, prepared: Prepared) -> dict[str, int]:
    """The caller's sizes of the image axes, if the graph has baked in a size of theirs; empty if it has not.

    Model code makes numbers of sizes in ways that no trace sees (`int(math.sqrt(patches))`). So the graph is tried on the
    caller's images and on some up to twice as large. Where it is wrong the axes have to be constant.
    """
    if is_referenced(prepared.model) or {"height", "width"} & prepared.static:
        return {}
    free = {size for tensor in traced.spec.inputs for size in tensor.shape if isinstance(size, str)}
    own = axis_sizes(prepared.original, prepared.axes, ("height", "width"))
    if not own or not free & own.keys():
        return {}
    # Where the graph is known to end before twice the size, as far as it goes.
    ends = {name: bounds.maximum for name, bounds in traced.spec.axes.items() if bounds.maximum is not None}
    larger = {name: min(2 * size, ends.get(name, 2 * size)) for name, size in own.items()}
    tried = [prepared.original, resize(prepared.original, prepared.axes, larger)]
    trial = Trial(traced, prepared)
    if not any(trial.agrees(inputs) is False for inputs in tried):
        return {}
    listed = ", ".join(f"{name}={size}" for name, size in own.items())
    logger.warning(
        "%s: %s are constant in the graph although the model takes other sizes: its code computes with numbers made of them "
        "that no trace follows (such as a logarithm or a root). Resize images to that size, or export once for each size.",
        prepared.name,
        listed,
    )
    return own


def _by_path(outputs: Any) -> dict[str, Any]:
    """Leaves by path: the model and the program may fill the fields of an output in different orders."""
    return {pytree.keystr(path): leaf for path, leaf in pytree.tree_flatten_with_path(outputs)[0]}


def _with_parts(prepared: Prepared, sizes: Mapping[str, int]) -> dict[str, int]:
    """A mask over the cache and the query changes with both: the query as far as it goes, the cache for the rest."""
    total = sizes.get("total_sequence")
    if total is None:
        return dict(sizes)
    queries = axis_sizes(prepared.inputs, prepared.axes, ("sequence", "decoder_sequence")) or {"sequence": 1}
    name, size = next(iter(queries.items()))
    query = min(size, total)
    return {**sizes, name: query, "cache": total - query}


def _with_images(prepared: Prepared, sizes: Mapping[str, int]) -> dict[str, int]:
    """Images that come one after the other change with the prompts that they belong to; empty where there are none."""
    rows = axis_size(prepared.inputs, prepared.axes, "batch")
    packed = axis_sizes(prepared.inputs, prepared.axes, ("images", "patches"))
    if not rows or not packed or "batch" not in sizes or any(size % rows for size in packed.values()):
        return {}
    return {**{name: size // rows * sizes["batch"] for name, size in packed.items()}, **sizes}


def _close(wanted: Any, got: Any, exact: bool) -> bool:
    if not isinstance(wanted, torch.Tensor) or not isinstance(got, torch.Tensor):
        return True
    if wanted.shape != got.shape:
        return False
    if not wanted.is_floating_point() or wanted.numel() == 0:
        return not exact or torch.equal(wanted, got)
    finite = torch.isfinite(wanted)
    if not bool(finite.any()):
        return True
    scale = max(wanted[finite].abs().max().item(), 1e-5)
    return (wanted - got)[finite].abs().max().item() <= _RELATIVE_TOLERANCE * scale
