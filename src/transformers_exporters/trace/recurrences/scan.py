"""Prefix scans in closed form: a recurrence over the sequence as a graph of fixed size that holds for every length.

A Python loop over the sequence is unrolled by the trace, which freezes the axis at the traced length. Control-flow
operators would keep it, but only some backends lower them. Here the loop becomes plain tensor ops, by doubling: after
round `i` every position holds the composition of its last `2**i` steps, so a fixed number of rounds serves every length
up to a bound. `linear_scan` first cuts the sequence into blocks, so that only the block totals pay for the many rounds:
its work is `log2(BLOCK) + ROUNDS / BLOCK` passes over the data instead of `ROUNDS`.

Two choices keep the *trace* short (measured on one scan of a [14, 7, 6, 4] state, torch 2.13): positions are shifted by
a gather, whose result has the shape of its input, and not by pad-and-slice, which makes a new symbolic shape each
round (0.6 s against 2.3 s); and blocks are shifted by one pad with a negative end (`unbind` alone costs 2.3 s).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

#: Steps to a block of `linear_scan`; a power of two.
BLOCK = 16
#: Rounds over the block totals: sequences of up to 16 * 2**17 = 2 097 152 steps.
ROUNDS = 17

Element = tuple[Tensor, ...]
#: `combine(earlier, later)`: the element that does what `earlier` and then `later` do. It must be associative.
Combine = Callable[[Element, Element], Element]


def linear_scan(decay: Tensor, update: Tensor, initial: Tensor | None = None) -> Tensor:
    """States of `h_t = decay_t * h_(t-1) + update_t`, elementwise, for up to 2**21 steps.

    Args:
        decay: float [batch, time, *feature], broadcastable to `update`.
        update: float [batch, time, *feature].
        initial: float [batch, *feature], the state before the first step; zeros if None.

    Returns:
        float [batch, time + 1, *feature]: the initial state, then the state after every step.
    """

    def combine(earlier: Element, later: Element) -> Element:
        return earlier[0] * later[0], earlier[1] * later[0] + later[1]

    start = torch.zeros_like(update[:, 0]) if initial is None else initial.to(update.dtype)
    # A first step with decay 0 and the start as its update forgets whatever came before it.
    first = (_pad(decay, 1, 1, 0, 0.0), torch.cat([start.unsqueeze(1), update], dim=1))
    return blocked_scan(combine, first, identity=(1.0, 0.0))[1]


def affine_scan(transition: Tensor, update: Tensor, initial: Tensor, rounds: int = 12) -> Tensor:
    """States of the matrix recurrence `S_t = transition_t @ S_(t-1) + update_t`, for up to `2**rounds` steps.

    Args:
        transition: float [batch, time, *heads, rows, rows].
        update: float [batch, time, *heads, rows, columns].
        initial: float [batch, *heads, rows, columns].
        rounds: Doublings of the reach.

    Returns:
        float [batch, time + 1, *heads, rows, columns]: the initial state, then the state after every step.
    """

    def combine(earlier: Element, later: Element) -> Element:
        return later[0] @ earlier[0], later[0] @ earlier[1] + later[1]

    first = (_pad(transition, 1, 1, 0, 0.0), torch.cat([initial.to(update.dtype).unsqueeze(1), update], dim=1))
    return doubling_scan(combine, first, rounds)[1]


def blocked_scan(combine: Combine, elements: Element, identity: tuple[float, ...]) -> Element:
    """All prefixes `x_0, x_0·x_1, x_0·x_1·x_2, ...` of a sequence under an associative operation.

    Args:
        combine: The operation. It gets tensors of shape [..., *feature] and works on the feature axes alone.
        elements: Tensors of shape [batch, time, *feature]. The first element must forget what comes before it:
            `combine(x, elements[:, 0])` is `elements[:, 0]` for every x.
        identity: For each tensor the number that fills an element which changes nothing.

    Returns:
        Tensors of shape [batch, time, *feature].
    """
    batch, time = elements[0].shape[:2]
    # One block more than needed: a single block would be of size 1, which torch.export takes for a constant.
    blocks = (time + BLOCK - 1) // BLOCK + 1
    inside = tuple(
        _pad(x, 1, 0, blocks * BLOCK - time, fill).reshape(batch, blocks, BLOCK, *x.shape[2:])
        for x, fill in zip(elements, identity, strict=True)
    )
    shift = 1
    while shift < BLOCK:
        inside = combine(tuple(_pad(x, 2, shift, -shift, f) for x, f in zip(inside, identity, strict=True)), inside)
        shift *= 2
    totals = doubling_scan(combine, tuple(x[:, :, BLOCK - 1] for x in inside), ROUNDS)
    # The first block starts with the element that forgets, so what is put before it does not matter.
    index = (torch.arange(blocks, device=elements[0].device) - 1).clamp(min=0)
    whole = combine(tuple(x.index_select(1, index).unsqueeze(2) for x in totals), inside)
    return tuple(x.reshape(batch, blocks * BLOCK, *x.shape[3:])[:, :time] for x in whole)


def doubling_scan(combine: Combine, elements: Element, rounds: int) -> Element:
    """As `blocked_scan`, by doubling alone: right for up to `2**rounds` steps, at `rounds` passes over the data."""
    position = torch.arange(elements[0].shape[1], device=elements[0].device)
    for i in range(rounds):
        # Positions that have no step that far back read the first element, and forget it: they already hold it.
        index = (position - 2**i).clamp(min=0)
        elements = combine(tuple(x.index_select(1, index) for x in elements), elements)
    return elements


def unit_lower_inverse(strictly_lower: Tensor) -> Tensor:
    """Inverse of `I + strictly_lower`, without a loop over rows.

    The inverses of the diagonal blocks of size 1, 2, 4, ... are built from each other: with `D` the block diagonal and
    `Q` the lower left quadrants of the next size, `(D + Q)^-1 = D^-1 - D^-1 Q D^-1` exactly. That is as stable as forward
    substitution; a product of powers is not (its terms grow like binomials and cancel).

    Args:
        strictly_lower: float [..., size, size], zero on and above the diagonal. `size` is static.
    """
    size = int(strictly_lower.shape[-1])
    index = torch.arange(size, device=strictly_lower.device)
    inverse = torch.eye(size, dtype=strictly_lower.dtype, device=strictly_lower.device)
    width = 1
    while width < size:
        row, column = index.unsqueeze(1) // width, index.unsqueeze(0) // width
        quadrant = ((row == column + 1) & (row % 2 == 1)).to(strictly_lower.dtype)
        inverse = inverse - inverse @ (strictly_lower * quadrant) @ inverse
        width *= 2
    return inverse


def _pad(x: Tensor, dim: int, before: int, after: int, fill: float) -> Tensor:
    return F.pad(x, [0, 0] * (x.dim() - dim - 1) + [before, after], value=fill)
