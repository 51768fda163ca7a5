"""`repair.fixes.wide_indices`: indices of 32 bits."""

import pytest
import torch

import transformers_exporters as te

ID = "repair.fixes.wide_indices"


class Picked(torch.nn.Module):
    def forward(self, x, ids):
        """x float [n, 5], ids int32 [n, 5] -> float tensors."""
        first = ids[0]
        return (
            x.gather(1, ids),
            torch.zeros_like(x).scatter(1, ids, x),
            x.scatter(1, ids, 2.0),
            x.scatter_add(1, ids, x),
            torch.zeros_like(x).scatter_add_(1, ids, x),
            x.index_add(1, first, x),
            x[:, first],
        )


def inputs(n):
    return {"x": torch.randn(n, 5), "ids": torch.rand(n, 5).argsort(1).to(torch.int32)}


def check(format, disabled=()):
    torch.manual_seed(0)
    config = te.AutoExportConfig.from_dict({"export_format": format, "dynamic": True, "disabled_workarounds": disabled})
    exported = te.AutoHfExporter.from_config(config).export_model(Picked(), inputs(3), config=config)
    for n in (3, 7):
        given = inputs(n)
        torch.testing.assert_close(tuple(exported(**given)), Picked()(**given))


@pytest.mark.parametrize("format", ["onnx", "executorch"])
@pytest.mark.xfail(strict=True, raises=te.ArtifactError, reason="kernels refuse 32 bits")
def test_needed(format):
    check(format, (ID,))


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_works(format):
    check(format)
