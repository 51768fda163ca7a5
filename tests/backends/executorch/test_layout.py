"""Tensors that are not row-major in eager's graph: every one of a program is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F


class Positions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Parameter(torch.randn(1, 3, 3, 5))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """image [b, 1, h, w]: DINOv2's position table, resized to the image's grid."""
        size = image.shape[-2:]
        table = F.interpolate(self.table.permute(0, 3, 1, 2), size=size, mode="bicubic", align_corners=False)
        return table.permute(0, 2, 3, 1) * 2.0


def test_a_table_resized_in_channels_last(export: Any) -> None:
    exported = export(Positions(), {"image": torch.randn(2, 1, 7, 9)})
    for size in ((7, 9), (3, 3), (12, 20)):
        assert exported.error(image=torch.randn(2, 1, *size)) < 1e-4


class Windows(torch.nn.Module):
    def forward(self, features: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """features [b, c, h, w], rows [n]: EfficientLoFTR's choice among cells that lie channels-last in memory."""
        cells = F.unfold(features, kernel_size=3, padding=1).reshape(features.shape[0], features.shape[1], 9, -1)
        cells = cells.permute(0, 3, 2, 1) + 1.0
        return cells[rows.remainder(features.shape[0]), rows]


def test_choosing_among_channels_last_rows(export: Any) -> None:
    exported = export(Windows(), {"features": torch.randn(2, 3, 6, 7), "rows": torch.tensor([0, 3, 5])})
    assert exported.error(features=torch.randn(3, 3, 8, 5), rows=torch.tensor([7, 2, 0, 1])) < 1e-5


class AfterConvolution(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.function = function

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """image [b, 3, h, w]: XNNPACK's convolution hands its result on with the channels last."""
        return self.function(self.convolution(image))


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x.softmax(-1), id="softmax"),  # along the channels before, in silence
        pytest.param(lambda x: x[:, 1:] * 2, id="channels"),
        pytest.param(lambda x: x[:, -1:] * 2, id="last channel"),
        pytest.param(lambda x: x @ x.transpose(-1, -2), id="product"),
        pytest.param(lambda x: F.scaled_dot_product_attention(x, x, x), id="attention"),
        pytest.param(lambda x: F.pixel_shuffle(x[:, :4], 2), id="pixel shuffle"),
        pytest.param(lambda x: x.flatten(2) * 2, id="view"),
        pytest.param(lambda x: F.layer_norm(x.permute(0, 2, 3, 1), (4,)), id="norm of channels"),
    ],
)
def test_what_follows_a_convolution(export: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    exported = export(AfterConvolution(function), {"image": torch.randn(2, 3, 6, 6)}, dynamic=False)
    assert exported.error(image=torch.randn(2, 3, 6, 6)) < 1e-5


class NormAlone(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm = torch.nn.BatchNorm2d(6)
        torch.nn.init.normal_(self.norm.running_mean)  # type: ignore[arg-type]
        torch.nn.init.uniform_(self.norm.running_var, 0.5, 2.0)  # type: ignore[arg-type]

    def forward(self, spectrum: torch.Tensor) -> torch.Tensor:
        """spectrum [b, 1, t, 6]: CLAP's norm of mel bins, a convolution of its own with no other next to it."""
        return self.norm(spectrum.transpose(1, 3)).transpose(1, 3)


@pytest.mark.parametrize("frames", [6, 5])  # as many as bins: the wrong numbers, in silence
def test_a_batch_norm_without_convolutions(export: Any, frames: int) -> None:
    exported = export(NormAlone(), {"spectrum": torch.randn(2, 1, frames, 6)}, dynamic=False)
    assert exported.error(spectrum=torch.randn(2, 1, frames, 6)) < 1e-5


class NormOfProduct(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.norm = torch.nn.Linear(5, width), torch.nn.BatchNorm2d(6)
        torch.nn.init.normal_(self.norm.running_mean)  # type: ignore[arg-type]
        torch.nn.init.uniform_(self.norm.running_var, 0.5, 2.0)  # type: ignore[arg-type]

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """values [b, 6, n, 5]: the layer is about the last axis, the norm about the second."""
        return self.norm(self.layer(values))


@pytest.mark.parametrize("width", [6, 1])  # as many as channels: the wrong numbers, in silence
def test_a_batch_norm_of_a_product(export: Any, width: int) -> None:
    exported = export(NormOfProduct(width), {"values": torch.randn(2, 6, 4, 5)})
    assert exported.error(values=torch.randn(3, 6, 7, 5)) < 1e-5


class PooledChoice(torch.nn.Module):
    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        """signal [b, c, n]: the places that a mask picks, pooled."""
        return F.avg_pool1d(signal[..., signal[0, 0] > 0], 2)


def test_pooling_over_a_length_that_is_data(export: Any) -> None:
    signal = torch.tensor([1.0, -1, 2, 3, -2, 4, 5, -1, 2]).expand(2, 3, 9).clone()
    exported = export(PooledChoice(), {"signal": signal})
    assert exported.error(signal=torch.cat([signal, 2 * signal], -1)[:1]) < 1e-5


class Frames(torch.nn.Module):
    def forward(self, features: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        """features [patches, 4], grid int64 [2, 2], rows and columns: HY-V4-VL's images, each with a column at its end."""
        tokens = []
        for (high, wide), part in zip(grid.tolist(), features.split(grid.prod(-1).tolist()), strict=True):
            images = part.reshape(-1, high, wide, 4).permute(0, 3, 1, 2)
            count, channels, rows, _ = F.avg_pool2d(images, 2).shape
            images = torch.cat([F.avg_pool2d(images, 2), images.new_ones(count, channels, rows, 1)], dim=-1)
            tokens.append(images.reshape(count, channels, -1).permute(0, 2, 1).reshape(1, -1, channels))
        return torch.cat(tokens, dim=1)


def test_joining_images_whose_sizes_are_data(export: Any) -> None:
    def inputs(*sizes: tuple[int, int]) -> dict[str, torch.Tensor]:
        grid = torch.tensor(sizes)
        return {"features": torch.randn(int(grid.prod(-1).sum()), 4), "grid": grid}

    exported = export(Frames(), inputs((4, 6), (2, 8)))
    for sizes in (((4, 6), (2, 8)), ((8, 4), (6, 6))):
        assert exported.error(**inputs(*sizes)) < 1e-6


class Places(torch.nn.Module):
    def forward(self, x: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """x [6, 2], m bool [n, 6]: torch traces `nonzero` with column-major strides, and the kernel fills it row by row."""
        places, (rows, columns) = torch.nonzero(m), torch.where(m)
        (line,) = torch.where(m.any(1))
        return places, x[places[:, 1]] * 2, rows + columns, line + 1, torch.argwhere(m) * 2


def test_places_of_what_is_not_zero(export: Any) -> None:
    def inputs(n: int) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(6, 2), "m": torch.randn(n, 6) > 0}

    torch.manual_seed(3)
    exported = export(Places(), inputs(3))
    for n in (1, 3, 7):
        assert exported.error(**inputs(n)) == 0
