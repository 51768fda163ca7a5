"""Images in tiles (LLaVA-NeXT) or in crops: packed, unpadded and put in rows for all images at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor

from ....hf.pieces import Pieces
from ....workarounds import Workaround
from ...idioms.decorated import innermost, with_innermost
from ...images.anyres import EachSize, best_grid, packed_tokens
from ...images.anyres_scaled import scaled_rows
from ...images.local_crops import crops_in_order
from ...images.packed import places


def tiled(original: Callable[..., Any]) -> Callable[..., Any]:
    return {
        "get_image_features": _features,
        "image_size_to_num_patches": _number,
        "pack_image_features": _pack,
    }[original.__name__](original)


def _features(original: Callable[..., Any]) -> Callable[..., Any]:
    inner = innermost(original)
    if "pack_image_features" not in inner.__code__.co_names:
        return crops_in_order(original)

    @functools.wraps(inner)
    def features(self: Any, pixel_values: Tensor, image_sizes: Any, *args: Any, **kwargs: Any) -> Any:
        several = kwargs.get("batch_num_images") is not None  # some pictures are tiled and some are not
        if several or not isinstance(image_sizes, Tensor) or not isinstance(image_sizes.shape[0], SymInt):
            return inner(self, pixel_values, image_sizes, *args, **kwargs)
        if pixel_values.dim() == 5:
            counts = _tiles(image_sizes, self.config.image_grid_pinpoints, self.config.vision_config.image_size)
            image, within = places(counts)
            pixel_values = pixel_values.flatten(0, 1).index_select(0, image * pixel_values.shape[1] + within)
        return inner(self, pixel_values, EachSize(image_sizes), *args, **kwargs)

    return with_innermost(original, features)


def _tiles(sizes: Tensor, pinpoints: Any, tile: int) -> Tensor:
    """Pictures of each image, its overview among them: int64 [images]. Resolutions are multiples of a tile."""
    return 1 + best_grid(sizes, pinpoints, tile).prod(-1)


def _number(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def number(image_size: Any, grid_pinpoints: Any, patch_size: int) -> Any:
        if not isinstance(image_size, EachSize):
            return original(image_size, grid_pinpoints, patch_size)
        return _tiles(image_size.tensor, grid_pinpoints, patch_size)

    return number


def _pack(original: Callable[..., Any]) -> Callable[..., Any]:
    with_lengths = "feature_lens" in original.__code__.co_varnames

    @functools.wraps(original)
    def pack(self: Any, image_features: Any, image_sizes: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(image_sizes, EachSize):
            return original(self, image_features, image_sizes, *args, **kwargs)
        newline = kwargs.get("image_newline")
        features, sizes = image_features.packed, image_sizes.tensor
        grid = best_grid(sizes, self.config.image_grid_pinpoints, self.config.vision_config.image_size)
        most = kwargs.get("vision_aspect_ratio")
        if isinstance(most, str):  # "anyres_max_9"
            pieces = scaled_rows(features, sizes, grid, newline, int(most.rpartition("_")[2]))
            return (pieces, pieces.lengths) if with_lengths else pieces
        side = math.isqrt(int(features.shape[1]))
        tokens = packed_tokens(sizes, grid, side, int(newline is not None))
        rows, source = features.flatten(0, 1), tokens.source
        if newline is not None:
            # First, so that its place is a number.
            rows, source = torch.cat([newline[None].to(rows), rows]), source + 1
        packed = Pieces(rows.index_select(0, source), tokens.counts, "list")
        return (packed, tokens.counts) if with_lengths else packed

    return pack


WORKAROUND = Workaround(
    reason="Tiles of images are chosen, unpadded and put in rows image by image, by sizes that are data (LLaVA-NeXT, "
    "LLaVA-NeXT-Video, LLaVA-OneVision, Granite 4 Vision), and so are views and crops (DeepSeek-OCR 2, Step3p7, Unlimited-OCR).",
    upstream="none: the loops are right in eager; only a trace unrolls them",
    targets=(
        "transformers.models.*:*.get_image_features",
        "transformers.models.*:image_size_to_num_patches",
        "transformers.models.*:*.pack_image_features",
    ),
    apply=tiled,
)
