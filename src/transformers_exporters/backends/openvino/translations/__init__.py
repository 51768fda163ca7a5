"""Translations of traced ops that OpenVINO's PyTorch frontend lacks or gets wrong: one file an op family.

A file assigns `TRANSLATIONS`: op name (as `str(node.target)`) -> function from a `Call` to OpenVINO outputs. An op with
neither a translation here nor a rule in the frontend is decomposed (see `expand`), and is an error when it cannot be.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ..call import Translation


@cache
def translations() -> dict[str, Translation]:
    """Every translation of this folder by op name. Two files that claim one op are an error."""
    found: dict[str, Translation] = {}
    for module in pkgutil.iter_modules(__path__):
        table: dict[str, Translation] = importlib.import_module(f"{__name__}.{module.name}").TRANSLATIONS
        if claimed := sorted(found.keys() & table.keys()):
            raise ValueError(f"{module.name} translates {claimed[0]}, which another file translates already.")
        found.update(table)
    return found
