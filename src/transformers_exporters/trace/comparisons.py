"""Comparisons of sizes that a model's own code decides by, noted during the trace.

`if height * width > 100:` is answered at the traced sizes. torch.export notes the answer as a guard, among hundreds that
say nothing about the graph, and an artifact has no guards. So those that modelling code itself asks for are noted apart.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sympy
import torch

from ..runtime.axis_expressions import holds
from .dims import shape_env_of, text_of
from .idioms.calling import is_models
from .record import Traced

#: The attribute of a `ShapeEnv` that holds what was noted in its trace: the line of the model by comparison.
_NOTED = "compared_by_model"
#: Torch's frames between the question and the code that asks it: `bool`, `max` and `abs` of a symbol.
_ASKING = tuple(str(Path(torch.__file__).parent / part) for part in ("__init__.py", "fx/experimental/sym_node.py"))


@dataclass(frozen=True)
class Decision:
    """One comparison as the trace answered it.

    Attributes:
        text: Over axis names, for `runtime.axis_expressions.holds`.
        line: Of the model, that makes it.
    """

    text: str
    line: str

    def is_broken(self, sizes: Mapping[str, int]) -> bool:
        """Whether the model decides otherwise at these sizes."""
        return holds(self.text, sizes) is False


@contextmanager
def noted_decisions() -> Iterator[None]:
    """While held, comparisons of sizes that modelling code decides by are noted in their trace's `ShapeEnv`."""
    originals: dict[Any, Callable[[Any], bool]] = {kind: kind.__bool__ for kind in (torch.SymBool, torch.SymInt)}

    def noting(original: Callable[[Any], bool]) -> Callable[[Any], bool]:
        @functools.wraps(original)
        def truth(self: Any) -> bool:
            expression = getattr(self.node, "expr", None)  # a constant's node has none
            answer = original(self)
            line = _asking_line() if expression is not None else None
            if line is not None:
                question = expression if isinstance(self, torch.SymBool) else sympy.Ne(expression, 0)
                noted = vars(self.node.shape_env).setdefault(_NOTED, {})
                noted.setdefault(question if answer else sympy.Not(question), line)
            return answer

        return truth

    try:
        for kind, original in originals.items():
            kind.__bool__ = noting(original)
        yield
    finally:
        for kind, original in originals.items():
            kind.__bool__ = original


def _asking_line() -> str | None:
    """`file:line: code` of the modelling code that asks for a truth value itself; None if an op does."""
    frame: Any = sys._getframe(2)
    ours = __package__.partition(".")[0]
    while frame is not None and (
        frame.f_code.co_filename.startswith(_ASKING) or frame.f_globals.get("__name__", "").partition(".")[0] == ours
    ):
        frame = frame.f_back
    if frame is None or not is_models(frame.f_code.co_filename):
        return None
    code = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}: {code}"


def decisions_of(traced: Traced) -> list[Decision]:
    """The comparisons of a trace over axes alone, each once."""
    shape_env = shape_env_of(traced.program)
    found: dict[str, Decision] = {}
    for question, line in getattr(shape_env, _NOTED, {}).items():
        for each in sympy.And.make_args(shape_env.replace(question)):
            over_axes = all(str(symbol) in traced.symbols for symbol in each.free_symbols)
            if isinstance(each, sympy.Rel) and each.free_symbols and over_axes:
                text = text_of(each, traced.symbols)
                found.setdefault(text, Decision(text, line))
    return list(found.values())
