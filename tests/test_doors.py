"""Backends are found by name, by registration or by entry point, and say which versions they need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

import transformers_exporters as te
from models import bert, ids
from transformers_exporters import doors

EXAMPLE = Path(__file__).parents[1] / "examples" / "third_party_backend"
BUILT_IN = ("dynamo", "onnx", "openvino", "executorch")


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setattr(doors, "_registered", {})
    import interpreted_backend

    te.register_backend(interpreted_backend.BACKEND)
    return interpreted_backend.BACKEND


def test_a_registered_backend_does_all_that_a_built_in_one_does(interpreted, tmp_path):
    model = bert()
    config = te.AutoExportConfig.from_dict({"export_format": "interpreted", "dynamic": True, "indent": 1})
    inputs = {"input_ids": ids(1, 5), "attention_mask": torch.ones(1, 5, dtype=torch.long)}
    exporter = te.AutoHfExporter.from_config(config)
    assert json.loads(exporter.export(model, inputs))["inputs"] == ["input_ids", "attention_mask"]
    exporter.export_model(model, inputs).save_pretrained(tmp_path / "artifact")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "artifact")
    for rows, length in ((1, 5), (3, 17)):
        case = {"input_ids": ids(rows, length), "attention_mask": torch.ones(rows, length, dtype=torch.long)}
        torch.testing.assert_close(loaded(**case).last_hidden_state, model(**case).last_hidden_state)


def test_a_taken_name_is_refused(interpreted):
    te.register_backend(interpreted)  # the same one again is no conflict
    for format in ("onnx", "interpreted"):
        with pytest.raises(te.ConfigError, match=f"'{format}' is already registered"):
            te.register_backend(te.Backend(**{**vars(interpreted), "format": format, "extra": "another"}))


def test_an_installed_package_needs_no_code(tmp_path):
    """The entry point of the example's own pyproject, as its installation would write it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    ((group, points),) = project["entry-points"].items()
    lines = [f"{name} = {target}" for name, target in points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]))
    code = (
        "import transformers_exporters as te\n"
        "from transformers_exporters.doors import formats\n"
        "print(formats(), type(te.AutoExportConfig.from_dict({'export_format': 'interpreted'})).__name__)"
    )
    path = os.pathsep.join([str(tmp_path), str(EXAMPLE), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert run.stdout.split("]")[0].endswith("'interpreted'")
    assert "InterpretedConfig" in run.stdout


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(te.ConfigError, match="'tflite'.*dynamo, onnx, openvino, executorch"):
        te.AutoExportConfig.from_dict({"export_format": "tflite"})


@pytest.mark.parametrize("format", BUILT_IN)
def test_the_tested_versions_are_the_installed_ones(format):
    backend = te.doors.find_backend(format)
    for package, requirement in {**backend.requires, **backend.runs_on}.items():
        assert version(package).split("+")[0] == requirement.tested, package


@pytest.mark.parametrize("format", BUILT_IN)
@pytest.mark.parametrize("part", ["lower", "open"])
def test_below_the_minimum_is_refused_and_drift_is_said_once(format, part, monkeypatch, recwarn):
    backend = doors.find_backend(format)
    needed = backend.requires if part == "lower" else backend.runs_on
    assert needed
    package, requirement = next(iter(needed.items()))
    others = {name: each.tested for name, each in needed.items()}
    monkeypatch.setattr(doors, "_drift_warned", set())

    monkeypatch.setattr(doors, "_installed", {**others, package: None}.get)
    with pytest.raises(te.MissingBackendError, match=rf"{package}.*transformers-exporters\[{backend.extra}\]"):
        backend.load(part)
    monkeypatch.setattr(doors, "_installed", {**others, package: "0.0.1"}.get)
    with pytest.raises(te.MissingBackendError, match=rf"{package} >= {requirement.minimum}, found 0.0.1"):
        backend.load(part)
    monkeypatch.setattr(doors, "_installed", {**others, package: "9999.0"}.get)
    for _ in range(2):
        backend.load(part)
    said = [str(each.message) for each in recwarn if "was tested with" in str(each.message)]
    assert said == [f"{package} 9999.0 is installed; the {format} backend was tested with {requirement.tested}."]
