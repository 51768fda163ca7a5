"""The border of a traced program."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import transformers_exporters as te


class Positions(torch.nn.Module):
    """Adds positions, which one row gives for the whole batch, as transformers makes them."""

    def forward(self, inputs_embeds: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        return inputs_embeds * position_ids[..., None]


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_one_row_for_the_batch(format: str, tmp_path: Path) -> None:
    config = te.AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    sample = {"inputs_embeds": torch.randn(2, 8, 4), "position_ids": torch.arange(8)[None]}
    te.AutoHfExporter.from_config(config).export_model(Positions(), sample, config).save_pretrained(tmp_path)
    loaded = te.ExportedModel.from_pretrained(tmp_path, trust_remote_code=True)
    x = torch.randn(3, 5, 4)
    for rows in (1, 3):
        positions = torch.arange(5).expand(rows, -1) * torch.arange(1, rows + 1)[:, None]
        torch.testing.assert_close(
            loaded(inputs_embeds=x, position_ids=positions), Positions()(x, positions), msg=f"{rows} rows of positions"
        )
