"""Say what a value looks like, so that work on one operator is done once for all of a model's equal layers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
import torch.utils._pytree as pytree

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def meta_key(values: Any) -> Hashable:
    """A key that is equal for two trees of fake tensors, sizes and constants between which no operator can tell.

    Tensors count by dtype, device, sizes and strides; symbolic sizes by their expression; the rest by type and value.
    """
    leaves, structure = pytree.tree_flatten(values)
    return (structure, *map(_leaf, leaves))


def _leaf(value: Any) -> Hashable:
    if isinstance(value, torch.Tensor):
        return (
            value.dtype,
            value.device,
            value.requires_grad,
            tuple(map(size_key, value.shape)),
            tuple(map(size_key, value.stride())),
            size_key(value.storage_offset()),
        )
    if isinstance(value, _SYMBOLIC):
        return (type(value), value.node.expr)
    # 1, 1.0 and True are equal to Python, 0.0 and -0.0 too; no operator takes them for the same.
    return (type(value), repr(value) if isinstance(value, float) else value)


def size_key(size: Any) -> Hashable:
    """A size, or the expression of a symbolic one. Comparing the sizes themselves would ask for a proof."""
    return size.node.expr if isinstance(size, torch.SymInt) else size


def makes_sizes(target: Any) -> bool:
    """Whether an operator's result has a size, or is a number, that data decides: a new symbol at each call."""
    return isinstance(target, torch._ops.OpOverload) and bool(_NEW_SIZES & set(target.tags))


_NEW_SIZES = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
