"""Report the axes that came out constant although the model takes other sizes, and the line that fixed them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import sympy
from torch.export import ExportedProgram

from ..prepare.record import Prepared
from ..prepare.references import is_referenced
from ..prepare.resize import axis_size, resize
from ..prepare.sizes import runs
from .dims import shape_env_of
from .ranges import JOINT
from .record import Traced

logger = logging.getLogger(__name__)


def report_frozen(traced: Traced, prepared: Prepared) -> None:
    """Warn about every named axis that came out constant although the eager model accepts another size.

    A model whose weights stay in its checkpoint is not run for that: the warning leaves open what it accepts.
    """
    frozen: dict[str, list[str]] = {}
    for tensor in traced.spec.inputs:
        for dim, (size, name) in enumerate(zip(tensor.shape, prepared.axes.get(tensor.name, ()), strict=False)):
            if name is not None and name not in prepared.static and isinstance(size, int):
                line = _line(traced.program, tensor.name, dim)
                frozen.setdefault(name, []).append(f"{tensor.name}[{dim}]" + (f" (fixed by {line})" if line else ""))
    untried = is_referenced(prepared.model)
    legal = [name for name in frozen if untried or _accepts_another(prepared, name)]
    if legal:
        listed = "; ".join(f"{name} at {', '.join(frozen[name])}" for name in legal)
        although = "" if untried else " although the model takes other sizes"
        logger.warning("%s: these axes are constant in the graph%s: %s.", prepared.name, although, listed)


def _line(program: ExportedProgram, path: str, dim: int) -> str | None:
    """`file:line: code` of the comparison that made a number of an input's size; None where torch did not note one."""
    shape_env = shape_env_of(program)
    if shape_env is None:
        return None
    name = path.rpartition(".")[2]
    for symbol, sources in getattr(shape_env, "var_to_sources", {}).items():
        texts = [source.name if isinstance(source.name, str) else source.name() for source in sources]
        if not any(name in text and text.endswith(f".size()[{dim}]") for text in texts):
            continue
        for guard in shape_env.guards:
            frame: Any = getattr(guard.sloc, "framework_loc", None)
            if isinstance(guard.expr, sympy.Eq) and guard.expr.free_symbols == {symbol} and hasattr(frame, "lineno"):
                return f"{Path(frame.filename).name}:{frame.lineno}: {(frame.line or '').strip()}"
    return None


def _accepts_another(prepared: Prepared, name: str) -> bool:
    size = axis_size(prepared.inputs, prepared.axes, name)
    if size is None:
        return False
    joint = next((group for group in JOINT if name in group), (name,))
    return any(_runs(prepared, dict.fromkeys(joint, other)) for other in _others(size))


def _others(size: int) -> Iterable[int]:
    return (size + 1, size + 32, 2 * size)


def _runs(prepared: Prepared, sizes: Mapping[str, int]) -> bool:
    return runs(prepared.model, resize(prepared.inputs, prepared.axes, sizes))
