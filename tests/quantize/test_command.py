"""`export --quantize`: the format's own recipe, and JSON that any parser reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from transformers_exporters import cli


def _export(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["export", "--tiny", "bert", *arguments])
    return int(ended.value.code or 0)


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def test_a_recipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _export("-f", "openvino", "--quantize", "int8", "-o", str(tmp_path / "bert"), "--json") == 0
    said = json.loads(capfd.readouterr().out, parse_constant=_no_constant)
    assert said["verification"]["ok"]
    assert min(row["cosine"] for row in said["verification"]["rows"] if row["cosine"] is not None) > 0.99
    manifest = json.loads((tmp_path / "bert" / "manifest.json").read_text())
    assert manifest["config"]["quantizer"]["type"] == "NNCFOpenVINOQuantizer"


def test_an_unknown_recipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _export("-f", "onnx", "--quantize", "int3", "-o", str(tmp_path / "out")) != 0
    assert "choose int8, int4, static-int8" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()
