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


class Merging(torch.nn.Module):
    """Puts the mean of each image, one after the other, in the place of the tokens 9, as LLaVA does."""

    def forward(self, input_ids: torch.Tensor, pixel_values: torch.Tensor) -> torch.Tensor:
        places = (input_ids == 9).unsqueeze(-1).expand(-1, -1, 3)
        text = input_ids.unsqueeze(-1).expand(-1, -1, 3).to(torch.float32)
        if int((input_ids == 9).sum()) != pixel_values.shape[0] and not torch.compiler.is_compiling():
            raise ValueError("as many images as tokens for them")
        return text.masked_scatter(places, pixel_values.mean((2, 3)))


def test_rows_and_their_images_vary_apart() -> None:
    def sample(rows: int, images: int) -> dict[str, torch.Tensor]:
        ids = torch.tensor([[1, 2, *(9,) * images, 3]]).repeat(rows, 1)
        return {"input_ids": ids, "pixel_values": torch.randn(rows * images, 3, 8, 8)}

    exported = te.DynamoExporter().export_model(Merging(), sample(1, 2), te.DynamoConfig(dynamic=True))
    for rows, images in ((1, 1), (3, 1), (2, 3), (1, 4)):
        inputs = sample(rows, images)
        torch.testing.assert_close(exported(**inputs), Merging()(**inputs))


class Matching(torch.nn.Module):
    """Scores every image by every text, as CLIP does."""

    def forward(self, input_ids: torch.Tensor, pixel_values: torch.Tensor) -> torch.Tensor:
        return pixel_values.mean((2, 3)) @ input_ids.float()[:, :3].t()


def test_any_number_of_images_beside_any_number_of_texts() -> None:
    """Though the sample has as many: that is by chance, as the model takes one image more."""

    def sample(texts: int, images: int) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.arange(texts * 5).view(texts, 5), "pixel_values": torch.randn(images, 3, 8, 8)}

    exported = te.DynamoExporter().export_model(Matching(), sample(2, 2), te.DynamoConfig(dynamic=True))
    for texts, images in ((1, 1), (3, 1), (2, 5)):
        inputs = sample(texts, images)
        torch.testing.assert_close(exported(**inputs), Matching()(**inputs))
