"""`trace.patches.torch.operators_of_sizes`: numbers made of sizes in other ways than by `+ - * // %`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import transformers_exporters as te

FIX = "trace.patches.torch.operators_of_sizes"


class Numbers(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """x float32 [batch, length]."""
        n = x.shape[1]
        sizes = abs(n - 5), n & 3, n >> 1, n << 1, n**2, 7 & n
        return tuple(x.new_ones(size + 1).cumsum(0) for size in sizes)


def check(format: str, directory: Path, **fields: object) -> None:
    config = te.AutoExportConfig.from_dict({"export_format": format, "dynamic": True, **fields})
    sample = {"x": torch.randn(2, 7)}
    te.AutoHfExporter.from_config(config).export_model(Numbers(), sample, config).save_pretrained(directory)
    loaded = te.ExportedModel.from_pretrained(directory, trust_remote_code=True)
    for length in (1, 2, 5, 7, 12):
        x = torch.randn(3, length)
        for got, wanted in zip(loaded(x=x), Numbers()(x), strict=True):
            torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_works(format: str, tmp_path: Path) -> None:
    check(format, tmp_path)


@pytest.mark.xfail(strict=True, reason="each backend lacks one of them at least")
@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_needed(format: str, tmp_path: Path) -> None:
    check(format, tmp_path, disabled_workarounds=[FIX])
