"""Codes of images that are cropped to their own sizes and become tokens (Emu3), without a loop over images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor

from ....workarounds import Workaround
from ...idioms.decorated import innermost, with_innermost
from ...images.packed import places


class Crops:
    """Stands for the codes of every image in a list of them.

    Attributes:
        codes: int64 [images, height, width].
        sizes: int64 [images, 2], rows and columns that belong to the image.
    """

    def __init__(self, codes: Tensor, sizes: Tensor) -> None:
        self.codes = codes
        self.sizes = sizes


def cropped(original: Callable[..., Any]) -> Callable[..., Any]:
    return {"encode": _encode, "convert_img2bpe": _tokens}[original.__name__](original)


def _encode(original: Callable[..., Any]) -> Callable[..., Any]:
    """An encoder that crops its codes, told by what it calls; every other one is left alone."""
    inner = innermost(original)
    names = getattr(getattr(inner, "__code__", None), "co_names", ())
    output = next((name for name in names if name.endswith("ModelOutput")), None)
    if output is None or not {"quant_conv", "quantize", "zip"}.issubset(names):
        return original

    @functools.wraps(inner)
    def encode(self: Any, pixel_values: Tensor, image_sizes: Any, **kwargs: Any) -> Any:
        if (
            not isinstance(image_sizes, Tensor)
            or not isinstance(image_sizes.shape[0], SymInt)
            or pixel_values.dim() != 4
        ):
            return inner(self, pixel_values, image_sizes, **kwargs)
        frames = pixel_values.to(self.dtype).unsqueeze(1).repeat(1, self.config.temporal_downsample_factor, 1, 1, 1)
        hidden = self.encoder(frames)
        codes = self.quantize(self.quant_conv(hidden.transpose(1, 2)).transpose(1, 2)).squeeze(1)
        whole = torch.stack([torch.scalar_tensor(size, dtype=torch.int64) for size in codes.shape[1:]])
        crops = Crops(codes, torch.minimum(image_sizes // self.vision_spatial_factor, whole.to(image_sizes.device)))
        return inner.__globals__[output](last_hidden_state=hidden, image_tokens=[crops])

    return with_innermost(original, encode)


def _tokens(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def convert(self: Any, img_batch: Any) -> Tensor:
        """Of crops the tokens of all of them, row by row, each row with its end: int [tokens]."""
        if not isinstance(img_batch, Crops):
            tokens: Tensor = original(self, img_batch)
            return tokens
        codes, sizes = img_batch.codes, img_batch.sizes
        counts = sizes[:, 0] * (sizes[:, 1] + 1)
        image, place = places(counts)
        columns = sizes[:, 1].index_select(0, image)
        row, column = place // (columns + 1), place % (columns + 1)
        height, width = codes.shape[1:]
        index = (image * height + row) * width + column.clamp(max=width - 1)
        code = codes.flatten().index_select(0, index)
        mapping = self.img2bpe_mapping_tensor.to(codes.device)
        return mapping.index_select(0, code).masked_fill(column == columns, self.eol_token_id)

    return convert


WORKAROUND = Workaround(
    reason="Codes of images are cropped and put in rows image by image, by sizes that are data (Emu3).",
    upstream="none: the loops are right in eager; only a trace unrolls them",
    targets=("transformers.models.*:*VQVAE.encode", "transformers.models.*:*.convert_img2bpe"),
    apply=cropped,
)
