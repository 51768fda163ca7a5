"""Lists with one tensor per image: of any number in the graph, as the model returns them from the artifact."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.models.lfm2_vl import modeling_lfm2_vl
from transformers.utils import ModelOutput

import transformers_exporters as te
from transformers_exporters.runtime.load import load


@dataclass
class Seen(ModelOutput):
    features: Any = None
    merged: torch.Tensor | None = None


class Cut(torch.nn.Module):
    """Packed features, cut by lengths that are data, and put together again."""

    def forward(self, values: torch.Tensor, counts: torch.Tensor) -> Seen:
        sizes = (counts * 2).tolist()
        features = torch.split(values * 3, sizes)
        return Seen(features=features, merged=torch.cat(features, dim=0) + 1)


class Rows(torch.nn.Module):
    """Features of real images [n, patches, size], as one tensor of rows for each prompt."""

    def forward(self, images: torch.Tensor, real: torch.Tensor) -> Seen:
        kept = images.flatten(0, 1)[real.flatten()]
        features = [f.reshape(-1, f.shape[-1]) for f in kept.split(real.sum(1).tolist())]
        return Seen(features=features, merged=torch.cat(features, dim=0) + 1)


class Listed(torch.nn.Module):
    """A batch of features as a list; `list` is the one that modelling code sees."""

    def forward(self, values: torch.Tensor) -> Seen:
        features = vars(modeling_lfm2_vl).get("list", list)(values * 3)
        assert isinstance(features, vars(modeling_lfm2_vl).get("list", list))
        return Seen(features=features, merged=torch.cat(features, dim=0) + 1)


def packed(*counts: int) -> dict[str, torch.Tensor]:
    return {"values": torch.randn(2 * sum(counts), 3), "counts": torch.tensor(counts)}


def padded(*counts: int) -> dict[str, torch.Tensor]:
    real = torch.arange(max(counts)).unsqueeze(0) < torch.tensor(counts).unsqueeze(1)
    return {"images": torch.randn(*real.shape, 5, 3), "real": real}


def batch(size: int) -> dict[str, torch.Tensor]:
    return {"values": torch.randn(size, 5, 3)}


CASES = {
    "cut": (Cut, packed(3, 1, 2), [packed(1, 4), packed(2), packed(1, 2, 1, 1, 2)]),
    "rows": (Rows, padded(3, 1, 2), [padded(1, 4), padded(2), padded(1, 2, 3, 1, 5)]),
    "list": (Listed, batch(3), [batch(2), batch(1), batch(7)]),
}


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
@pytest.mark.parametrize("case", sorted(CASES))
def test_any_number_of_pieces(case: str, format: str, tmp_path: Path) -> None:
    kind, inputs, others = CASES[case]
    if (case, format) == ("rows", "executorch"):
        pytest.skip("ExecuTorch's selection by a mask is tested with its backend")
    model = kind().eval()
    config = te.AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    te.AutoHfExporter.from_config(config).export_model(model, inputs, config).save_pretrained(tmp_path / "a")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "a", trust_remote_code=True)
    for given in (inputs, *others):
        wanted, got = model(**given), loaded(**given)
        assert type(got.features) is type(wanted.features)
        torch.testing.assert_close(got.features, wanted.features)
        torch.testing.assert_close(got.merged, wanted.merged)
    assert te.verify(model, loaded, inputs).ok


def test_numpy_runtime_returns_the_list(tmp_path: Path) -> None:
    model, inputs = Cut().eval(), packed(3, 1, 2)
    te.OnnxExporter().export_model(model, inputs, te.OnnxConfig(dynamic=True)).save_pretrained(tmp_path / "a")
    given = packed(1, 4)
    got = load(tmp_path / "a")(**{name: value.numpy() for name, value in given.items()})
    assert [tuple(piece.shape) for piece in got["features"]] == [(2, 3), (8, 3)]
    torch.testing.assert_close(torch.from_numpy(got["features"][1]), model(**given).features[1])


class Looped(torch.nn.Module):
    """Looks at every piece by itself."""

    def forward(self, values: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        pieces = torch.split(values, counts.tolist())
        return torch.stack([piece.sum(0) for piece in pieces])


def test_a_loop_over_pieces_fixes_their_number(caplog: pytest.LogCaptureFixture) -> None:
    model, inputs = Looped().eval(), {"values": torch.randn(6, 3), "counts": torch.tensor([3, 1, 2])}
    with caplog.at_level(logging.WARNING):
        exported = te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True))
    other = {"values": torch.randn(9, 3), "counts": torch.tensor([1, 7, 1])}
    torch.testing.assert_close(exported(**other), model(**other))
    assert exported["model"].spec.inputs[1].shape == (3,)
