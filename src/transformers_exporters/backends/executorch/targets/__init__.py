"""The devices that a program can be lowered to, one file each."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from executorch.exir import EdgeProgramManager
from torch.export import ExportedProgram

from ....trace.record import Traced


class Target(Protocol):
    """What a file of this folder has."""

    def check(self, traced: Traced) -> None:
        """Raise `UnsupportedModelError` or `MissingBackendError` for what the device cannot run."""
        ...

    def delegate(self, program: ExportedProgram) -> EdgeProgramManager:
        """Rewrite, decompose and partition; `program` may be changed."""
        ...


def find_target(name: str) -> Target:
    """The file of a `backend` name that `ExecutorchConfig` has checked."""
    return cast(Target, import_module(f"{__name__}.{name}"))
