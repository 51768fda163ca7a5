"""Rope positions where a frame's position is its time: Qwen-Omni's images and videos beside text and audio."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .run_positions import Vision, locate, positions

__all__ = ["timed_rope_index"]


def timed_rope_index(
    model: Any,
    input_ids: Tensor,
    attention_mask: Tensor | None,
    grids: tuple[Tensor | None, Tensor | None],
    seconds: Tensor | None,
    fractions: bool,
    padding: int,
) -> tuple[Tensor, Tensor]:
    """`get_rope_index` without loops: audio counts on like text, a frame lies at its time.

    Args:
        model: Whose `config` has the ids of the tokens, and `position_id_per_seconds`.
        input_ids: int64 [batch, seq].
        attention_mask: [batch, seq], 0 for padding.
        grids: int64 [images, 3] and [videos, 3]: frames, rows and columns of patches.
        seconds: [videos], from one frame of a video to the next.
        fractions: Whether times are kept as float32, instead of whole numbers.
        padding: The position of padding.

    Returns:
        [3, batch, seq], and how far the next position of each row is from its length, [batch, 1].
    """
    config = model.config
    attended = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask == 1
    rate = config.position_id_per_seconds
    kind = torch.zeros_like(input_ids)
    vision = []
    for number, (token, grid) in enumerate(zip((config.image_token_id, config.video_token_id), grids, strict=True), 1):
        if grid is None:
            continue
        member = (input_ids == token) & attended
        kind = kind + number * member.long()
        located = locate(member, grid, model.spatial_merge_size, ends_rows=False)
        frames = grid[located.number.flatten(), 0].reshape(member.shape)
        if number == 2 and seconds is not None:
            apart = seconds.float()[located.number.flatten()].reshape(member.shape)
            frame, last = located.frame * apart * rate, (frames - 1) * apart * rate
        else:
            frame, last = located.frame * rate, (frames - 1) * rate
        dtype = torch.float32 if fractions else torch.int64
        vision.append(_in_time(located, frame.to(dtype), last.to(dtype), member))
    found, deltas = positions(input_ids, attended.long(), kind, vision)
    return torch.where(attended, found, padding), deltas


def _in_time(located: Vision, frame: Tensor, last: Tensor, member: Tensor) -> Vision:
    advance = torch.maximum(located.advance.to(last.dtype), last + 1) * member
    return located._replace(frame=frame * member, advance=advance)
