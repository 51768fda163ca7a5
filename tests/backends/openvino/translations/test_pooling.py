"""Average pooling equals torch's where the window is larger than the image, and elsewhere."""

from typing import Any

import pytest
import torch


@pytest.mark.parametrize(
    "pool",
    [
        torch.nn.AvgPool2d(8, ceil_mode=True),
        torch.nn.AvgPool2d(3, 2, ceil_mode=True),
        torch.nn.AvgPool2d(2, 3, ceil_mode=True),
        torch.nn.AvgPool2d(2560, ceil_mode=True),
        torch.nn.AvgPool2d(2, 2, 1),
        torch.nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    ],
)
def test_pooling_equals_torch_at_any_size(check: Any, pool: torch.nn.Module) -> None:
    check(pool, {"input": torch.randn(2, 3, 9, 12)}, {"input": torch.randn(1, 3, 13, 8)})
    if pool.kernel_size == 8:
        check(pool, {"input": torch.randn(2, 3, 5, 6)}, {"input": torch.randn(1, 3, 4, 17)})


@pytest.mark.parametrize(
    "pool", [torch.nn.AdaptiveAvgPool1d(1), torch.nn.AdaptiveAvgPool1d(3), torch.nn.AdaptiveAvgPool2d((2, 3))]
)
def test_adaptive_pooling_equals_torch_at_any_size(check: Any, pool: torch.nn.Module) -> None:
    check(pool, {"input": torch.randn(2, 9, 12)}, {"input": torch.randn(3, 9, 17)})
