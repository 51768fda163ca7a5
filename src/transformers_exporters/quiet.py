"""Keeps a tool's log and its progress on stdout away from the user."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def quiet(logger: str, level: int) -> Iterator[None]:
    """While held, nothing is printed on stdout, and a logger says only what is of a level or above.

    Args:
        logger: Its name.
        level: As `logging` has them.
    """
    log = logging.getLogger(logger)
    before = log.level
    log.setLevel(level)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        log.setLevel(before)
