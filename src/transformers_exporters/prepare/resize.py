"""Give the inputs other sizes along named axes, without knowing what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree

from .axes import AxisNames, leaf_path


def axis_size(kwargs: Mapping[str, Any], axes: Mapping[str, AxisNames], name: str) -> int | None:
    """The size of a named axis in the first of the inputs that has it, or None if no tensor has it."""
    return next(iter(all_sizes(kwargs, axes, name)), None)


def all_sizes(kwargs: Mapping[str, Any], axes: Mapping[str, AxisNames], name: str) -> list[int]:
    """The different sizes of a named axis in the inputs, in their order."""
    flat, _ = pytree.tree_flatten_with_path(dict(kwargs))
    tensors = ((path, value) for path, value in flat if isinstance(value, torch.Tensor))
    pairs = (pair for path, value in tensors for pair in zip(value.shape, axes.get(leaf_path(path), ()), strict=False))
    return list(dict.fromkeys(int(size) for size, axis in pairs if axis == name))


def axis_sizes(kwargs: Mapping[str, Any], axes: Mapping[str, AxisNames], names: Iterable[str]) -> dict[str, int]:
    """The sizes of those of the named axes that a tensor of the inputs has, and that are not empty."""
    return {name: size for name in names if (size := axis_size(kwargs, axes, name))}


def resize(
    kwargs: Mapping[str, Any], axes: Mapping[str, AxisNames], sizes: Mapping[str, int], *, hold: bool = False
) -> dict[str, Any]:
    """A copy of nested kwargs in which every axis named in `sizes` has the given size.

    A longer axis repeats its entries from the start, a shorter one drops the last, so that ids stay ids and masks stay
    masks. Tensors without such an axis are shared with `kwargs`, not copied.

    Args:
        kwargs: The model's inputs.
        axes: Axis names of every tensor leaf.
        sizes: The wanted sizes by axis name.
        hold: A longer axis repeats its last entry alone, which is seldom the placeholder of an image.
    """

    def one(path: Any, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        for dim, name in enumerate(axes.get(leaf_path(path), ())):
            if name is not None and name in sizes and value.shape[dim] not in (0, sizes[name]):
                index = torch.arange(sizes[name], device=value.device)
                index = index.clamp(max=value.shape[dim] - 1) if hold else index % value.shape[dim]
                value = value.index_select(dim, index)
        return value

    return pytree.tree_map_with_path(one, dict(kwargs))
