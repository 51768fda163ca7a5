"""Numbers that a model returns beside its tensors."""

import pytest
import torch

from transformers_exporters import AutoExportConfig, AutoHfExporter, ExportedModel


class Counted(torch.nn.Module):
    def forward(self, x):
        """x float [batch, t] -> the same, how many steps it has beyond two, and a constant."""
        return {"x": x * 2, "steps": x.shape[1] - 2, "heads": 3}


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_a_number_made_of_sizes_is_computed(format, tmp_path):
    config = AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    exporter = AutoHfExporter.from_config(config)
    exporter.export_model(Counted(), {"x": torch.randn(2, 4)}, config).save_pretrained(tmp_path / "artifact")
    loaded = ExportedModel.from_pretrained(tmp_path / "artifact", trust_remote_code=True)
    for steps in (2, 5):
        x = torch.randn(3, steps + 2)
        outputs = loaded(x=x)
        torch.testing.assert_close(outputs["x"], x * 2)
        assert outputs["steps"] == steps
        assert outputs["heads"] == 3
