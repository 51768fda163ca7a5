"""Models that take images of one size only: there the height and the width are constants of the trace from the start.

The trace would find that out by itself, but shape algebra about two sizes that cannot vary takes minutes in a model with
windows and strides (SAM 2: 100 s, which are 8 s with constants).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch

from .axes import AxisNames, named_leaves
from .resize import axis_size, resize
from .sizes import runs

logger = logging.getLogger(__name__)

_EXTENTS = frozenset(("height", "width"))


def fixed_images(
    model: torch.nn.Module,
    given: Mapping[str, Any],
    chosen: Mapping[str, Any],
    axes: Mapping[str, AxisNames],
) -> frozenset[str]:
    """The image axes, if the model refuses images of every other size; else nothing.

    Only where every tensor is an image or its mask: beside a prompt, the size of an image is in the number of its tokens
    too, and a refusal says nothing about the size.

    Args:
        model: What will be traced. It runs here, in eager mode.
        given: The caller's inputs.
        chosen: The inputs at the sizes of the trace; the caller's images mean that others were tried and refused.
        axes: Axis names of every tensor leaf.
    """
    tensors = [path for path, leaf in named_leaves(given) if isinstance(leaf, torch.Tensor)]
    if not tensors or not all(_EXTENTS.issubset(axes.get(path, ())) for path in tensors):
        return frozenset()
    height, width = (axis_size(given, axes, name) or 0 for name in ("height", "width"))
    if (axis_size(chosen, axes, "height"), axis_size(chosen, axes, "width")) != (height, width):
        return frozenset()
    others = ((2 * height, 2 * width), (height // 2, width // 2), (height + 32, width + 32), (height + 32, width + 64))
    for high, wide in others:
        if runs(model, resize(chosen, axes, {"height": max(high, 1), "width": max(wide, 1)})):
            return frozenset()
    logger.debug("the model takes images of %d x %d only", height, width)
    return _EXTENTS
