"""Three-dimensional rope positions of mixed text and images, without loops over rows, groups and images."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround
from ...images.grid_positions import grid_rope_index
from ...images.run_positions import locate, positions, run_numbers
from ...images.timed_positions import timed_rope_index


def rope_index(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_rope_index` of the Qwen2-VL, HunYuan-VL and Qwen-Omni kind, told by their source; every other one is left alone.

    Qwen2-VL: text counts on by one a token. The tokens of image number `n` lie on its grid, all based at the position where the
    image starts, and the text goes on behind the larger side of the grid. A run of tokens of one type is one image. In HY-V4
    every row of a grid ends with a separator, and every frame starts behind the larger side of the one before it.
    """
    source = inspect.getsource(original)
    if "groupby(enumerate(input_token_type" in source and "grid_tokens + 2" in source:
        return _on_grids(original)
    if "position_id_per_seconds" in source and "vision_tokens == image_token_id" in source:
        return _in_time(original, source)
    ends_rows = "newline" in source and "vision_position_ids.max().item() + 1" in source
    moves_text = ends_rows or "max(grid_thw[1], grid_thw[2])" in source
    if "groupby(enumerate(input_token_type" not in source or not moves_text:
        return original
    per_frame, spaced = "repeat_interleave(video_grid_thw" in source, "vision_config.tokens_per_second" in source

    @functools.wraps(original)
    def index(
        self: Any,
        input_ids: Tensor,
        mm_token_type_ids: Tensor,
        image_grid_thw: Tensor | None = None,
        video_grid_thw: Tensor | None = None,
        *args: Any,
        attention_mask: Tensor | None = None,
        second_per_grid_ts: Any = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor]:
        if args:
            raise TypeError("get_rope_index takes its further arguments by keyword in a trace")
        valid = torch.ones_like(input_ids) if attention_mask is None else (attention_mask != 0).long()
        kind = mm_token_type_ids.long() * valid
        if per_frame and video_grid_thw is not None:
            frames = torch.repeat_interleave(video_grid_thw, video_grid_thw[:, 0], dim=0)
            video_grid_thw = torch.cat([torch.ones_like(frames[:, :1]), frames[:, 1:]], dim=1)
        merge = self.config.vision_config.spatial_merge_size
        images = [
            locate(kind == n, grid, merge, ends_rows)
            for n, grid in ((1, image_grid_thw), (2, video_grid_thw))
            if grid is not None
        ]
        scale = _seconds(self, second_per_grid_ts, kind) if spaced else 1
        return positions(input_ids, valid, kind, images, scale)

    return index


def _on_grids(original: Callable[..., Any]) -> Callable[..., Any]:
    """The kind in which images do not move the text behind them."""

    @functools.wraps(original)
    def index(
        self: Any,
        input_ids: Tensor,
        mm_token_type_ids: Tensor,
        image_grid_thw: Tensor | None = None,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor]:
        if image_grid_thw is None:
            return original(self, input_ids, mm_token_type_ids, None, attention_mask, **kwargs)
        return grid_rope_index(self, input_ids, mm_token_type_ids, image_grid_thw, attention_mask)

    return index


def _in_time(original: Callable[..., Any], source: str) -> Callable[..., Any]:
    """The kind that finds images, videos and audio by the ids of their tokens; not where the sound is part of the video."""
    fractions, padding = "dtype=torch.float" in source, int("position_ids = torch.ones(" in source)

    @functools.wraps(original)
    def index(
        self: Any,
        input_ids: Tensor | None = None,
        image_grid_thw: Tensor | None = None,
        video_grid_thw: Tensor | None = None,
        attention_mask: Tensor | None = None,
        use_audio_in_video: bool = False,
        audio_seqlens: Tensor | None = None,
        second_per_grids: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        if input_ids is None or use_audio_in_video or (image_grid_thw is None and video_grid_thw is None):
            return original(
                self,
                input_ids,
                image_grid_thw,
                video_grid_thw,
                attention_mask,
                use_audio_in_video,
                audio_seqlens,
                second_per_grids,
            )
        grids = (image_grid_thw, video_grid_thw)
        return timed_rope_index(self, input_ids, attention_mask, grids, second_per_grids, fractions, padding)

    return index


def _seconds(model: Any, second_per_grid_ts: Any, kind: Tensor) -> Any:
    """Positions a frame, for every token: only videos are spaced out in time."""
    rate = model.config.vision_config.tokens_per_second
    if second_per_grid_ts is None:
        return torch.where(kind == 2, rate, 1)
    member = kind == 2
    number = run_numbers(member)
    seconds = torch.as_tensor(second_per_grid_ts, device=kind.device)
    return torch.where(member, rate * seconds[number.flatten()].reshape(kind.shape), 1)


WORKAROUND = Workaround(
    reason="Multimodal rope positions loop over rows, runs of tokens and images, which are data (Qwen2-VL to Qwen3.5, GLM4V, "
    "GLM-OCR, PaddleOCR-VL, HunYuan-VL, HY-V4, Qwen-Omni).",
    upstream="none: transformers expects callers to compute these outside of the graph",
    targets=("transformers.models.*:*.get_rope_index",),
    apply=rope_index,
)
