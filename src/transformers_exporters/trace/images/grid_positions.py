"""Rope positions in which every image counts on its own grid, without loops over rows, runs and images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def grid_rope_index(
    model: Any,
    input_ids: Tensor,
    mm_token_type_ids: Tensor,
    image_grid_thw: Tensor,
    attention_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`get_rope_index` of the HunYuan-VL kind: positions int64 [axes, batch, seq], and int64 [batch, 1].

    Every token has its place in the sequence on all axes. The tokens of an image have, on the last three, their column and
    row in the image's grid, of which each row ends with a separator, and the number of the image. A token before the grid
    and one behind it may belong to the image too.
    """
    axes = len(model.config.text_config.rope_parameters["mrope_section"])
    valid = torch.ones_like(input_ids) if attention_mask is None else (attention_mask != 0).long()
    order = (valid.cumsum(1) - 1) * valid
    member = (mm_token_type_ids == 1) & (valid != 0)
    inside, places = _places(member, image_grid_thw, model.config.vision_config.spatial_merge_size)
    own = [torch.where(inside, place, order) for place in places]
    positions = torch.stack([order] * (axes - 3) + own) * valid
    deltas = positions.amax(dim=(0, 2)) + 1 - valid.sum(1)
    return positions.to(input_ids.dtype), deltas.unsqueeze(1)


def _places(member: Tensor, grid_thw: Tensor, merge: int) -> tuple[Tensor, list[Tensor]]:
    """Whether each token lies on a grid (bool [batch, seq]), and there its column, row and image (int64 [batch, seq])."""
    previous = torch.cat([torch.zeros_like(member[:, :1]), member[:, :-1]], dim=1)
    started = member & ~previous
    number = (started.long().flatten().cumsum(0).reshape(started.shape) - 1).clamp(min=0)
    images = torch.arange(grid_thw.shape[0], device=grid_thw.device)
    belongs = (number.flatten().unsqueeze(1) == images) & member.flatten().unsqueeze(1)
    rows, columns = grid_thw[:, 1] // merge, grid_thw[:, 2] // merge + 1
    size = rows * columns
    around = (belongs.long().sum(0) - size) // 2  # tokens before the grid: none, or one
    seen = member.long().cumsum(1)
    before = torch.where(started, seen - 1, 0).cummax(1).values  # tokens of earlier images in the row
    number, shape = number.flatten(), number.shape
    place = seen - 1 - before - around[number].reshape(shape)
    inside = member & (place >= 0) & (place < size[number].reshape(shape))
    across = columns[number].reshape(shape)
    return inside, [place % across, place // across, number.reshape(shape)]
