"""Report the axes that came out constant although the model takes other sizes, and the line that fixed them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import sympy
from torch.export import ExportedProgram

from ..prepare.record import Prepared
from ..prepare.references import is_referenced
from ..prepare.resize import axis_size, resize
from ..prepare.sizes import runs
from .dims import shape_env_of
from .ranges import JOINT, LARGEST_TRIAL
from .record import Traced

logger = logging.getLogger(__name__)


def report_frozen(traced: Traced, prepared: Prepared) -> None:
    """Warn about every named axis that came out constant, or with an end, although the eager model accepts other sizes.

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
    if not untried and (ends := list(_ends(traced, prepared))):
        logger.warning("%s: the graph ends although the model takes other sizes: %s.", prepared.name, "; ".join(ends))


def _ends(traced: Traced, prepared: Prepared) -> Iterator[str]:
    """Where the named axes end that the eager model takes beyond."""
    if "cache" in traced.spec.axes:
        return  # one axis alone, changed beside a cache, makes inputs that do not belong together
    found: set[str] = set()
    for tensor in traced.spec.inputs:
        for dim, name in enumerate(tensor.shape):
            if not isinstance(name, str) or name in found | prepared.static:
                continue
            if prepared.axes.get(tensor.name, ())[dim : dim + 1] != (name,):
                continue
            bounds, beyond = traced.spec.axes[name], []
            if bounds.minimum > bounds.multiple_of:
                beyond.append(bounds.minimum - bounds.multiple_of)
            if bounds.maximum is not None and bounds.maximum < LARGEST_TRIAL:
                beyond.append(bounds.maximum + bounds.multiple_of)
            legal = next((size for size in beyond if _runs(prepared, {name: size})), None)
            if legal is not None:
                found.add(name)
                line = _line(traced.program, tensor.name, dim, excluded=legal)
                reach = f"from {bounds.minimum}" + ("" if bounds.maximum is None else f" to {bounds.maximum}")
                yield f"{name} {reach}" + (f" (by {line})" if line else "")


def _line(program: ExportedProgram, path: str, dim: int, excluded: int | None = None) -> str | None:
    """`file:line: code` of the comparison that made a number of an input's size, or that excludes another size.

    None where torch did not note one.
    """
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
            if guard.expr.free_symbols != {symbol} or not hasattr(frame, "lineno"):
                continue
            if _excludes(guard.expr, symbol, excluded) if excluded else isinstance(guard.expr, sympy.Eq):
                return f"{Path(frame.filename).name}:{frame.lineno}: {(frame.line or '').strip()}"
    return None


def _excludes(question: Any, symbol: sympy.Symbol, size: int) -> bool:
    try:
        return question.xreplace({symbol: sympy.Integer(size)}) is sympy.false
    except AssertionError:  # torch's `Mod` of a negative number
        return False


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
