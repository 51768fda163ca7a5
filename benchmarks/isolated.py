"""Run cases in forked children, so that the peak memory of each is its own and no case warms another one's caches."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import multiprocessing
import os
import platform
import resource
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Work = Callable[[], dict[str, Any]]


@dataclass
class Child:
    """A forked child that runs one case and writes its result into a pipe.

    Attributes:
        pid: Its process id.
        pipe: Where its result can be read.
        started: `time.monotonic()` of the fork.
        printed: What was read so far.
    """

    pid: int
    pipe: int
    started: float
    printed: bytes = b""


def in_child(work: Work) -> dict[str, Any]:
    """What `work` returns, plus `peak_bytes`, `start_bytes` and `cpu_seconds`.

    The parent has the imports done: they count into the peak, not into the times. `start_bytes` is what they take.

    Raises:
        RuntimeError: If the child failed; its traceback is on stderr.
    """
    child = _start(work)
    while _read(child):
        pass
    if _end(child):
        raise RuntimeError("the case failed; see the traceback above")
    result: dict[str, Any] = json.loads(child.printed)
    return result


def in_children(
    cases: Iterable[tuple[Any, Work]], workers: int, seconds: float, most_bytes: int
) -> Iterator[tuple[Any, dict[str, Any] | str]]:
    """Run cases in children, `workers` at a time, and yield (key, result) as they end.

    The result is that of `in_child`, or a phrase that says how the child ended: it computed for more than `seconds` (five
    times that by the clock: other work on the machine is not the case's fault), held more than `most_bytes`, or crashed.
    Memory and computing time are watched where there is a /proc. Whoever stops reading ends the children that run.
    """
    queue = iter(cases)
    running: dict[int, tuple[Any, Child]] = {}
    with selectors.DefaultSelector() as ready:
        try:
            while True:
                while len(running) < workers and (case := next(queue, None)) is not None:
                    child = _start(case[1])
                    running[child.pipe] = (case[0], child)
                    ready.register(child.pipe, selectors.EVENT_READ)
                if not running:
                    return
                done = {event.fd for event, _ in ready.select(timeout=0.3) if not _read(running[event.fd][1])}
                for pipe, (key, child) in list(running.items()):
                    why = None if pipe in done else _excess(child, seconds, most_bytes)
                    if pipe in done or why is not None:
                        ready.unregister(pipe)
                        del running[pipe]
                        status = _end(child, kill=why is not None)
                        yield key, why or (json.loads(child.printed) if not status else _how(status))
        finally:
            for _, child in running.values():
                _end(child, kill=True)


class StandingChild:
    """A forked child that prepares something, stays, and runs it whenever it is told to.

    Args:
        prepare: Called once in the child; what it returns is called for each `run`.
    """

    def __init__(self, prepare: Callable[[], Work]) -> None:
        forked = multiprocessing.get_context("fork")
        self._pipe, theirs = forked.Pipe()
        self._process = forked.Process(target=_serve, args=(prepare, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def wait(self) -> None:
        """Until it is prepared; RuntimeError if it failed, with its traceback on stderr."""
        self._receive()

    def run(self) -> dict[str, Any]:
        """Run it once, and return what it returns."""
        self._pipe.send(True)
        return self._receive()

    def end(self) -> None:
        """End the child."""
        self._process.kill()
        self._process.join()

    def _receive(self) -> dict[str, Any]:
        try:
            received: dict[str, Any] = self._pipe.recv()
        except EOFError as error:
            raise RuntimeError("the child ended; see the traceback above") from error
        return received


def _serve(prepare: Callable[[], Work], pipe: Connection) -> None:
    run = prepare()
    pipe.send({})
    while pipe.recv():
        pipe.send(run())


def _start(work: Work) -> Child:
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(write)
        return Child(pid, read, time.monotonic())
    code = 1
    try:
        os.close(read)
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


def _read(child: Child) -> bool:
    """Read what is there, waiting for the first of it; False at the end."""
    part = os.read(child.pipe, 1 << 16)
    child.printed += part
    return bool(part)


def _end(child: Child, *, kill: bool = False) -> int:
    """Wait for the child, whose processes are ended first if `kill`; its wait status."""
    os.close(child.pipe)
    if kill:
        os.kill(child.pid, signal.SIGKILL)
    return os.waitpid(child.pid, 0)[1]


def _excess(child: Child, seconds: float, most_bytes: int) -> str | None:
    """Why the child has to be ended now, or None."""
    if time.monotonic() - child.started > 5 * seconds:
        return f"took longer than {5 * seconds:.0f} s"
    try:
        pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
        ticks = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:  # no /proc here, or the child has just ended
        return None
    if sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") > seconds:
        return f"took longer than {seconds:.0f} s of computing"
    held = pages * resource.getpagesize()
    return f"needed more than {most_bytes / 2**30:.0f} GiB of memory" if held > most_bytes else None


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"crashed with {signal.Signals(os.WTERMSIG(status)).name}"
    return "failed outside of its own handling: see the traceback on stderr"


def peak_bytes() -> int:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def write_report(
    file: str | None, cases: list[dict[str, Any]], ratios: dict[str, float], *, threads: int | None = None
) -> None:
    """Write the measurements with date, machine, versions and, where all contestants have the same, threads as JSON."""
    if file is None:
        return
    names = (
        *("transformers-exporters", "torch", "transformers", "onnx", "onnxscript", "onnxruntime", "openvino"),
        *("executorch", "torchao", "nncf"),
    )
    report = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "script": Path(sys.argv[0]).name,
        "threads": threads,
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
