"""Elementwise functions where their value is far from 1."""

from __future__ import annotations

import pytest
import torch

import transformers_exporters as te


class LogSigmoid(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.logsigmoid(x)


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_log_sigmoid_is_finite(format: str) -> None:
    """The gates of xLSTM and of gated linear attention: minus infinity from -89 on, in silence, on ONNX and OpenVINO."""
    config = te.AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    exported = te.AutoHfExporter.from_config(config).export_model(LogSigmoid(), {"x": torch.randn(3, 4)}, config=config)
    x = torch.tensor([[-1e4, -200.0, -89.0, -20.0], [-1.0, -1e-3, 0.0, 1e-3], [1.0, 20.0, 89.0, 1e4]])
    torch.testing.assert_close(exported(x=x), LogSigmoid()(x))
