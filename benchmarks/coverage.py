"""Every architecture on every backend: export with dynamic axes, save, reload, compare with eager at other sizes too.

usage: python benchmarks/coverage.py [--zoo DIRECTORY] [--list FILE] [--only NAME ...] [--formats onnx] [--modes forward]
                                     [-j 2] [--seconds 120] [--gigabytes 8] [--json FILE] [--again] [--render]

Without `--zoo`, the models are `testing.tiny_model(type)` of every type that transformers registers; with it, the entries
of a directory as `zoo.py` describes it. `--list` holds one name a line. Each case runs in a forked child under a limit of
time and memory. Results are lines of JSON: a case that FILE holds already is not run again, unless it failed and
`--again` is given. `--render` writes the table of FILE to docs/coverage.md.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel  # noqa: F401 - the model classes, imported before the fork
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from coverage_case import Case, from_directory, from_type, run_case
from coverage_table import render
from isolated import in_children
from results_file import add, finished, first_attempts
from transformers_exporters import AutoHfExporter
from transformers_exporters.doors import find_backend
from transformers_exporters.testing import tiny_model

FORMATS = ("dynamo", "onnx", "openvino", "executorch")
MODES = ("forward", "generation")
RESULTS = Path(__file__).parent / "results" / "coverage.jsonl"
TABLE = Path(__file__).parent.parent / "docs" / "coverage.md"
_KEYS = ("model", "format", "mode")
# Imported before the fork, so that no case pays for it.
_HEAVY = ("onnxscript", "torch.onnx", "torch._export.utils", "torch.fx.experimental.symbolic_shapes")


def warm_up(formats: list[str]) -> None:
    """Import what the cases need, and export once: the caches that torch fills on the way are the children's too.

    No engine computes here: the threads that it would start do not survive a fork.
    """
    for name in _HEAVY:
        importlib.import_module(name)
    torch.set_num_threads(1)
    model, inputs = tiny_model("bert")
    for format in formats:
        for part in ("config", "lower", "save", "open"):
            find_backend(format).load(part)
        AutoHfExporter.from_config({"export_format": format, "dynamic": True}).export(model, inputs)


def cases(given: argparse.Namespace) -> Iterator[Case]:
    """The cases that the file does not hold, in an order that is random and the same each time."""
    done = finished(given.json, _KEYS)
    names = given.only or _names(given)
    random.Random(0).shuffle(names)
    for mode in given.modes.split(","):
        for format in given.formats.split(","):
            for name in names:
                held = done.get((name, format, mode))
                if held is None or given.only or (given.again and held["status"] == "fail"):
                    yield Case(name, format, mode)


def _names(given: argparse.Namespace) -> list[str]:
    if given.list is not None:
        return [line.strip() for line in given.list.read_text().splitlines() if line.strip() and line[0] != "#"]
    if given.zoo is not None:
        return sorted(folder.name for folder in given.zoo.iterdir() if (folder / "meta.json").is_file())
    return sorted(CONFIG_MAPPING_NAMES)


def sweep(given: argparse.Namespace, todo: list[Case]) -> None:
    """Run the cases; print and store each result as it comes."""
    source = from_type if given.zoo is None else functools.partial(from_directory, given.zoo)
    about = {"source": "type" if given.zoo is None else "zoo", "commit": _commit()}
    work = ((case, functools.partial(_quiet, case, source)) for case in todo)
    for case, result in in_children(work, given.workers, given.seconds, int(given.gigabytes * 2**30)):
        if isinstance(result, str):
            result = {"status": "fail", "reason": result, "seconds": None}
        result = {key: value for key, value in result.items() if key not in ("start_bytes", "cpu_seconds")}
        add(given.json, {**vars(case), **about, **result})
        print(
            case.format, case.mode, case.model, result["status"], result["seconds"], result["reason"] or "", flush=True
        )


def _quiet(case: Case, source: Any) -> dict[str, Any]:
    """The case, without what the libraries print."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return run_case(case, source)


def _commit() -> str | None:
    """The short hash of the commit that this file is part of; None outside of a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--list", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--modes", default="forward")
    parser.add_argument("-j", dest="workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--render", action="store_true")
    given = parser.parse_args()
    if given.render:
        TABLE.write_text(render(finished(given.json, _KEYS), first_attempts(given.json, _KEYS), FORMATS, MODES))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the children are ended too
    todo = list(cases(given))
    if todo:
        warm_up(sorted({case.format for case in todo}))
        sweep(given, todo)


if __name__ == "__main__":
    main()
