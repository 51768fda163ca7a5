"""Pools that XNNPACK does not compute."""

from __future__ import annotations

from typing import Any

import pytest
import torch


@pytest.mark.parametrize(("window", "left"), [(2560, 0), (3, 1)])
def test_a_window_over_everything_is_a_mean(export: Any, window: int, left: int) -> None:
    """EfficientNet's last pool is 2560 wide, and ExecuTorch's kernel walks all of it; a smaller window stays a pool."""
    pool = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.AvgPool2d(window, ceil_mode=True)).eval()
    exported = export(pool, {"input": torch.randn(2, 3, 8, 10)})
    assert exported.loaded.manifest.notes["model"]["undelegated_ops"].get("avg_pool2d.default", 0) == left
    for shape in ((2, 3, 8, 10), (1, 3, 12, 7), (3, 3, 5, 16)):
        x = torch.randn(shape)
        torch.testing.assert_close(exported.loaded["model"](input=x), pool(x))
