"""Find a backend by its format name. A backend is one folder (or one installed package) that declares a `Backend`."""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from packaging.version import Version

from .errors import ConfigError, MissingBackendError

#: Entry-point group in which an installed package announces a `Backend` object.
ENTRY_POINT_GROUP = "transformers_exporters.backends"

_BUILTIN = ("dynamo", "onnx", "openvino", "executorch")
_registered: dict[str, Backend] = {}


@dataclass(frozen=True)
class Requirement:
    """A package that a backend needs: its hard minimum and the version it was tested with.

    `builds` names other distributions of the same package (`onnxruntime-gpu`), of which one is enough.
    """

    minimum: str
    tested: str
    builds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Backend:
    """Where the parts of a backend are. Dotted references `package.module:attribute`, imported only when used.

    Attributes:
        format: The value of `export_format`.
        extra: The pip extra that installs its packages.
        config: The config dataclass, a subclass of `configs.ExportConfig`.
        lower: `(traced: trace.record.Traced, config) -> backends.contract.Lowered`.
        save: `(components: Sequence[Lowered], directory: Path, weights: WeightStore | None) -> dict[name, files]`.
        open: `(directory: Path, component: artifact.spec.ComponentSpec, **runtime_options) -> runtime.session.Session`.
        requires: What `lower` and `save` need, by distribution name.
        runs_on: What `open` needs, by distribution name.
        normal_form: Whether the traced graph is rewritten to the shared normal form (`repair.core_ops`). False: it stays as
            it was traced.
        ops: Patterns of torch ops (`"aten.rand*"`, `"*"`) besides the normal form that `lower` is given where they have no
            decomposition, or always where a pattern is an op's full name; any other is an error before `lower`.
        experts: The `experts_implementation` that mixture-of-experts layers are traced with.
        patches: Package of this backend's trace-time patches, or None.
        fixes: Package of this backend's repairs of the traced graph, or None.
    """

    format: str
    extra: str
    config: str
    lower: str
    save: str
    open: str
    requires: Mapping[str, Requirement] = field(default_factory=dict)
    runs_on: Mapping[str, Requirement] = field(default_factory=dict)
    normal_form: bool = True
    ops: tuple[str, ...] = ()
    experts: str = "batched_mm"
    patches: str | None = None
    fixes: str | None = None

    def load(self, part: str) -> Any:
        """Import one of the dotted references (`"config"`, `"lower"`, `"save"`, `"open"`)."""
        check_requirements(self.requires if part in ("lower", "save") else self.runs_on if part == "open" else {}, self)
        module, _, attribute = getattr(self, part).partition(":")
        return getattr(importlib.import_module(module), attribute)


def register_backend(backend: Backend) -> None:
    """Add a backend for this process. Raises `ConfigError` if its format name is taken by another one."""
    known = _registered.get(backend.format)
    if backend.format in _BUILTIN or (known is not None and known != backend):
        raise ConfigError(f"The export format {backend.format!r} is already registered; choose another name.")
    _registered[backend.format] = backend


def formats() -> list[str]:
    """The registered format names, built-in ones first."""
    return [*_BUILTIN, *sorted({*_registered, *_entry_points()} - set(_BUILTIN))]


def find_backend(format: str) -> Backend:
    """The backend of a format name. Raises `ConfigError` listing the registered names if there is none."""
    if format in _BUILTIN:
        backend = importlib.import_module(f"{__package__}.backends.{format}").BACKEND
    elif format in _registered:
        backend = _registered[format]
    elif format in _entry_points():
        backend = _entry_points()[format].load()
    else:
        raise ConfigError(f"Unknown export format {format!r}; registered formats are {', '.join(formats())}.")
    assert isinstance(backend, Backend)
    return backend


@cache
def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    return {point.name: point for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)}


@cache
def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


_drift_warned: set[str] = set()


def check_requirements(requires: Mapping[str, Requirement], backend: Backend) -> None:
    """Raise `MissingBackendError` for a missing or too old package; warn once a package when it is not the tested one."""
    require(requires, f"the {backend.format} backend", backend.extra)


def require(requires: Mapping[str, Requirement], user: str, extra: str) -> None:
    """The same for anything that needs packages: `user` names it, `extra` is the pip extra that installs them."""
    hint = f'pip install "transformers-exporters[{extra}]"'
    for package, requirement in requires.items():
        version = next(filter(None, map(_installed, (package, *requirement.builds))), None)
        if version is None:
            raise MissingBackendError(f"{_capital(user)} needs the package {package}: run {hint}.")
        if Version(version) < Version(requirement.minimum):
            raise MissingBackendError(
                f"{_capital(user)} needs {package} >= {requirement.minimum}, found {version}: run {hint}."
            )
        if Version(version).release != Version(requirement.tested).release and package not in _drift_warned:
            _drift_warned.add(package)
            warnings.warn(
                f"{package} {version} is installed; {user} was tested with {requirement.tested}.",
                stacklevel=3,
            )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
