"""Each translated operator equals torch's, on the traced sizes and on others."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

X = torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(0))
Y = torch.randn(2, 11, 8, generator=torch.Generator().manual_seed(1))


def index_put_mask(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[x > 0.5] = -1.0
    return y


def index_put_rows(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, torch.tensor([1, -2])] = y[:, torch.tensor([0, 3])] * 2
    y[0, torch.tensor([2, 4])] += 1
    return y


def fourier(x: torch.Tensor) -> Any:
    spectrum = torch.fft.fftn(x, dim=(1, 2))
    half = torch.fft.rfft(x, dim=-1, norm="ortho")
    return spectrum.real, half.abs(), torch.fft.irfft(half, n=8, dim=-1, norm="ortho"), torch.fft.ifft(spectrum).imag


def rotary(x: torch.Tensor) -> torch.Tensor:
    pairs = torch.view_as_complex(x.reshape(x.shape[0], x.shape[1], 4, 2))
    angles = torch.outer(torch.arange(x.shape[1], dtype=torch.float32), torch.tensor([1.0, 0.5, 0.25, 0.1]))
    turned = pairs * torch.polar(torch.ones_like(angles), angles).unsqueeze(0)
    return torch.view_as_real(turned).flatten(2)


def splits(x: torch.Tensor) -> Any:
    a, b = x.chunk(2, dim=1)
    c, d, e = x.split([1, 3, 4], dim=-1)
    return a, b, c, d, e, *x.unbind(-1)[:2]


def steps(x: torch.Tensor) -> Any:
    """Slices with steps, and what is made in their shapes."""
    y = x.clone()
    y[:, ::2] *= 2
    y[:, 1::3] = 1.0
    length = x.shape[1]
    return y, torch.ones_like(x[:, ::2]), torch.ones_like(x[:, 1:length:3]), x[:, :-1], x[:, -2:]


def windows_of_a_mask(x: torch.Tensor) -> torch.Tensor:
    """Writes to constants whose last axis has one place."""
    mask = torch.zeros(1, 8, 6, 1)
    for i, rows in enumerate((slice(0, -4), slice(-4, -2), slice(-2, None))):
        for j, columns in enumerate((slice(0, -3), slice(-3, None))):
            mask[:, rows, columns, :] = i + 10 * j
    mask[:, 3] += 1
    return mask.squeeze(-1) + x[:1, :1, :1]


def casts(x: torch.Tensor) -> Any:
    return (x * 3).to(torch.int64), (x > 0).to(torch.float32), (x * 0.4).to(torch.bool), x.to(torch.float16)


def joins(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.tensor([]), x, (x > 0)], dim=-1)


def pads(x: torch.Tensor) -> Any:
    images = x[:, None]
    return (
        F.pad(x, (1, 2), value=3.0),
        F.pad(x, (-1, 0, 2, 0)),
        F.pad(images, (2, 1, 1, 1), mode="reflect"),
        F.pad(images, (1, 1, 2, 2), mode="replicate"),
        F.pad(x > 0, (1, 0), value=True),
    )


def selections(x: torch.Tensor) -> Any:
    return torch.where(x > 0, x, -1.0), torch.where(x > 0, 1.0, 0.0), torch.min(x, -x), torch.maximum(x, x * 2)


def scattered(x: torch.Tensor) -> Any:
    places = (x > 0).long()
    return tuple(
        x.scatter_reduce(2, places, x * 2, reduce=how, include_self=own)
        for how, own in (("sum", True), ("amax", True), ("amin", False), ("mean", True))
    )


def reshapes(x: torch.Tensor) -> Any:
    return x.flatten(1), x.flatten(0, 1), x.unflatten(2, (2, -1)), x.transpose(1, 2).flatten(1, 2), x.flatten()


def windows(x: torch.Tensor) -> Any:
    return x.unfold(1, 3, 2), x.transpose(1, 2).unfold(-1, 2, 1)


def sizes(x: torch.Tensor) -> Any:
    length = x.shape[1]
    return torch.arange(length // 2 + length % 2) * (length / 3), x[:, : (length + 1) // 2], x.new_ones(length**2)


def softmaxes(x: torch.Tensor) -> Any:
    return x.softmax(1), x.log_softmax(-1), x.softmax(-1, dtype=torch.float64).float()


def products(x: torch.Tensor) -> Any:
    vector = torch.ones(8)
    return x @ x.transpose(1, 2), x @ vector, torch.einsum("bsh,bth->bst", x, x), vector @ x.transpose(1, 2)


def einsums_with_dots(x: torch.Tensor) -> Any:
    return (
        torch.einsum("...i,...j->...ij", x, x),
        torch.einsum("i...,j...->ij...", x, x),
        torch.einsum("...ij,kj->...ki", x, x[0]),
        torch.einsum("...j,j...", x[0], x[0].T),
    )


def norms(x: torch.Tensor) -> Any:
    return F.layer_norm(x, (8,)), F.layer_norm(x, x.shape[-1:], torch.ones(8), X[0, 0])


def convolutions(x: torch.Tensor) -> Any:
    signal, kernel = x.transpose(1, 2), torch.linspace(-1, 1, 8 * 4 * 3).reshape(8, 4, 3)
    return (
        F.conv1d(signal, kernel, torch.ones(8), stride=2, padding=1, groups=2),
        F.conv1d(signal, kernel, padding="same", groups=2),
        F.conv_transpose1d(signal, kernel, stride=2, padding=1, output_padding=1),
    )


def repeats(x: torch.Tensor) -> Any:
    rest = x.shape[1] % 4
    return x.repeat_interleave(3, dim=-2), x[:, -1:].repeat_interleave(rest + 4, dim=1), x.repeat_interleave(2)


def gathers(x: torch.Tensor) -> Any:
    places = (x > 0).long()
    return (
        x.gather(1, places),
        x.gather(-1, places[:, 1:3]),
        x.gather(0, places[:1, :, 2:] * 0),
        x.sum().gather(0, places[0, 0, 0]),
    )


def places_from_the_end(x: torch.Tensor) -> Any:
    rows, ends = torch.arange(x.shape[0]), torch.tensor([[-1], [0]])
    return (
        x[rows[:, None], torch.tensor([[0, -1, -2]])],
        x[rows - x.shape[0], :, -1],
        x[:, ends, torch.tensor([-1, 2, -8])],
        x[ends, :, torch.tensor([-1, 2])],
        x[None, :, ends, torch.tensor(-3), None],
        x[:, torch.tensor([-1, 0])],
        x[(x > 0).any(-1)],
        x[x > 0].sum(),
        (x > 0)[rows, -1],
    )


def repeats_by_row(x: torch.Tensor) -> Any:
    often = (torch.arange(x.shape[0]) * 2) % 3
    return torch.repeat_interleave(often), torch.repeat_interleave(x, often, dim=0)


def entries_of_new_axes(x: torch.Tensor) -> Any:
    rows = x[:, 0]
    picked = torch.tensor([0, 0, 0])
    return (
        rows[:, None].repeat_interleave(4, dim=1),
        rows[:, None].index_select(1, picked) * 2,
        x.unsqueeze(-1).index_select(-1, picked[:2]).flatten(2),
        rows[None].index_select(0, picked) + x[:1, :1],
    )


def reductions_then_constants(x: torch.Tensor) -> Any:
    """The CPU plugin computed these in one op, and wrongly."""
    channels, table = x.transpose(1, 2), torch.linspace(-1, 1, 8)
    return (
        channels.sum(-1) + table,
        channels.mean(-1, keepdim=True) * table[:, None],
        (channels.amax(-1) * 0.5 + 1).relu() * table,
        channels.sum(0, keepdim=True) + table[:, None],
        (x > 0).sum(-1) * 4,
        (x * 9).long().amax(1) - 3,
        (channels > 0).sum(-1)[:, :, None] * 4 + 1,
        F.batch_norm(channels.mean(-1), table, table + 2, table - 3, table),
        F.batch_norm(channels.square().sum(-1).sqrt(), table, table + 2),
    )


def ranges(x: torch.Tensor) -> Any:
    """Steps in fractions from a whole number."""
    n = x.shape[1]
    return torch.arange(0, n / 2, 0.5), torch.arange(0.5, n), torch.arange(n, 0, -2), torch.arange(0, 1, 1 / n)[1:3]


CASES = [
    ranges,
    entries_of_new_axes,
    reductions_then_constants,
    repeats_by_row,
    places_from_the_end,
    repeats,
    gathers,
    index_put_mask,
    index_put_rows,
    fourier,
    rotary,
    splits,
    steps,
    windows_of_a_mask,
    casts,
    joins,
    pads,
    selections,
    scattered,
    reshapes,
    windows,
    sizes,
    softmaxes,
    products,
    einsums_with_dots,
    norms,
    convolutions,
]


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_operator_equals_torch(check: Any, function: Callable[[torch.Tensor], Any]) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    check(Module(), {"x": X}, {"x": Y})


def test_16_bit_norms_do_not_overflow(check: Any) -> None:
    """Squares of values beyond 255 overflow in float16, so the statistics are computed in float32."""

    class Norm(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.layer_norm(x, (8,), eps=1e-3)

    check(Norm(), {"x": (X * 1e4).half()}, {"x": (Y * 1e4).half()}, atol=2e-3)


def test_a_remainder_of_a_bounded_size_is_not_folded(check: Any) -> None:
    """OpenVINO's own remainder of an axis of 4 to 12 is 0 for all of them, because it is for both ends."""

    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.new_ones(x.shape[1] % 4 + 2)

    check(Module(), {"x": X[:2]}, {"x": Y}, dynamic_shapes={"x": {1: torch.export.Dim("rows", min=4, max=12)}})


def test_fewer_rows_than_a_fixed_table_that_is_padded_or_cut(check: Any) -> None:
    """OpenVINO takes a table of nine rows, padded by a size less five, for nine rows at the least."""
    table = torch.randn(1, 9, 8, generator=torch.Generator().manual_seed(0))

    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            around = x.shape[1] - 5
            return x @ F.pad(table, (0, 0, around, around)).transpose(1, 2)

    check(Module(), {"x": X}, {"x": X[:, :3]}, {"x": Y})
