"""Choose the sizes to trace at: never 0 or 1, never a number that the model's config knows.

`torch.export` turns an axis of size 1 into a constant, and a model that compares a size with a config value (an image of
the native size skips its position interpolation) traces only the branch of that value. So the exporter traces at sizes
of its own choosing, each tried on the eager model first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..hf.pytrees import register_objects_in
from .axes import AxisNames, images_apart
from .references import is_referenced
from .resize import all_sizes, axis_size, axis_sizes, resize
from .shapes_only import run_forward

logger = logging.getLogger(__name__)

_SEQUENCES = ("sequence", "decoder_sequence", "encoder_sequence", "frames", "samples", "images", "prompts", "points")
_PROMPTS = ("sequence", "decoder_sequence", "encoder_sequence")
# A shorter sequence may shrink to an axis of 1 inside of a model that pools or strides (Canine divides it by 4).
_SHORT = 37
_IMAGE_STEPS = (32, 16, 14, 8)


def choose_sizes(
    model: torch.nn.Module,
    inputs: Mapping[str, Any],
    axes: Mapping[str, AxisNames],
    static: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """The inputs at the sizes of the trace.

    Every change is kept only if the eager model accepts it, all changes at once where possible, else one by one. A size
    that changes the rank of an output is not taken: Nemotron's `logits.squeeze(2)` drops the axis of its one token, and
    no graph returns both.

    Args:
        model: The module that will be traced.
        inputs: Forward kwargs.
        axes: Axis names of every tensor leaf.
        static: Axes that must keep their size.
    """
    constants = config_constants(model)
    wishes = [w for w in _wishes(inputs, axes, constants) if not static & w[0].keys()]
    if not wishes:
        return dict(inputs)
    first = resize(inputs, axes, {name: size for wish in wishes for name, size in wish[0].items()})
    single = any(axis_size(inputs, axes, name) == 1 for wish in wishes for name in wish[0])
    own = _ranks(model, inputs) if single else None
    if _same_ranks(own, _ranks(model, first)):
        return first
    chosen = dict(inputs)
    for options in wishes:
        for sizes, hold in _ways(options):
            candidate = resize(chosen, axes, sizes, hold=hold)
            if _same_ranks(own, _ranks(model, candidate)):
                chosen = candidate
                break
        else:
            logger.debug("the model takes no other size along %s", sorted(options[0]))
    return chosen


def with_images_apart(
    model: torch.nn.Module, inputs: Mapping[str, Any], axes: Mapping[str, AxisNames]
) -> dict[str, AxisNames]:
    """The axis names, with one of their own for the images of a model that takes any number of them beside a text (CLIP).

    A model whose images belong to the rows of its text refuses one image more.
    """
    rows = all_sizes(inputs, axes, "batch")
    images = {path for path, names in axes.items() if path.startswith("pixel_values") and names[:1] == ("batch",)}
    if not images or len(rows) != 1 or "input_ids" not in axes or is_referenced(model):
        return dict(axes)
    apart = images_apart(axes, {path for path, names in axes.items() if names[:1] == ("batch",)})
    several = resize(inputs, axes, {"batch": max(2, rows[0])})
    return apart if runs(model, resize(several, apart, {"images": max(2, rows[0]) + 1})) else dict(axes)


def config_constants(model: torch.nn.Module) -> frozenset[int]:
    """Every integer of the model's config and sub-configs: sizes that a branch of the model may compare with."""
    config = getattr(model, "config", None)
    found: set[int] = set()

    def visit(value: Any) -> None:
        if isinstance(value, bool):
            return
        if isinstance(value, int):
            found.add(value)
        elif isinstance(value, Mapping):
            for item in value.values():
                visit(item)
        elif isinstance(value, list | tuple):
            for item in value:
                visit(item)

    if config is not None and hasattr(config, "to_dict"):
        visit(config.to_dict())
    return frozenset(found)


def runs(model: torch.nn.Module, inputs: Mapping[str, Any]) -> bool:
    """Whether the eager model accepts the inputs."""
    return _ranks(model, inputs) is not None


