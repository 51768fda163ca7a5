"""Images in which something came out once at the traced size: a graph of larger ones holds for more sizes.

torch.export makes a constant of every axis of size 1, also of one inside of the model: an image that is a single window
(Swin), a single crop or a single cell leaves a graph without windows, which is wrong for images of two. The guards of the
program say so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from torch.export import ExportedProgram

from ..prepare.record import Prepared
from ..prepare.resize import axis_size, resize
from ..prepare.sizes import runs

logger = logging.getLogger(__name__)

_IMAGE = ("height", "width")
#: A number of windows or cells: a size by way of a division.
_SINGLE = re.compile(r"//.*== 1$")
_INPUT = re.compile(r"L((?:\['\w+'\]|\[\d+\])+)\.size\(\)\[(\d+)\]")


def larger_images(program: ExportedProgram, prepared: Prepared) -> Mapping[str, Any] | None:
    """Inputs with images larger by the caller's, if the program is right only for images with one of something.

    Args:
        program: As traced, with all its guards.
        prepared: What was traced. Its model runs here, in eager mode.

    Returns:
        The inputs to trace with, or None: nothing came out once, or larger images were traced already.
    """
    if not any(_is_about_images(guard, prepared) for guard in program._guards_code):
        return None
    sizes = {name: axis_size(prepared.inputs, prepared.axes, name) for name in _IMAGE}
    own = {name: axis_size(prepared.original, prepared.axes, name) for name in _IMAGE}
    wanted = {name: size + by for name in _IMAGE if (size := sizes[name]) and (by := own[name]) and size <= 2 * by}
    inputs = resize(prepared.inputs, prepared.axes, wanted)
    if len(wanted) < len(_IMAGE) or not runs(prepared.model, inputs):
        return None
    logger.debug("%s: something is there once in the traced images; tracing with %s", prepared.name, wanted)
    return inputs


def _is_about_images(guard: str, prepared: Prepared) -> bool:
    if not _SINGLE.search(guard):
        return False
    axes = []
    for path, dim in _INPUT.findall(guard):
        names = prepared.axes.get(".".join(re.findall(r"\w+", path)), ())
        axes.append(names[int(dim)] if int(dim) < len(names) else None)
    return bool(axes) and all(axis in _IMAGE for axis in axes)
