"""A part of the sweep over all architectures (`make sweep`): one of each kind, on every backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
#: A decoder with a cache, an encoder, an image model.
MODELS = ("gpt2", "bert", "vit")
FORMATS = ("dynamo", "onnx", "openvino", "executorch")


def sweep(file: Path, *arguments: str) -> str:
    """Run the command in a process of its own: it forks, and this one may hold the threads of an engine."""
    command = [sys.executable, str(BENCHMARKS / "coverage.py"), "--json", str(file), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("coverage") / "results.jsonl"
    sweep(file, "--only", *MODELS)
    return file


def test_one_of_each_kind_passes_on_every_backend(results: Path) -> None:
    cases = [json.loads(line) for line in results.read_text().splitlines()]
    assert {(case["model"], case["format"]) for case in cases} == {(m, f) for m in MODELS for f in FORMATS}
    assert [case for case in cases if case["status"] != "pass"] == []
    assert all(case["seconds"] > 0 for case in cases)


def test_a_case_is_not_run_again(results: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("\n".join(MODELS))
    before = results.read_text()
    assert sweep(results, "--list", str(names), "--formats", "dynamo") == ""
    assert results.read_text() == before


def test_a_case_over_its_limit_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    sweep(file, "--only", "gpt2", "--formats", "dynamo", "--seconds", "0.2")
    case = json.loads(file.read_text())
    assert (case["status"], case["reason"]) == ("fail", "took longer than 0 s of computing")
