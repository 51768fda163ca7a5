"""Images of one view and some crops each (DeepSeek-OCR 2, Step3p7): the features of a whole batch put in order at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor

from ...hf.pieces import Pieces
from ..idioms.decorated import innermost, with_innermost
from .packed import places


def crops_in_order(original: Callable[..., Any]) -> Callable[..., Any]:
    """A `get_image_features` with a loop over images and their crops, told by its arguments and by what it calls."""
    inner = innermost(original)
    code = getattr(inner, "__code__", None)
    output = next((name for name in getattr(code, "co_names", ()) if name.endswith("OutputWithPooling")), None)
    if (
        code is None
        or output is None
        or not {"pixel_values_local", "num_local_patches"}.issubset(code.co_varnames)
        or "multi_modal_projector" not in code.co_names
    ):
        return original
    tower = next((name for name in ("vision_tower", "vision_model") if name in code.co_names), "")
    output_class = inner.__globals__[output]
    gridded = "patches_grid" in code.co_varnames  # crops in rows and columns of numbers: left to the loop

    @functools.wraps(inner)
    def features(
        self: Any,
        pixel_values: Tensor,
        pixel_values_local: Any = None,
        num_local_patches: Any = None,
        patches_grid: Any = None,
        **kwargs: Any,
    ) -> Any:
        listed = pixel_values_local is not None and (gridded or not isinstance(num_local_patches, Tensor))
        if not tower or listed or not isinstance(pixel_values.shape[0], SymInt):
            if gridded:
                kwargs["patches_grid"] = patches_grid
            return inner(self, pixel_values, pixel_values_local, num_local_patches, **kwargs)
        seen = getattr(self, tower)(pixel_values, **kwargs)
        views, crops, extra = self.multi_modal_projector(seen.last_hidden_state), None, {}
        if "image_newline" in code.co_names:
            views = _with_newlines(views, self.image_newline)
        if pixel_values_local is not None:
            local = getattr(self, tower)(pixel_values_local, **kwargs)
            crops = self.multi_modal_projector(local.last_hidden_state)
            names = {f"local_{name}": name for name in ("last_hidden_state", "hidden_states", "attentions")}
            extra = {
                field: getattr(local, name) for field, name in names.items() if field in output_class.__annotations__
            }
        return output_class(
            last_hidden_state=seen.last_hidden_state,
            pooler_output=_joined(views, crops, num_local_patches, getattr(self, "view_separator", None)),
            hidden_states=seen.hidden_states,
            attentions=seen.attentions,
            **extra,
        )

    return with_innermost(original, features)


def _with_newlines(views: Tensor, newline: Tensor) -> Tensor:
    """[images, side * side, channels] with a token behind each row: [images, side * (side + 1), channels]."""
    side = math.isqrt(int(views.shape[1]))
    grid = views.unflatten(1, (side, side))
    return torch.cat([grid, newline.to(views).expand(grid.shape[0], side, 1, grid.shape[-1])], dim=2).flatten(1, 2)


def _joined(views: Tensor, crops: Tensor | None, numbers: Any, separator: Tensor | None) -> Pieces:
    """Of each image the features of its crops, those of its view, and the separator.

    Args:
        views: [images, size, channels].
        crops: [crops of all images, crop size, channels], or None.
        numbers: int64 [images], crops of each; read only with crops.
        separator: [channels], or None.
    """
    views = views.flatten(1, -2)
    images, channels = views.shape[0], views.shape[-1]
    own = views
    if separator is not None:
        own = torch.cat([views, separator.to(views).expand(images, 1, channels)], dim=1)
    whole = own.shape[1]
    if crops is None:
        return Pieces(own.flatten(0, 1), torch.full((images,), whole, device=views.device), "list")
    crops = crops.flatten(1, -2)
    parts = numbers.to(torch.int64) * crops.shape[1]
    counts = parts + whole
    # As many as there are crops, whatever the numbers say: no size of the graph is data.
    image, place = places(counts, crops.shape[0] * crops.shape[1] + images * whole)
    local = place < parts.index_select(0, image)
    first = (parts.cumsum(0) - parts).index_select(0, image)
    behind = crops.shape[0] * crops.shape[1] + image * whole + place - parts.index_select(0, image)
    rows = torch.cat([crops.flatten(0, 1), own.flatten(0, 1)])
    return Pieces(rows.index_select(0, torch.where(local, first + place, behind)), counts, "list")
