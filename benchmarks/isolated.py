"""Run a case in a forked child, so that its peak memory is its own and no case warms another one's caches."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import resource
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` returns, plus `peak_bytes`, `start_bytes` and `cpu_seconds`.

    The parent has the imports done: they count into the peak, not into the times. `start_bytes` is what they take.

    Raises:
        RuntimeError: If the child failed; its traceback is on stderr.
    """
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            start = peak_bytes()
            result = work()
            used = resource.getrusage(resource.RUSAGE_SELF)
            cost = {"start_bytes": start, "peak_bytes": peak_bytes(), "cpu_seconds": used.ru_utime + used.ru_stime}
            with os.fdopen(write, "w") as pipe:
                json.dump({**result, **cost}, pipe)
            code = 0
        except BaseException:  # noqa: BLE001 - a forked child must never return into the parent's code
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        printed = pipe.read()
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("the case failed; see the traceback above")
    result: dict[str, Any] = json.loads(printed)
    return result


def peak_bytes() -> int:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def write_report(file: str | None, cases: list[dict[str, Any]], ratios: dict[str, float]) -> None:
    """Write the measurements with date, machine and versions as JSON."""
    if file is None:
        return
    names = ("transformers-exporters", "torch", "transformers", "onnx", "onnxscript", "onnxruntime", "openvino")
    report = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "versions": {name: importlib.metadata.version(name) for name in names},
        "ratios": ratios,
        "cases": cases,
    }
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(json.dumps(report, indent=2) + "\n")


def size_of(directory: Path) -> int:
    """Bytes of the files below a directory; a file that has several names there counts once."""
    files = {(s.st_dev, s.st_ino): s.st_size for f in directory.rglob("*") if f.is_file() for s in [f.stat()]}
    return sum(files.values())
