"""What a command shows: progress and errors on stderr, its result on stdout as a table or as JSON."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.markup import escape

from ..errors import ConfigError, ExportError

FAILED, MISUSED = 1, 2


class Screen:
    """The two streams of one command.

    Attributes:
        as_json: Print the result for machines.
        debug: Show tracebacks, and the warnings of the dependencies.
    """

    def __init__(self, *, as_json: bool, debug: bool) -> None:
        self.as_json = as_json
        self.debug = debug
        self.out = Console()
        self.err = Console(stderr=True)

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show that `title` is going on, and afterwards how long it took."""
        start = time.perf_counter()
        with self.err.status(f"{escape(title)} …"):
            yield
        self.err.print(f"[green]✓[/] {escape(title)} [dim]{time.perf_counter() - start:.1f} s[/]", highlight=False)

    def note(self, message: str) -> None:
        """One line for the person at the terminal."""
        self.err.print(escape(message), style="dim", highlight=False)

    def result(self, value: Mapping[str, Any], *tables: RenderableType) -> None:
        """Print the result: `value` as JSON for machines, else the tables."""
        if self.as_json:
            print(json.dumps(_finite(value), indent=2, default=str, allow_nan=False))
        else:
            for table in tables:
                self.out.print(table)

    def fail(self, error: BaseException, code: int, hint: str = "") -> None:
        """Report an error in one line (JSON on stdout too, if wanted) and end with `code`."""
        if self.debug:
            self.err.print("".join(traceback.format_exception(error)), markup=False, highlight=False)
        message = str(error) or type(error).__name__
        if self.as_json:
            print(json.dumps({"error": {"type": type(error).__name__, "message": message}}, indent=2))
        self.err.print(f"[red]error:[/] {escape(message)}{hint}", highlight=False, soft_wrap=True)
        raise typer.Exit(code)


def _finite(value: Any) -> Any:
    """JSON has no infinities and NaN: null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


@contextmanager
def command(*, as_json: bool = False, debug: bool = False) -> Iterator[Screen]:
    """The frame of every command: quiet dependencies, errors without tracebacks, exit codes."""
    screen = Screen(as_json=as_json, debug=debug)
    if not debug:
        _quiet_dependencies(screen)
    try:
        yield screen
    except typer.Exit:
        raise
    except ConfigError as error:
        screen.fail(error, MISUSED)
    except (ExportError, OSError) as error:
        screen.fail(error, FAILED)
    except KeyboardInterrupt as error:
        screen.fail(error, 130)
    except Exception as error:  # noqa: BLE001 - the last frame: anything else is a bug, and is reported as one
        name = type(error).__name__
        screen.fail(error, FAILED, hint=f" [dim]({name}; run again with --debug for the traceback)[/]")


def _quiet_dependencies(screen: Screen) -> None:
    """Show this package's own warnings, one line each; drop what the libraries below it say while importing."""
    for name, value in {
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }.items():
        os.environ.setdefault(name, value)
    for name in ("torch", "torch.onnx", "torch.utils._pytree", "torchao", "onnxscript"):
        logging.getLogger(name).setLevel(logging.ERROR)

    def show(message: Warning | str, category: type[Warning], filename: str, *rest: Any) -> None:
        if f"{os.sep}transformers_exporters{os.sep}" in filename:
            screen.err.print(f"[yellow]warning:[/] {escape(str(message))}", highlight=False, soft_wrap=True)

    show_warning: Callable[..., None] = show
    warnings.showwarning = show_warning
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
