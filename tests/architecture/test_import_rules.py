"""The import rules of ARCHITECTURE.md hold, and importing the package is cheap."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "torch",
    "transformers",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "openvino",
    "executorch",
    "nncf",
    "torchao",
    "numpy",
}


def _imported_by(statement: str) -> set[str]:
    """The top-level packages that a fresh interpreter holds after `statement`."""
    code = f"{statement}\nimport sys, json; print(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(out.stdout.splitlines()[-1]))


def test_import_contracts_hold() -> None:
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-logo",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "import transformers_exporters",
        "from transformers_exporters import ExportError, ExportConfig, Backend, register_backend",
        "from transformers_exporters import DynamoConfig, OnnxConfig; OnnxConfig(dynamic=True)",
        "import transformers_exporters.cli",
    ],
)
def test_imports_nothing_heavy(statement: str) -> None:
    assert not _imported_by(statement) & HEAVY


@pytest.mark.parametrize(
    "statement",
    [
        "import transformers_exporters.runtime.load",
        "import transformers_exporters.backends.onnx.run",
        "import transformers_exporters.artifact.store",
    ],
)
def test_running_needs_neither_torch_nor_transformers(statement: str) -> None:
    assert not _imported_by(statement) & {"torch", "transformers"}
