"""What a workaround says about itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Workaround:
    """One way around one defect. A workaround is one file that assigns `WORKAROUND`, and one test of the same path.

    Attributes:
        reason: One sentence: what breaks, where, seen in which models.
        upstream: The issue's address, or `none: <why it is ours>`.
        targets: For a patch, `package.module:Class.attribute`. The module may hold a `*` (`transformers.models.*`): then
            every loaded module that has the attribute is patched. There the class may hold one too (`*Mixer.forward`): then
            every such class that the module defines. `transformers.models.*` also stands for the modules of a model that
            is defined elsewhere, and of their package. For a repair, the op overloads that it rewrites.
        apply: A patch takes the original attribute and returns its replacement. A repair takes an `ExportedProgram`,
            rewrites its graph in place, and returns how many places it changed.
        applies: Version specifiers by package (`{"torch": "<2.15"}`); outside of them the workaround is dropped.
        when: For a patch, called with the model about to be traced; False leaves the patch out.
        after: Ids of workarounds that must run before this one.
        id: Its path below the package, dots for slashes; set by `collect`.
    """

    reason: str
    upstream: str
    targets: tuple[str, ...]
    apply: Callable[[Any], Any]
    applies: Mapping[str, str] = field(default_factory=dict)
    when: Callable[[Any], bool] | None = None
    after: tuple[str, ...] = ()
    id: str = ""
