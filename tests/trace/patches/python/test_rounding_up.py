from __future__ import annotations

import pytest
import torch
from torch import SymInt
from torch.fx.experimental.symbolic_shapes import statically_known_true

ID = "trace.patches.python.rounding_up"


class Pad(torch.nn.Module):
    """Pads to whole windows in the two ways in which models write it; in a trace, the result must be known to divide."""

    def forward(self, x):
        height, width = x.shape
        down, across = (4 - height % 4) % 4, (-width) % 3
        if isinstance(height, SymInt):
            assert statically_known_true((height + down) % 4 == 0)
            assert statically_known_true((width + across) % 3 == 0)
        padded = torch.nn.functional.pad(x, (0, across, 0, down))
        return padded.view((height + down) // 4, 4, (width + across) // 3, 3)


def inputs(height: int, width: int) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(height, width, generator=torch.Generator().manual_seed(height))}


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="shape algebra does not see that the size divides")
def test_needed(runs_like):
    runs_like(Pad(), inputs(9, 10), [inputs(8, 9)], without=[ID])


def test_works(runs_like):
    runs_like(Pad(), inputs(9, 10), [inputs(8, 9), inputs(5, 4), inputs(13, 12), inputs(16, 20)])


class PadBehindStrides(torch.nn.Module):
    """Pads to whole windows what a convolution with strides made of an image (SAM 2)."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patches = torch.nn.Conv2d(1, 2, 7, stride=4, padding=3)

    def forward(self, x):
        x = self.patches(x)
        height, width = x.shape[-2:]
        down, across = (-height) % 4, (-width) % 3
        if isinstance(height, SymInt):
            assert statically_known_true((height + down) % 4 == 0)
        padded = torch.nn.functional.pad(x, (0, across, 0, down))
        return padded.view(-1, 2, (height + down) // 4, 4, (width + across) // 3, 3)


def test_behind_strides(runs_like):
    def image(height: int, width: int) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(2, 1, height, width, generator=torch.Generator().manual_seed(height))}

    runs_like(PadBehindStrides(), image(41, 50), [image(64, 48), image(33, 70), image(90, 20)])


class PadWithRemainder(torch.nn.Module):
    """Pads what has a remainder, and sees the padding (Swin's patch embedding)."""

    def forward(self, x):
        height, width = x.shape
        if width % 3 != 0:
            x = torch.nn.functional.pad(x, (0, 3 - width % 3))
        if height % 4:
            x = torch.nn.functional.pad(x, (0, 0, 0, 4 - height % 4))
        return x


def test_below_the_question_whether_there_is_a_remainder(runs_like):
    runs_like(PadWithRemainder(), inputs(9, 10), [inputs(8, 9), inputs(5, 9), inputs(4, 4), inputs(13, 12)])
