"""What a trace accepts and returns beyond tensors, and that its artifact takes the inputs that it was made for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from transformers_exporters import DynamoConfig, DynamoExporter, ExportedModel, verify


class State:
    """A class that no pytree knows."""

    def __init__(self, sums: torch.Tensor) -> None:
        self.sums = sums


class Returns(torch.nn.Module):
    def forward(self, x):
        return {"y": x * 2, "state": State(x.sum(1))}


class Freezes(torch.nn.Module):
    """Takes any length, and loops over it."""

    def forward(self, input_ids):
        total = torch.zeros_like(input_ids[:, 0])
        for position in range(input_ids.shape[1]):
            total = total + input_ids[:, position] * (position + 1)
        return total


class Masked(torch.nn.Module):
    """A mask at another resolution than the image."""

    def forward(self, pixel_values, pixel_mask):
        return pixel_values.mean(dim=(1, 2, 3)) + pixel_mask.float().mean(dim=(1, 2))


def exported(module: torch.nn.Module, inputs: dict[str, torch.Tensor], directory: Path) -> ExportedModel:
    DynamoExporter().export_model(module, inputs, DynamoConfig(dynamic=True)).save_pretrained(directory)
    return ExportedModel.from_pretrained(directory, trust_remote_code=True)


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (Freezes(), {"input_ids": torch.arange(10).reshape(2, 5)}),
        (Masked(), {"pixel_values": torch.rand(2, 3, 16, 16), "pixel_mask": torch.ones(2, 4, 4)}),
    ],
    ids=["a loop over an axis", "two sizes of one name"],
)
def test_the_given_inputs_are_taken(module: torch.nn.Module, inputs: dict[str, torch.Tensor], tmp_path: Path) -> None:
    report = verify(module, exported(module, inputs, tmp_path / "a"), inputs)
    report.check()


def test_an_unknown_class_is_an_output(tmp_path: Path) -> None:
    program = DynamoExporter().export(Returns(), {"x": torch.rand(3, 4)}, DynamoConfig(dynamic=True))
    x = torch.rand(5, 4)
    assert torch.equal(program.module()(x=x)["state"].sums, x.sum(1))
