"""`export --tiny`: an architecture's smoke test without a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from transformers_exporters import cli


def _export(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["export", *arguments])
    return int(ended.value.code or 0)


def test_export_of_a_tiny_bert(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _export("--tiny", "bert", "-f", "onnx", "-o", str(tmp_path / "bert"), "--json") == 0
    said = json.loads(capfd.readouterr().out)
    assert said["components"] == ["model"]
    assert said["verification"]["ok"]
    assert (tmp_path / "bert" / "manifest.json").is_file()


def test_a_checkpoint_or_an_architecture(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _export("-o", str(tmp_path / "out")) != 0
    assert "--tiny" in capfd.readouterr().err
    assert _export("somewhere", "--tiny", "bert", "-o", str(tmp_path / "out")) != 0


def test_an_unknown_architecture(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _export("--tiny", "lama", "-o", str(tmp_path / "out")) != 0
    assert "llama" in capfd.readouterr().err
