"""The devices that a program can be lowered to, one file each."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol, cast

from torch.export import ExportedProgram

from ....trace.record import Traced


class Target(Protocol):
    """What a file of this folder has."""

    #: aten operators that are kept whole in the edge program.
    WHOLE: Sequence[Any]

    def check(self, traced: Traced) -> None:
        """Raise `UnsupportedModelError` or `MissingBackendError` for what the device cannot run."""
        ...

    def rewrite(self, program: ExportedProgram) -> None:
        """Say the traced graph, in place, in operators that the device computes."""
        ...

    def delegate(self, edge: Any) -> Any:
        """`EdgeProgramManager` -> the same with the device's share of the nodes handed to it."""
        ...


def find_target(name: str) -> Target:
    """The file of a `backend` name that `ExecutorchConfig` has checked."""
    return cast(Target, import_module(f"{__name__}.{name}"))
