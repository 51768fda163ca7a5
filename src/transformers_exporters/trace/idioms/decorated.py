"""A method of a model under its decorators, and another one put in its place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the modelling code says, without what decorators put around it."""
    return inspect.unwrap(function)


def with_innermost(function: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    """The function with all its decorators (captured outputs, defaults of the config), around another inner function.

    Args:
        function: As found in the class. It is not changed.
        inner: Takes the arguments of `innermost(function)`.

    Raises:
        TypeError: If a decorator does not hold what it decorates in its closure.
    """
    if not hasattr(function, "__wrapped__"):
        return inner
    wrapped = function.__wrapped__
    if not isinstance(function, FunctionType) or not any(_holds(cell, wrapped) for cell in function.__closure__ or ()):
        raise TypeError(f"the decorator of {function.__qualname__} does not hold the function that it decorates")
    replaced = with_innermost(wrapped, inner)
    cells = tuple(CellType(replaced) if _holds(cell, wrapped) else cell for cell in function.__closure__ or ())
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, closure=cells
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(copy, replaced)
    return copy


def _holds(cell: CellType, value: Any) -> bool:
    try:
        return cell.cell_contents is value
    except ValueError:  # an empty cell
        return False
