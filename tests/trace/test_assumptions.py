"""A model that decides by values of its inputs: exported along the sample's way, which is said aloud and in the manifest."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

import transformers_exporters as te


class Deciding(torch.nn.Module):
    """Adds a bias only where a flag is set somewhere."""

    def forward(self, values: torch.Tensor, flags: torch.Tensor) -> torch.Tensor:
        if flags.any():
            return values + 1
        return values * 2


@pytest.mark.parametrize("set_somewhere", [True, False])
def test_what_is_assumed_is_said(set_somewhere: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = Deciding().eval()
    inputs = {"values": torch.randn(2, 3), "flags": torch.zeros(2, 3, dtype=torch.bool)}
    inputs["flags"][0, 0] = set_somewhere
    with caplog.at_level(logging.WARNING):
        exported = te.OnnxExporter().export_model(model, inputs, te.OnnxConfig(dynamic=True))
    assert "decides by values of its inputs" in caplog.text
    exported.save_pretrained(tmp_path / "artifact")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "artifact")
    (assumed,) = loaded.manifest.notes["model"]["assumed"]
    assert str(set_somewhere) in str(assumed)
    assert "if flags.any():" in str(assumed)
    torch.testing.assert_close(loaded(**inputs), model(**inputs))


def test_a_model_that_decides_by_nothing_assumes_nothing() -> None:
    inputs = {"values": torch.randn(2, 3), "flags": torch.ones(2, 3, dtype=torch.bool)}

    class Plain(torch.nn.Module):
        def forward(self, values: torch.Tensor, flags: torch.Tensor) -> torch.Tensor:
            return torch.where(flags, values, 0.0)

    exported = te.OnnxExporter().export_model(Plain().eval(), inputs, te.OnnxConfig(dynamic=True))
    assert "assumed" not in exported.manifest.notes["model"]


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
@pytest.mark.parametrize("set_somewhere", [True, False])
def test_inputs_that_take_another_way_are_refused(format: str, set_somewhere: bool, tmp_path: Path) -> None:
    model = Deciding().eval()
    flags = torch.zeros(2, 3, dtype=torch.bool)
    flags[0, 0] = set_somewhere
    config = te.AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    exporter = te.AutoHfExporter.from_config(config)
    exporter.export_model(model, {"values": torch.randn(2, 3), "flags": flags}, config).save_pretrained(tmp_path / "a")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "a", trust_remote_code=True)
    other = {"values": torch.randn(4, 5), "flags": torch.zeros(4, 5, dtype=torch.bool)}
    other["flags"][3, 4] = set_somewhere
    torch.testing.assert_close(loaded(**other), model(**other))
    other["flags"][3, 4] = not set_somewhere
    with pytest.raises(te.InputError, match="another way through the model's code"):
        loaded(**other)


class Gated(torch.nn.Module):
    """Decides by what its weights make of the inputs."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.scale = torch.nn.Linear(3, 3)
        torch.nn.init.constant_(self.scale.weight, weight)
        torch.nn.init.constant_(self.scale.bias, weight)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        scaled = self.scale(values)
        return scaled + 1 if scaled.sum() > 0 else scaled * 2


@pytest.mark.parametrize("weight", [1.5, -1.5])
def test_weights_have_their_values_in_a_question(weight: float) -> None:
    model = Gated(weight).eval()
    exported = te.DynamoExporter().export_model(model, {"values": torch.rand(2, 3)}, te.DynamoConfig(dynamic=True))
    values = torch.rand(4, 3)
    torch.testing.assert_close(exported(values=values), model(values))


def test_a_question_prints_no_graph(capfd: pytest.CaptureFixture[str]) -> None:
    inputs = {"values": torch.randn(2, 3), "flags": torch.ones(2, 3, dtype=torch.bool)}
    te.DynamoExporter().export(Deciding().eval(), inputs, te.DynamoConfig(dynamic=True))
    assert "def forward" not in capfd.readouterr().err


class Shrinking(torch.nn.Module):
    """Halves an image whose sides are values: where an assertion is computed, the same question comes up again."""

    def forward(self, pixels: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        height, width = size.tolist()
        image = pixels.view(1, height, width, 3).permute(0, 3, 1, 2)
        image = torch.nn.functional.interpolate(image, size=(height // 2, width // 2), mode="bilinear")
        return image.permute(0, 2, 3, 1).view(-1, 3)


def test_a_question_inside_of_an_assertion_is_not_asserted_again() -> None:
    model = Shrinking().eval()
    inputs = {"pixels": torch.randn(48, 3), "size": torch.tensor([6, 8])}
    exported = te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True))
    torch.testing.assert_close(exported(**inputs), model(**inputs))
    other = {"pixels": torch.randn(40, 3), "size": torch.tensor([10, 4])}
    torch.testing.assert_close(exported(**other), model(**other))


class RowByRow(torch.nn.Module):
    """Reads a list of as many numbers as there are marked tokens."""

    def forward(self, values: torch.Tensor, marked: torch.Tensor) -> torch.Tensor:
        found = [number for number in marked[0][marked[0] > 0].tolist() if number == 2]
        return values * 2 if found else values + 1


def test_the_callers_own_inputs_are_never_refused() -> None:
    """The trace's sizes are others, and with them the length of the list: then it is made at the caller's."""
    model = RowByRow().eval()
    inputs = {"values": torch.randn(2, 3), "marked": torch.ones(2, 3, dtype=torch.int64)}
    exported = te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True))
    torch.testing.assert_close(exported(**inputs), model(**inputs))
    for length in (2, 5):
        other = {"values": torch.randn(2, length), "marked": torch.ones(2, length, dtype=torch.int64)}
        with pytest.raises(te.InputError, match="take another way"):
            exported(**other)
