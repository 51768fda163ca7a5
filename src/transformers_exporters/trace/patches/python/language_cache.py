"""Embeddings of class names and tasks (OmDet-Turbo), computed at each call instead of looked up in a cache of the process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....workarounds import Workaround


def without_cache(original: Callable[..., Any]) -> Callable[..., Any]:
    """`get_language_embedding`: the whole batch at once, and the classes of each image regrouped by index.

    Task tokens behind the longest task stay: their mask excludes them, as it does the shorter tasks' padding.
    """

    @functools.wraps(original)
    def embed(
        self: Any,
        classes_input_ids: Tensor,
        classes_attention_mask: Tensor,
        tasks_input_ids: Tensor,
        tasks_attention_mask: Tensor,
        classes_structure: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns class embeddings [classes, batch, width], task embeddings [tokens, batch, width], their mask."""
        classes = self.language_backbone(classes_input_ids, encode_type="class")
        most = classes_structure.max().item()
        torch._check(most >= 1)
        place = torch.arange(most, device=classes.device).unsqueeze(1)
        starts = classes_structure.cumsum(0) - classes_structure
        which = (starts + place).clamp(max=classes.shape[0] - 1)
        grouped = torch.where((place < classes_structure).unsqueeze(-1), classes[which], 0.0)
        tokens = self.language_backbone.model(tasks_input_ids)[0]
        return grouped, tokens.transpose(0, 1), tasks_attention_mask

    return embed


WORKAROUND = Workaround(
    reason="The keys of the cache are the token ids as Python numbers, and rows are cut apart by counts that are data.",
    upstream="none: a cache of the process cannot be part of a graph",
    targets=(
        "transformers.models.omdet_turbo.modeling_omdet_turbo:OmDetTurboForObjectDetection.get_language_embedding",
    ),
    apply=without_cache,
)
