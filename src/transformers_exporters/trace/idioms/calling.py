"""Which code of a model is running."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import torch

_OURS = __package__.partition(".")[0]
#: Where torch's files and those of this package begin (not `torchvision`), and what is made of a string.
_OTHERS = (*(f"{place}{os.sep}" for place in (Path(torch.__file__).parent, Path(__file__).parents[2])), "<")
#: Lines of a statement that are read at most.
_LONGEST = 12


def is_models(file: str) -> bool:
    """Whether a file's code is neither torch's nor of this package, nor made up of a string."""
    return not file.startswith(_OTHERS)


def calling_line() -> str:
    """The line of modelling code that is running: that of the innermost frame outside this package."""
    frame = _calling_frame()
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def calling_code() -> CodeType:
    """The function of modelling code that is running."""
    code: CodeType = _calling_frame().f_code
    return code


def calling_place() -> tuple[str, int]:
    """File and line of the code that is running, torch's own included."""
    frame = _calling_frame()
    return frame.f_code.co_filename, frame.f_lineno


def calling_locals() -> Mapping[str, Any]:
    """The local names of the code that is running, torch's own included."""
    values: Mapping[str, Any] = _calling_frame().f_locals
    return values


def _calling_frame() -> Any:
    frame: Any = sys._getframe(2)
    while _OURS in frame.f_globals.get("__name__", "") and frame.f_back is not None:
        frame = frame.f_back
    return frame


def calling_statement() -> str:
    """The running line of modelling code and those that close its brackets, as one line."""
    frame = _calling_frame()
    number, text = frame.f_lineno, ""
    for following in range(number, number + _LONGEST):
        text += " " + linecache.getline(frame.f_code.co_filename, following).strip()
        if all(text.count(opened) <= text.count(closed) for opened, closed in ("()", "[]", "{}")):
            break
    return text.strip()
