from __future__ import annotations

import pytest
import torch

from transformers_exporters import DynamoConfig, DynamoExporter

ID = "trace.patches.torch.guard_lines"


class Lengths(torch.nn.Module):
    """The mean of each row up to its length: `tolist` compares the number of rows, inside of torch."""

    def forward(self, inputs_embeds, lengths):
        return torch.stack([row[:n].mean(0) for row, n in zip(inputs_embeds, lengths.tolist(), strict=True)])


def message(caplog, **options) -> str:
    inputs = {"inputs_embeds": torch.randn(2, 6, 3), "lengths": torch.tensor([6, 4])}
    DynamoExporter().export(Lengths(), inputs, DynamoConfig(dynamic=True, **options))
    return next(message for message in caplog.messages if "constant in the graph" in message)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a line of torch is named")
def test_needed(caplog):
    assert "lengths.tolist()" in message(caplog, disabled_workarounds=(ID,))


def test_works(caplog):
    assert "lengths.tolist()" in message(caplog)
