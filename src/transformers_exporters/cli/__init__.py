"""The command line. Each command is one file; `main` is the entry point.

Exit codes: 0 done, 1 an export, a run or a verification failed, 2 the command was misused.
"""

from __future__ import annotations

from collections.abc import Sequence

from .app import app

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `transformers-exporters`.

    Args:
        arguments: Instead of `sys.argv[1:]`.

    Raises:
        SystemExit: Always, with the exit code.
    """
    app(args=list(arguments) if arguments is not None else None, prog_name="transformers-exporters")
