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
from types import ModuleType, TracebackType
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
            own = _own_modules(self._model)
            for patch in self._patches:
                if patch.when is not None and not patch.when(self._model):
                    continue
                for owner, name in _resolve(patch, own):
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


#: Where modelling code is patched: in transformers' models, and wherever a model of one's own comes from.
_MODELS = "transformers.models.*"


def _resolve(patch: Workaround, own: Sequence[Any]) -> Iterator[tuple[Any, str]]:
    for target in patch.targets:
        module_name, _, path = target.partition(":")
        parents, _, name = path.rpartition(".")
        if "*" in module_name:
            modules = [m for n, m in list(sys.modules.items()) if fnmatch.fnmatchcase(n, module_name)]
            modules += own if module_name == _MODELS else []
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


def _own_modules(model: Any) -> list[Any]:
    """The loaded modules that the classes of a model come from, and those of their packages, without the libraries'."""
    if not hasattr(model, "modules"):
        return []
    classes = {base for part in model.modules() for base in type(part).__mro__}
    names = {cls.__module__ for cls in classes if cls.__module__.partition(".")[0] not in _LIBRARIES}
    packages = tuple(name.rpartition(".")[0] + "." for name in names if "." in name)
    found = [name for name in sys.modules if name in names or name.startswith(packages or ("\0",))]
    return [sys.modules[name] for name in found if isinstance(sys.modules[name], ModuleType)]


#: Packages whose classes a model inherits without being theirs.
_LIBRARIES = {"torch", "transformers", "builtins", __package__.partition(".")[0]}


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