def _ranks(model: torch.nn.Module, inputs: Mapping[str, Any]) -> list[int] | None:
    """The rank of each output of the eager model, or None if it does not accept the inputs."""
    try:
        with torch.no_grad():
            outputs = run_forward(model, inputs)
    except Exception as error:  # noqa: BLE001 - any refusal counts: models raise whatever their ops raise
        logger.debug("refused: %s", error)
        return None
    register_objects_in(outputs)
    return [leaf.dim() for leaf in pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]


def _same_ranks(own: list[int] | None, others: list[int] | None) -> bool:
    """Whether the model ran and, as far as it returns as many tensors as at the caller's sizes, their ranks are those."""
    return others is not None and (own is None or len(own) != len(others) or own == others)


def _wishes(
    inputs: Mapping[str, Any], axes: Mapping[str, AxisNames], constants: frozenset[int]
) -> list[tuple[dict[str, int], ...]]:
    """For each group of axes that should change: the sizes to try, best first."""
    wishes: list[tuple[dict[str, int], ...]] = []
    rows = all_sizes(inputs, axes, "batch")
    if 1 in rows and len(rows) > 1:  # one row of positions for the whole batch
        wishes.append(({"batch": max(rows)},))
    elif 1 in rows:
        # Images one after the other change with the prompts that they belong to.
        with_them = {name: axis_size(inputs, axes, name) for name in ("images", "patches")}
        apart = with_them["patches"] or axes.get("pixel_values", ())[:1] == ("images",)
        packed = {name: size for name, size in with_them.items() if size and apart}
        wishes.append(tuple({"batch": n, **{name: n * size for name, size in packed.items()}} for n in (2, 3)))
    cached = axis_size(inputs, axes, "cache") or 0
    if cached == 1:
        query = next(iter(axis_sizes(inputs, axes, ("sequence", "decoder_sequence")).values()), 1)
        wishes.append(({"cache": 3, "total_sequence": 3 + query},))
    if cached and axis_size(inputs, axes, "encoder_sequence") == 1:
        wishes.append(tuple({"encoder_sequence": n} for n in (3, 5) if n not in constants))
    for name in _SEQUENCES if not cached else ():
        size = axis_size(inputs, axes, name)
        if size is not None and size > 0 and (size < _SHORT or size in constants):
            longer = (n for n in range(_SHORT, _SHORT + 64) if n not in constants)
            nearby = (n for n in range(max(size, 2) + 1, size + 64) if n not in constants)
            if name == "images":
                # With a prompt, the number of images is in its tokens too.
                alone = axis_size(inputs, axes, "sequence") is None
                patches = axis_size(inputs, axes, "patches")
                wishes += _more_images(size, patches, [*islice(nearby, 3)] if alone or patches is None else [])
            else:
                wishes.append(tuple({name: n} for n in [next(longer), *islice(nearby, 3)]))
    height, width = axis_size(inputs, axes, "height"), axis_size(inputs, axes, "width")
    if height is not None and width is not None and (height in constants or width in constants or height == width):
        steps = dict.fromkeys([*_IMAGE_STEPS, *sorted(c for c in constants if 2 <= c <= 32)[-4:]])
        wishes.append(tuple({"height": height + step, "width": width + 2 * step} for step in steps))
    return wishes


def _ways(options: tuple[dict[str, int], ...]) -> list[tuple[dict[str, int], bool]]:
    """Sizes to try, and whether by repeating the last entry: all of a prompt would ask for more images than there are."""
    prompts = all(sizes.keys() <= set(_PROMPTS) for sizes in options)
    return [(sizes, False) for sizes in options] + ([(options[0], True)] if prompts else [])


def _more_images(size: int, patches: int | None, nearby: list[int]) -> list[tuple[dict[str, int], ...]]:
    """Other numbers of images; of packed ones, whose patches change with them, only where there is one."""
    if patches is None or not nearby:
        return [tuple({"images": n} for n in nearby)] if nearby else []
    return [tuple({"images": n, "patches": n * patches} for n in (2, 3))] if size == 1 else []
