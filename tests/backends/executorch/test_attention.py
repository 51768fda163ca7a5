"""Attention inside XNNPACK."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F


class Attention(torch.nn.Module):
    """Grouped-query attention as transformers writes it: keys repeated for each query head."""

    def __init__(self, groups: int = 1, causal: bool = False) -> None:
        super().__init__()
        self.groups, self.causal = groups, causal
        widths = {"query": 32, "key": 32 // groups, "value": 32 // groups}
        self.projections = torch.nn.ModuleList(torch.nn.Linear(32, width) for width in widths.values())

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """query [b, s, 32], key and value [b, t, 32], mask [b, 1, s, t]; four heads of width 8."""
        projected = [layer(x) for layer, x in zip(self.projections, (query, key, value), strict=True)]
        query, key, value = (x.view(*x.shape[:2], -1, 8).transpose(1, 2) for x in projected)
        if self.groups > 1:
            key, value = (self._repeat(x) for x in (key, value))
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=self.causal)

    def _repeat(self, x: torch.Tensor) -> torch.Tensor:
        b, h, t, d = x.shape
        return x[:, :, None].expand(b, h, self.groups, t, d).reshape(b, h * self.groups, t, d)


def inputs(batch: int = 2, rows: int = 5, columns: int = 6) -> dict[str, torch.Tensor]:
    torch.manual_seed(batch + rows)
    keys = {name: torch.randn(batch, columns, 32) for name in ("key", "value")}
    return {"query": torch.randn(batch, rows, 32), **keys}


def with_mask(kwargs: dict[str, torch.Tensor], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """A mask whose first row, in the first sample, allows no key at all."""
    rows, columns = kwargs["query"].shape[1], kwargs["key"].shape[1]
    allowed = torch.rand(kwargs["query"].shape[0], 1, rows, columns) > 0.4
    allowed[..., 0] = True
    allowed[0, 0, 0] = False
    mask = allowed if dtype == torch.bool else torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)
    return {**kwargs, "mask": mask}


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_row_without_keys_gives_zeros(export: Any, dtype: torch.dtype, groups: int) -> None:
    kwargs = with_mask(inputs(), dtype)
    exported = export(Attention(groups), kwargs)
    for batch, rows, columns in ((2, 5, 6), (3, 1, 9)):
        kwargs = with_mask(inputs(batch, rows, columns), dtype)
        assert exported.error(**kwargs) < 1e-5
        result = exported(**kwargs)
        assert (result[0, :, 0] == 0).all()


def test_grouped_causal_attention_repeats_no_key(export: Any) -> None:
    exported = export(Attention(groups=2, causal=True), inputs(columns=5))
    slow = {"bmm.default", "_softmax.default", "expand_copy.default"}
    assert exported.notes["undelegated_ops"].keys().isdisjoint(slow)
    assert exported.error(**inputs(3, 7, 7)) < 1e-5


class AcrossChannels(torch.nn.Module):
    """Attention whose heads, rows and width are all axes of the input."""

    def __init__(self, grouped: bool) -> None:
        super().__init__()
        self.grouped = grouped

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """values [b, h, n, w]."""
        query = torch.cat([values, -values], 1) if self.grouped else values
        return F.scaled_dot_product_attention(query, values, values.flip(-1), enable_gqa=self.grouped)


@pytest.mark.parametrize("grouped", [False, True])
def test_heads_of_any_number_and_width(export: Any, grouped: bool) -> None:
    exported = export(AcrossChannels(grouped), {"values": torch.randn(2, 4, 7, 3)})
    for shape in ((2, 4, 7, 3), (3, 5, 8, 4), (1, 2, 3, 9)):
        assert exported.error(values=torch.randn(*shape)) < 1e-5
