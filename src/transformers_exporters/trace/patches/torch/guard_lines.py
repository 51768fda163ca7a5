"""Where a size was compared: the model's line, instead of the line of torch or of a patch that the comparison is made in."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ....workarounds import Workaround
from ...idioms.calling import is_models


def of_model(original: Callable[[Any], FrameType | None]) -> Callable[[Any], FrameType | None]:
    """`ShapeEnv._get_user_frame`: the innermost frame of modelling code."""

    @functools.wraps(original)
    def user_frame(self: Any) -> FrameType | None:
        # No variable may hold this function's own frame, which torch's would return: what a frame holds outlives the trace.
        frame = sys._getframe(1).f_back
        while frame is not None and not is_models(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    return user_frame


WORKAROUND = Workaround(
    reason="torch notes a line of its own (`_ops.py: return self._op_dk(...)`) for a size that an op compares, and ours for one "
    "that a patched function compares; the report of frozen axes names the model's.",
    upstream="none: torch skips only the files that it knows",
    targets=("torch.fx.experimental.symbolic_shapes:ShapeEnv._get_user_frame",),
    apply=of_model,
)
