"""Run a command of this package in a process of its own, so that its time and peak memory are its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ExportError


class ChildError(ExportError):
    """A child process failed; carries its own one-sentence message.

    Attributes:
        result: The JSON that it printed all the same.
    """

    def __init__(self, message: str, result: dict[str, Any]) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Finished:
    """What a child left.

    Attributes:
        result: The JSON that it printed.
        seconds: Wall time, interpreter start and imports included.
        peak_bytes: Its largest resident memory; None where the system does not tell (Windows).
    """

    result: dict[str, Any]
    seconds: float
    peak_bytes: int | None


def run_child(module: str, arguments: Sequence[str]) -> Finished:
    """Run `python -m module arguments`, which prints one JSON object on stdout.

    Raises:
        ChildError: If it exits with another code than 0.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=out, stderr=err)
        peak = _wait(process)
        seconds = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        printed, said = out.read().decode(), err.read().decode().strip()
    try:
        result = json.loads(printed)
    except json.JSONDecodeError:
        result = {}
    if process.returncode:
        error = result.get("error", {})
        last = (said.splitlines() or [f"exit code {process.returncode}"])[-1]
        failure = ChildError(error.get("message") or last, result)
        failure.add_note(said)
        raise failure
    return Finished(result, seconds, peak)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """Wait for the end; the peak memory in bytes. This process stays small: its own size would be the least peak."""
    if not hasattr(os, "wait4"):
        process.wait()
        return None
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    # Linux counts in kibibytes, macOS in bytes.
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
