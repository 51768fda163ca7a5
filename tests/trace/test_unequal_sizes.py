"""`trace.unequal_sizes`: graphs that were traced where sizes came out equal."""

from __future__ import annotations

import math

import pytest
import torch

import transformers_exporters as te


class Cells(torch.nn.Module):
    """Cuts feature maps into cells of two, for which it resizes them first if it has to."""

    def __init__(self, *, otherwise: float = 1.0) -> None:
        super().__init__()
        self.halved = torch.nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.otherwise = otherwise

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        features = self.halved(pixel_values)
        height, width = features.shape[-2:]
        rows, columns = math.ceil(height / 2), math.ceil(width / 2)
        resized = 2 * rows != height or 2 * columns != width
        if resized:
            features = torch.nn.functional.interpolate(features, size=(2 * rows, 2 * columns), mode="bilinear")
            features = features * self.otherwise
        cells = features.reshape(features.shape[0], 4, rows, 2, columns, 2)
        features = cells.softmax(-1).reshape(features.shape[0], 4, 2 * rows, 2 * columns)
        if resized:
            features = torch.nn.functional.interpolate(features, size=(height, width), mode="bilinear")
        return features


def images(batch: int, height: int, width: int) -> torch.Tensor:
    return torch.randn(batch, 3, height, width)


@pytest.mark.parametrize("size", [(32, 48), (30, 48), (31, 45)])
def test_a_model_that_resizes_where_it_has_to_takes_every_size(size: tuple[int, int]) -> None:
    model = Cells().eval()
    graph = te.DynamoExporter().export_model(model, {"pixel_values": images(2, *size)}, te.DynamoConfig(dynamic=True))
    for height, width in (size, (32, 48), (33, 47), (16, 17), (90, 64)):
        values = images(3, height, width)
        torch.testing.assert_close(graph(pixel_values=values)[0], model(values)[0])


def test_where_the_ways_differ_the_other_sizes_are_refused() -> None:
    model = Cells(otherwise=2.0).eval()
    graph = te.DynamoExporter().export_model(model, {"pixel_values": images(2, 32, 48)}, te.DynamoConfig(dynamic=True))
    values = images(3, 32, 48)
    torch.testing.assert_close(graph(pixel_values=values)[0], model(values)[0])
    with pytest.raises(te.InputError):
        graph(pixel_values=images(3, 30, 48))
