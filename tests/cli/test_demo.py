"""The demo on its tiny model, in child processes as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_demo_runs_offline_on_the_tiny_model(tmp_path: Path) -> None:
    """Without PyPI the demo says so, goes on with the model that it builds, and measures everything."""
    environment = os.environ | {
        "TRANSFORMERS_EXPORTERS_CACHE": str(tmp_path / "cache"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "PIP_EXTRA_INDEX_URL": "",
        "OMP_NUM_THREADS": "1",
    }
    run = subprocess.run(
        [sys.executable, "-m", "transformers_exporters.cli", "demo", "--json", "--rounds", "1"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "pip could not download" in " ".join(run.stderr.split())
    formats = json.loads(run.stdout)["formats"]
    assert list(formats) == ["dynamo", "onnx", "openvino", "executorch"]
    for found in formats.values():
        assert found["verification"]["ok"]
        assert found["export"]["peak_bytes"] > 50e6
        assert found["tokens_per_second"]["ratio"] > 0
        assert Path(found["artifact"], "manifest.json").is_file()
    assert len({found["answer"] for found in formats.values()}) == 1
