"""Attention equals torch's, also where a row may attend to nothing, at every head size and for grouped heads."""

from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention


def tensors(batch: int, queries: int, keys: int, size: int, heads: int = 4, groups: int = 1) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(batch)
    q = torch.randn(batch, heads, queries, size, generator=generator)
    k, v = (torch.randn(batch, heads // groups, keys, size, generator=generator) for _ in "kv")
    return {"q": q, "k": k, "v": v}


@pytest.mark.parametrize("size", [16, 128, 256])
@pytest.mark.parametrize("additive", [False, True])
def test_a_fully_masked_row_is_zeros(check: Any, size: int, additive: bool) -> None:
    class Masked(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return scaled_dot_product_attention(q, k, v, mask)

    def inputs(batch: int, queries: int, keys: int) -> dict[str, torch.Tensor]:
        mask = torch.rand(batch, 1, queries, keys, generator=torch.Generator().manual_seed(1)) > 0.4
        mask[0, :, 0] = False
        given = torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, float("-inf")) if additive else mask
        return {**tensors(batch, queries, keys, size), "mask": given}

    check(Masked(), inputs(3, 7, 7), inputs(2, 5, 11), inputs(13, 5, 5))


def test_grouped_heads_and_causal(check: Any) -> None:
    class Grouped(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3, enable_gqa=True)

    check(Grouped(), tensors(2, 6, 6, 16, groups=2), tensors(3, 9, 9, 16, groups=2))
