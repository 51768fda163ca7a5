from __future__ import annotations

import pytest
import torch

from transformers_exporters import AutoHfExporter

ID = "trace.patches.torch.rows_of_unbind"


class RowsOfPieces(torch.nn.Module):
    def forward(self, x, lengths):
        """x float [n, 4], lengths int64 [2] -> a sum over the first rows of both pieces, and of the numbers in them."""
        first, second = x[: lengths.sum()].split(lengths.tolist())
        rows = torch.cat([first[:-1], second[:-1]])
        total = torch.zeros_like(x)
        for place, (row, number) in enumerate(zip(rows, rows[:, 0], strict=True)):
            total = total + row * (place + 1) + number
        return total, torch.stack(list(rows)[::-1]), torch.stack(rows.unbind(0), dim=1)


INPUTS = {"x": torch.randn(9, 4), "lengths": torch.tensor([2, 3])}
OTHER = {"x": torch.randn(7, 4), "lengths": torch.tensor([3, 2])}


def check(export_format, **fields):
    config = {"export_format": export_format, "dynamic": True, **fields}
    exported = AutoHfExporter.from_config(config).export_model(RowsOfPieces(), INPUTS)
    for inputs in (INPUTS, OTHER):
        torch.testing.assert_close(exported(**inputs), RowsOfPieces()(**inputs))


@pytest.mark.xfail(strict=True, reason="torch's rows keep the axis that they are taken along")
def test_needed():
    check("executorch", disabled_workarounds=(ID,))


@pytest.mark.parametrize("export_format", ["dynamo", "onnx", "openvino", "executorch"])
def test_works(export_format):
    check(export_format)
