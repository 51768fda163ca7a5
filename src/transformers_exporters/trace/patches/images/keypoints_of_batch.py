"""Keypoints of all images of a batch at once (SuperPoint, and LightGlue and SuperGlue, which match them)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.nn import functional as F

from ....workarounds import Workaround
from ...idioms.decorated import innermost, with_innermost
from ...images.packed import first_true

#: What a forward of this kind calls: detection and description for each image, filled into padded tensors.
_NAMED = frozenset(
    ("extract_one_channel_pixel_values", "keypoint_decoder", "descriptor_decoder", "descriptor_decoder_dim")
)


def without_loop(original: Callable[..., Any]) -> Callable[..., Any]:
    """A forward that detects keypoints image by image, told by what it calls; every other one is left alone."""
    inner = innermost(original)
    names = set(getattr(getattr(inner, "__code__", None), "co_names", ()))
    nested = [c for c in getattr(getattr(inner, "__code__", None), "co_consts", ()) if hasattr(c, "co_names")]
    names.update(name for code in nested for name in code.co_names)
    output = next((name for name in sorted(names) if name.endswith("DescriptionOutput")), None)
    if output is None or not _NAMED.issubset(names):
        return original

    @functools.wraps(inner)
    def forward(self: Any, pixel_values: Tensor, labels: Any = None, **kwargs: Any) -> Any:
        if labels is not None or not isinstance(pixel_values.shape[0], SymInt) or kwargs.get("return_dict") is False:
            return inner(self, pixel_values, labels, **kwargs)
        hidden = kwargs.get("output_hidden_states")
        hidden = self.config.output_hidden_states if hidden is None else hidden
        pixels = self.extract_one_channel_pixel_values(pixel_values)
        encoded = self.encoder(pixels, output_hidden_states=hidden, return_dict=True)
        points, scores, valid = _detected(self.keypoint_decoder, encoded[0])
        describe = self.descriptor_decoder
        features = describe.conv_descriptor_b(describe.relu(describe.conv_descriptor_a(encoded[0])))
        features = F.normalize(features, p=2, dim=1)
        descriptors = describe._sample_descriptors(points, features, 8).transpose(1, 2)
        height, width = pixels.shape[-2:]
        return inner.__globals__[output](
            keypoints=points / torch.tensor([width, height], device=points.device),
            scores=scores,
            descriptors=descriptors.masked_fill(~valid.unsqueeze(-1), 0.0),
            mask=valid.int(),
            hidden_states=encoded[1] if hidden else None,
        )

    return with_innermost(original, forward)


def _detected(decoder: Any, encoded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Keypoints (x, y) [images, most, 2], their scores and whether they are there, both [images, most]; zeros behind them."""
    scores = decoder._get_pixel_scores(encoded)
    _, height, width = scores.shape
    border = decoder.border_removal_distance
    row = torch.arange(height, device=scores.device).unsqueeze(1)
    column = torch.arange(width, device=scores.device)
    inside = (row >= border) & (column >= border)
    # Eight times too far, as in the model: its scores are those of pixels already.
    inside = inside & (row < height * 8 - border) & (column < width * 8 - border)
    seen = ((scores > decoder.keypoint_threshold) & inside).flatten(1)
    flat, counts = scores.flatten(1), seen.sum(1)
    limit = decoder.max_keypoints
    kept = counts if limit < 0 else counts.clamp(max=limit)
    most = kept.amax().item()
    torch._check(most >= 0)
    torch._check(most <= height * width)
    order = first_true(seen, most)
    if limit >= 0:  # of an image that has more, those with the highest scores, in their order
        best = torch.topk(flat.masked_fill(~seen, -1.0), most, dim=1).indices
        order = torch.where((counts > limit).unsqueeze(1), best, order)
    valid = torch.arange(most, device=scores.device) < kept.unsqueeze(1)
    points = torch.stack([order % width, order // width], dim=-1).to(scores.dtype)
    found = torch.gather(flat, 1, order)
    return points * valid.unsqueeze(-1), found * valid, valid


WORKAROUND = Workaround(
    reason="Keypoints are found and filled in image by image, which fixes the number of images (SuperPoint, LightGlue, "
    "SuperGlue).",
    upstream="none: the loop is right in eager; only a trace unrolls it",
    targets=("transformers.models.*:*KeypointDetection.forward",),
    apply=without_loop,
)
