"""Rope positions of tokens where a run of tokens is one image or video: text counts on, images lie on their grids."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["Vision", "locate", "positions", "run_numbers"]


class Vision(NamedTuple):
    """For every token, int64 [batch, seq]: its place in its image, how far the image moves the text behind it, and its number."""

    frame: Tensor
    row: Tensor
    column: Tensor
    advance: Tensor
    started: Tensor
    number: Tensor


def locate(member: Tensor, grid_thw: Tensor, merge: int, ends_rows: bool) -> Vision:
    """Where the tokens of one modality lie; zeros for all other tokens. `member`: bool [batch, seq]."""
    started = _starts(member).long()
    number = run_numbers(member)
    grid = grid_thw[number.flatten()].reshape(*number.shape, 3)
    rows, columns = grid[..., 1] // merge, grid[..., 2] // merge + ends_rows
    size = grid[..., 0] * rows * columns
    inside = member.long()
    # Tokens of this modality before this one in the row, less those of the images before this one.
    place = inside.cumsum(1) - 1 - ((started * size).cumsum(1) - size)
    frame, rest = place // (rows * columns), place % (rows * columns)
    row, column = rest // columns, rest % columns
    if ends_rows:
        side = torch.maximum(rows, columns)
        frame, advance = frame * side, grid[..., 0] * side
        row, column = frame + row, frame + column
    else:
        advance = torch.maximum(grid[..., 1], grid[..., 2]) // merge
    return Vision(frame * inside, row * inside, column * inside, advance * inside, started, number)


def run_numbers(member: Tensor) -> Tensor:
    """int64 [batch, seq]: which run of the whole batch a token belongs to (0 before the first one). `member`: bool [batch, seq]."""
    return (_starts(member).long().flatten().cumsum(0).reshape(member.shape) - 1).clamp(min=0)


def _starts(member: Tensor) -> Tensor:
    return member & ~torch.cat([torch.zeros_like(member[:, :1]), member[:, :-1]], dim=1)


def positions(
    input_ids: Tensor, valid: Tensor, kind: Tensor, images: list[Vision], scale: Any = 1
) -> tuple[Tensor, Tensor]:
    """The positions [3, batch, seq] (0 for padding), and how far the next one of each row is from its length [batch, 1].

    Args:
        input_ids: Integers [batch, seq]; positions that are whole numbers get their dtype.
        valid: int64 [batch, seq], 1 where a token is no padding.
        kind: int64 [batch, seq], 0 for text.
        images: What `locate` found, for each kind.
        scale: Positions a frame: a number, or a tensor [batch, seq].
    """
    text = valid * (kind == 0).long()
    base = text.cumsum(1) - text
    frame = row = column = torch.zeros_like(base)
    for image in images:
        base = base + (image.started * image.advance).cumsum(1) - image.advance
        frame, row, column = frame + image.frame, row + image.row, column + image.column
    spaced = (frame * scale).long() if isinstance(scale, Tensor) or scale != 1 else frame
    positions = torch.stack([base + spaced, base + row, base + column]) * valid
    deltas = positions.amax(dim=(0, 2)) + 1 - valid.sum(1)
    whole = positions if positions.is_floating_point() else positions.to(input_ids.dtype)
    return whole, deltas.unsqueeze(1)
