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

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """query [b, heads, s, d], key and value [b, heads / groups, t, d], mask [b, 1, s, t]."""
        if self.groups > 1:
            key, value = (self._repeat(x) for x in (key, value))
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=self.causal)

    def _repeat(self, x: torch.Tensor) -> torch.Tensor:
        b, h, t, d = x.shape
        return x[:, :, None].expand(b, h, self.groups, t, d).reshape(b, h * self.groups, t, d)


def inputs(batch: int = 2, rows: int = 5, columns: int = 6, groups: int = 1) -> dict[str, torch.Tensor]:
    torch.manual_seed(batch + rows)
    keys = {name: torch.randn(batch, 4 // groups, columns, 8) for name in ("key", "value")}
    return {"query": torch.randn(batch, 4, rows, 8), **keys}


def with_mask(kwargs: dict[str, torch.Tensor], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """A mask whose first row, in the first sample, allows no key at all."""
    rows, columns = kwargs["query"].shape[2], kwargs["key"].shape[2]
    allowed = torch.rand(kwargs["query"].shape[0], 1, rows, columns) > 0.4
    allowed[..., 0] = True
    allowed[0, 0, 0] = False
    mask = allowed if dtype == torch.bool else torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)
    return {**kwargs, "mask": mask}


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_row_without_keys_gives_zeros(export: Any, dtype: torch.dtype, groups: int) -> None:
    kwargs = with_mask(inputs(groups=groups), dtype)
    exported = export(Attention(groups), kwargs)
    for batch, rows, columns in ((2, 5, 6), (3, 1, 9)):
        kwargs = with_mask(inputs(batch, rows, columns, groups), dtype)
        assert exported.error(**kwargs) < 1e-5
        assert (exported(**kwargs)[0, :, 0] == 0).all()


def test_causal_attention_is_whole_in_one_part(export: Any) -> None:
    exported = export(Attention(groups=2, causal=True), inputs(columns=5, groups=2))
    assert exported.notes["undelegated_ops"].keys().isdisjoint({"bmm.default", "_softmax.default", "expand_copy.default"})
    assert exported.error(**inputs(3, 7, 7, groups=2)) < 1e-5
