import pytest
import torch

from transformers_exporters.quantize.blockwise import Blocks, quantize_rows
from transformers_exporters.quantize.sensitivity import Product, most_sensitive


def dequantized(blocks: Blocks) -> torch.Tensor:
    """The weight that the documented layout stands for."""

    def integers(packed: torch.Tensor) -> torch.Tensor:
        if blocks.bits == 8:
            return packed.float()
        return torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2).float()

    values = integers(blocks.values)
    zero = torch.tensor(2.0 ** (blocks.bits - 1))
    if blocks.zero_points is not None:
        zero = integers(blocks.zero_points)[:, : values.shape[1], None]
    weight = (values - zero) * blocks.scales.float()[..., None]
    return weight.flatten(1)[:, : blocks.columns]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits,accepted", [(8, 0.01), (4, 0.12)])
@pytest.mark.parametrize("columns", [64, 70])
def test_error_and_layout(bits: int, accepted: float, symmetric: bool, columns: int) -> None:
    weight = torch.randn(40, columns, generator=torch.Generator().manual_seed(0))
    blocks = quantize_rows(weight, bits=bits, block_size=32, symmetric=symmetric)
    restored = dequantized(blocks)
    error = float((restored - weight).square().sum() / weight.square().sum())
    assert error**0.5 < accepted
    assert blocks.error == pytest.approx(error, rel=1e-3)
    assert blocks.values.shape == (40, -(-columns // 32), 32 * bits // 8)


def test_search_beats_the_whole_range() -> None:
    """Clipping the outermost values makes the steps of all others finer."""
    weight = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    found = quantize_rows(weight, bits=4, block_size=32, symmetric=False)
    low, high = weight.min(-1, keepdim=True).values, weight.max(-1, keepdim=True).values
    scale = (high - low) / 15
    zero = (-low / scale).round()
    plain = ((weight / scale).round() + zero).clamp(0, 15).sub(zero) * scale
    assert found.error < 0.95 * float((plain - weight).square().sum() / weight.square().sum())


def test_values_that_four_bits_hold_come_back() -> None:
    weight = torch.randint(-8, 8, (16, 64), generator=torch.Generator().manual_seed(0)).float() * 0.25
    weight[:, ::32] = -2  # the whole range is used, so that its scale is 0.25
    assert torch.equal(dequantized(quantize_rows(weight, bits=4, block_size=32, symmetric=True)), weight)


@pytest.mark.parametrize("weight", [torch.zeros(4, 32), torch.full((4, 32), 1e-9)])
def test_nothing_becomes_nothing(weight: torch.Tensor) -> None:
    assert torch.equal(dequantized(quantize_rows(weight, bits=4, block_size=32, symmetric=False)), torch.zeros(4, 32))


def test_half_precision_and_views() -> None:
    weight = torch.randn(64, 48, generator=torch.Generator().manual_seed(0)).half()
    turned = quantize_rows(weight.t(), bits=8, block_size=16, symmetric=True)
    assert torch.allclose(dequantized(turned), weight.t().float(), atol=0.03)


def test_most_sensitive() -> None:
    products = {
        "up": Product(rows=400, columns=100),
        "down": Product(rows=100, columns=400, error=0.5),
        "values": Product(rows=20, columns=100, error=0.5),
        "square": Product(rows=100, columns=100, error=0.6),
    }
    assert most_sensitive(products, 0.5) == {"values", "down"}
    assert most_sensitive(products, 0.03) == {"values"}
    assert most_sensitive(products, 0.0) == set()
    assert most_sensitive(products, 1.0) == set(products)
