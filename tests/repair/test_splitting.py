"""`tensor_split` of an open axis: torch's decomposition keeps the lengths of the traced pieces, in silence."""

import pytest
import torch

from transformers_exporters import AutoHfExporter


class Pieces(torch.nn.Module):
    def forward(self, rows):
        """rows float32 [n, 4]."""
        halves, ends = torch.tensor_split(rows, 3), torch.tensor_split(rows, (1, -2))
        return halves[0] * 2, halves[1], halves[2], ends[1] * 2, ends[2]


@pytest.mark.parametrize("format", ["onnx", "openvino", "executorch"])
def test_any_number_of_rows(format):
    exporter = AutoHfExporter.from_config({"export_format": format, "dynamic": True})
    exported = exporter.export_model(Pieces(), {"rows": torch.randn(6, 4)})
    for count in (6, 7, 8, 13):
        rows = torch.randn(count, 4)
        for got, wanted in zip(exported(rows=rows), Pieces()(rows), strict=True):
            torch.testing.assert_close(got, wanted)
