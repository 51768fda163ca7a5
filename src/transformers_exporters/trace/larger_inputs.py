"""Images and audio in which something came out once at the traced size: a graph of larger ones holds for more sizes.

torch.export makes a constant of every axis of size 1, also of one inside of the model: an image that is a single window
(Swin), a single crop or a single cell leaves a graph without windows, which is wrong for images of two; so does audio that
is a single frame behind the encoder's strides (Moonshine). The guards of the program say so. Most are known early in a trace, which then need not be finished: that of Grounding DINO takes 30 s.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sympy
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import FloorDiv

from ..prepare.record import Prepared
from ..prepare.resize import axis_size, axis_sizes, resize
from ..prepare.sizes import runs

logger = logging.getLogger(__name__)

_EXTENTS = ("height", "width", "samples", "frames")
#: A number of windows or cells: a size by way of a division.
_SINGLE = re.compile(r"//.*== 1$")
_INPUT = re.compile(r"L((?:\['\w+'\]|\[\d+\])+)\.size\(\)\[(\d+)\]")


class SingleInInput(BaseException):
    """Ends a trace in which something came out once. Not an `Exception`: modelling code catches those."""


@contextmanager
def stopped_at_single(prepared: Prepared) -> Iterator[None]:
    """While held, a trace ends at the first guard that is right only for inputs with one of something.

    Args:
        prepared: What is traced; there are `larger_inputs`, or the trace would be stopped in vain.

    Raises:
        SingleInInput: In the trace.
    """
    log = ShapeEnv._log_guard

    def log_guard(self: ShapeEnv, prefix: str, g: Any, *args: Any, **kwargs: Any) -> None:
        log(self, prefix, g, *args, **kwargs)
        if prefix == "eval" and _is_single(self, g, prepared):
            raise SingleInInput

    ShapeEnv._log_guard = log_guard  # type: ignore[method-assign]
    try:
        yield
    finally:
        ShapeEnv._log_guard = log  # type: ignore[method-assign]


def has_single(program: ExportedProgram, prepared: Prepared) -> bool:
    """Whether a program, as traced and with all its guards, is right only for inputs with one of something."""
    return any(_SINGLE.search(guard) and _is_about_extents(guard, prepared) for guard in program._guards_code)


def larger_inputs(prepared: Prepared) -> Mapping[str, Any] | None:
    """Inputs with images and audio larger by the caller's.

    Args:
        prepared: What is to be traced. Its model runs here, in eager mode.

    Returns:
        The inputs to trace with, or None: the model refuses them, or these are the larger ones already.
    """
    if (wanted := _wanted(prepared)) is None:
        return None
    inputs = resize(prepared.inputs, prepared.axes, wanted)
    if not runs(prepared.model, inputs):
        return None
    logger.debug("%s: to be traced with %s if something is there once at these sizes", prepared.name, wanted)
    return inputs


def _wanted(prepared: Prepared) -> dict[str, int] | None:
    names = [name for name in _EXTENTS if name not in prepared.static]
    sizes = axis_sizes(prepared.inputs, prepared.axes, names)
    own = {name: axis_size(prepared.original, prepared.axes, name) or 0 for name in sizes}
    grown = any(size > 2 * own[name] for name, size in sizes.items())
    return {name: size + own[name] for name, size in sizes.items()} if sizes and not grown else None


def _is_single(shape_env: ShapeEnv, guard: Any, prepared: Prepared) -> bool:
    """As `_SINGLE` and `_is_about_extents` say of a guard's code."""
    if not isinstance(guard, sympy.Eq) or guard.rhs != 1 or not guard.lhs.atoms(FloorDiv):
        return False
    sources = [shape_env.var_to_sources.get(symbol) for symbol in guard.lhs.free_symbols]
    return all(names and _is_about_extents(names[0].name, prepared) for names in sources)


def _is_about_extents(guard: str, prepared: Prepared) -> bool:
    axes = []
    for path, dim in _INPUT.findall(guard):
        names = prepared.axes.get(".".join(re.findall(r"\w+", path)), ())
        axes.append(names[int(dim)] if int(dim) < len(names) else None)
    return bool(axes) and all(axis in _EXTENTS for axis in axes)
