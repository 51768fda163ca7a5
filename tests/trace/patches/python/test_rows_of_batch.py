from __future__ import annotations

import sys

import pytest
import torch

ID = "trace.patches.python.rows_of_batch"


class Features(torch.nn.Module):
    def forward(self, features, image_sizes):
        """features float [patches, channels], image_sizes int64 [images, 2]: their features in the order of the images."""
        sections = [(height // 4) * (width // 4) for height, width in image_sizes]
        return torch.cat(torch.split(features, sections), dim=0) * 2


class Videos(torch.nn.Module):
    def forward(self, videos):
        """videos float [videos, frames, channels] -> float [videos * frames * channels]."""
        flat = [video.flatten(0, 1) for video in videos * 2]
        return torch.cat(flat, dim=0) + 1


def inputs(*grid: tuple[int, int]) -> dict[str, torch.Tensor]:
    patches = sum(height * width for height, width in grid)
    return {"features": torch.randn(patches, 6), "image_sizes": torch.tensor(grid) * 4}


@pytest.mark.xfail(strict=True, reason="the list fixes the number of images")
def test_needed(runs_like):
    runs_like(Features(), inputs((4, 6), (2, 4)), [inputs((2, 2), (4, 4), (6, 2))], without=[ID])


@pytest.mark.xfail(strict=True, reason="the list fixes the number of videos")
def test_needed_for_flat_rows(runs_like):
    runs_like(Videos(), {"videos": torch.randn(3, 5, 4)}, [{"videos": torch.randn(2, 7, 4)}], without=[ID])


def test_works(runs_like):
    runs_like(Features(), inputs((4, 6), (2, 4)), [inputs((2, 2), (5, 4), (6, 3)), inputs((6, 4))])


def test_flat_rows(runs_like):
    others = [{"videos": torch.randn(2, 7, 4)}, {"videos": torch.randn(1, 2, 4)}]
    runs_like(Videos(), {"videos": torch.randn(3, 5, 4)}, others)


def test_tensors_are_iterated_as_before_afterwards():
    assert "__iter__" not in vars(sys.modules["torch._subclasses.fake_tensor"].FakeTensor)
    assert [int(row.sum()) for row in torch.tensor([[1, 2], [3, 4]])] == [3, 7]
