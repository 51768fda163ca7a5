"""Translations of torch ops that the converter lacks or gets wrong; one file an op, each assigning `TRANSLATION`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def translation_table() -> dict[Any, Callable[..., Any]]:
    """Every translation of this folder, by the torch op that it replaces."""
    table: dict[Any, Callable[..., Any]] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        table.update(importlib.import_module(module.name).TRANSLATION)
    return table
