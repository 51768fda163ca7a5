"""Install patches for the length of a trace, count what they do, and put everything back."""

from __future__ import annotations

import builtins
import fnmatch
import functools
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from ..errors import WorkaroundError
from ..exclusive import EXCLUSIVE
from .record import Workaround


class Patching:
    """A context in which the given patches are installed, one thread at a time.

    Every patched attribute is restored on any exit. `fired` counts the calls of each patch that ran.

    Raises:
        WorkaroundError: On entry, if a target is missing or two patches claim the same one.
    """

    def __init__(self, patches: Sequence[Workaround], model: Any = None, disabled: Sequence[str] = ()) -> None:
        self._patches = [p for p in patches if p.id not in disabled]
        self._model = model
        self._restore: list[tuple[Any, str, Any]] = []
        self.fired: Counter[str] = Counter()

    def __enter__(self) -> Patching:
        EXCLUSIVE.acquire()
        try:
            claimed: dict[tuple[int, str], str] = {}
            for patch in self._patches:
                if patch.when is not None and not patch.when(self._model):
                    continue
                for owner, name in _resolve(patch):
                    other = claimed.setdefault((id(owner), name), patch.id)
                    if other != patch.id:
                        raise WorkaroundError(f"{patch.id} and {other} both patch {owner!r}.{name}.")
                    self._install(patch, owner, name)
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo()

    def _install(self, patch: Workaround, owner: Any, name: str) -> None:
        raw = inspect.getattr_static(owner, name, getattr(builtins, name, None))
        replacement = patch.apply(raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw)
        if callable(replacement) and not isinstance(replacement, type):
            replacement = self._counted(patch.id, replacement)
        if isinstance(raw, classmethod | staticmethod):
            replacement = type(raw)(replacement)
        # Only an attribute of the owner itself may be put back; an inherited one is deleted again.
        own = vars(owner).get(name, _ABSENT)
        self._restore.append((owner, name, own))
        setattr(owner, name, replacement)

    def _counted(self, identifier: str, function: Any) -> Any:
        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.fired[identifier] += 1
            return function(*args, **kwargs)

        return counted

    def _undo(self) -> None:
        try:
            for owner, name, own in reversed(self._restore):
                if own is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, own)
            self._restore.clear()
        finally:
            EXCLUSIVE.release()


_ABSENT = object()


def _resolve(patch: Workaround) -> Iterator[tuple[Any, str]]:
    for target in patch.targets:
        module_name, _, path = target.partition(":")
        parents, _, name = path.rpartition(".")
        if "*" in module_name:
            modules = [m for n, m in list(sys.modules.items()) if fnmatch.fnmatchcase(n, module_name)]
            for module in modules:
                for owner in _owners(module, parents):
                    # Where it is defined, where a module holds its own copy of the name, or in place of a builtin.
                    if name in vars(owner) or (owner is module and hasattr(builtins, name)):
                        yield owner, name
            continue
        if module_name.startswith("transformers.models.") and module_name not in sys.modules:
            continue  # a model that this process has not loaded
        owner = _descend(importlib.import_module(module_name), parents)
        if owner is None or not hasattr(owner, name):
            raise WorkaroundError(f"{patch.id}: the target {target} does not exist in the installed version.")
        yield owner, name


def _descend(module: Any, parents: str) -> Any:
    owner = module
    for part in filter(None, parents.split(".")):
        owner = getattr(owner, part, None)
    return owner


def _owners(module: Any, parents: str) -> list[Any]:
    """What `parents` names in a module; its last part may hold a `*`, for the classes that the module defines."""
    if "*" not in parents:
        owner = _descend(module, parents)
        return [] if owner is None else [owner]
    classes = {c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__}
    return sorted((c for c in classes if fnmatch.fnmatchcase(c.__name__, parents)), key=lambda c: c.__name__)
