"""Find the workarounds of a folder."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import pkgutil
from functools import cache
from graphlib import TopologicalSorter

from packaging.specifiers import SpecifierSet

from ..errors import WorkaroundError
from .record import Workaround

_ROOT = __package__.rpartition(".")[0] + "."


@cache
def collect(package: str) -> tuple[Workaround, ...]:
    """Every workaround below `package` that applies to the installed versions, in the order in which they must run.

    Raises:
        WorkaroundError: If a module below `package` has no `WORKAROUND`, or an `after` names an unknown id.
    """
    root = importlib.import_module(package)
    found: dict[str, Workaround] = {}
    for module in pkgutil.walk_packages(root.__path__, package + "."):
        if module.ispkg or module.name.rpartition(".")[2].startswith("_"):
            continue
        record = getattr(importlib.import_module(module.name), "WORKAROUND", None)
        if not isinstance(record, Workaround):
            raise WorkaroundError(f"{module.name} must assign a Workaround to WORKAROUND.")
        identifier = module.name.removeprefix(_ROOT)
        found[identifier] = dataclasses.replace(record, id=identifier)
    order = TopologicalSorter({name: [a for a in w.after if a in found] for name, w in sorted(found.items())})
    return tuple(found[name] for name in order.static_order() if applies_here(found[name]))


def applies_here(workaround: Workaround) -> bool:
    """Whether the installed versions are those for which the workaround was written."""
    for package, specifier in workaround.applies.items():
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return False
        if not SpecifierSet(specifier).contains(version, prereleases=True):
            return False
    return True
