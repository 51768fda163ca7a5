"""A question about values is answered from the sample, said in a warning, and only where the trace asks one."""

from __future__ import annotations

import logging

import pytest
import torch

from transformers_exporters import DynamoConfig, DynamoExporter, TraceError


class Asks(torch.nn.Module):
    """Adds one if any entry of the mask is set."""

    def forward(self, x, mask):
        return x + 1 if mask.any() else x - 1


class Unanswerable(torch.nn.Module):
    def forward(self, x):
        raise ValueError("no such model")


def inputs(batch: int, bit: int) -> dict[str, torch.Tensor]:
    mask = torch.zeros(batch, 4, dtype=torch.int64)
    mask[0, 0] = bit
    return {"x": torch.zeros(batch, 4), "mask": mask}


@pytest.mark.parametrize(("bit", "wanted"), [(1, 1.0), (0, -1.0)])
def test_the_sample_decides_and_a_warning_says_so(caplog: pytest.LogCaptureFixture, bit: int, wanted: float) -> None:
    with caplog.at_level(logging.WARNING, logger="transformers_exporters"):
        program = DynamoExporter().export(Asks(), inputs(3, bit), DynamoConfig(dynamic=True))
    got = program.module()(**inputs(5, bit))
    assert torch.equal(got, torch.full((5, 4), wanted))
    assert "decides by values of its inputs" in caplog.text


def test_nothing_is_assumed_for_other_failures(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(TraceError, match="no such model"):
        DynamoExporter().export(Unanswerable(), {"x": torch.zeros(2, 3)}, DynamoConfig(dynamic=True))
    assert "decides by values" not in caplog.text
