"""Images without keypoints are matched like all others: with one that is masked, whose match is cut off again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import SymInt, Tensor
from torch.nn import functional as F

from ....workarounds import Workaround


def at_least_one(original: Callable[..., Any]) -> Callable[..., Any]:
    """`_match_image_pair` over [batch, 2, keypoints, ...], whose first two results end in [..., keypoints].

    LightGlue's is left alone: it asks for confidences after each layer, whether to stop and which keypoints to drop.
    """
    if "token_confidence" in getattr(getattr(original, "__code__", None), "co_names", ()):
        return original
    signature = inspect.signature(original)

    @functools.wraps(original)
    def match(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        number = given["keypoints"].shape[2]
        asked = given.get("output_hidden_states") or given.get("output_attentions")
        if not isinstance(number, SymInt) or given.get("mask") is None or asked:
            return original(*args, **kwargs)
        missing = torch.sym_max(number, 1) - number
        for name, value in given.items():
            if isinstance(value, Tensor) and value.dim() > 2:
                given[name] = F.pad(value, (0, 0) * (value.dim() - 3) + (0, missing))
        matches, scores, *others = original(**given)
        return (matches[..., :number], scores[..., :number], *others)

    return match


WORKAROUND = Workaround(
    reason="`if keypoints.shape[2] == 0` asks for a number that is data (SuperGlue).",
    upstream="none: the branch is right in eager; only a trace keeps one side",
    targets=("transformers.models.*:*._match_image_pair",),
    apply=at_least_one,
)
