"""`repair.fixes.masks_among_indices`: reading and writing with a mask behind other axes."""

import pytest
import torch

from transformers_exporters import AutoExportConfig, AutoHfExporter

ID = "repair.fixes.masks_among_indices"


class Masked(torch.nn.Module):
    def forward(self, x, mask, values):
        """x float [3, n, 4], mask bool [n], values float [3, m] -> x, written twice, and its marked columns."""
        x = x.clone()
        x[:, mask, 1] = values[:, : mask.sum()]
        x[..., 0, torch.tensor([True, False, False, True])] = 2.0
        return x, x[:, mask], x[1, mask]


INPUTS = {"x": torch.randn(3, 6, 4), "mask": torch.arange(6) % 2 == 0, "values": torch.randn(3, 6)}


def exported(format, **fields):
    config = AutoExportConfig.from_dict({"export_format": format, "dynamic": True, **fields})
    return AutoHfExporter.from_config(config).export_model(Masked(), INPUTS, config)


@pytest.mark.xfail(strict=True, reason="onnxscript refuses a mask beside other indices")
def test_needed():
    exported("onnx", disabled_workarounds=(ID,))


@pytest.mark.parametrize("format", ["onnx", "openvino", "executorch"])
def test_works(format):
    graph = exported(format)
    for mask in (INPUTS["mask"], torch.arange(9) % 3 == 0):
        inputs = {"x": torch.randn(3, len(mask), 4), "mask": mask, "values": torch.randn(3, len(mask))}
        for got, wanted in zip(graph(**inputs), Masked()(**inputs), strict=True):
            torch.testing.assert_close(got, wanted)
