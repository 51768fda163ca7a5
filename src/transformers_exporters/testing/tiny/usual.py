"""A value for a config field that has none."""

from __future__ import annotations

import re
from typing import Any

from transformers import PreTrainedConfig

from . import plan as size
from .complaint import Complaint
from .fields import field_kind
from .tree import layers_of

#: Sizes that are given to a field that has none, by what it measures.
_USUAL = {
    "width": size.WIDTH,
    "inner": size.INNER,
    "heads": size.HEADS,
    "head_dim": size.HEAD_DIM,
    "rope_dim": size.ROPE_DIM,
    "rank": size.RANK,
    "layers": 2,
    "experts": size.EXPERTS,
    "per_token": 2,
    "groups": 1,
    "group_choice": 1,
    "shared": 1,
    "vocabulary": size.VOCABULARY,
    "positions": size.POSITIONS,
    "window": size.WINDOW,
    "image": size.IMAGE,
    "token": 0,
}


def usual(name: str, config: PreTrainedConfig, complaint: Complaint) -> Any:
    """What a field of this name of `config` gets, by what the name measures and by its annotation.

    A list of kinds gets the kind that the code in the complaint compares with.
    """
    annotation = _annotation(name, config)
    if name.endswith("_types"):
        one = "full_attention" if name == "layer_types" else next(iter(complaint.strings), "default")
        return [one] * min(layers_of(config), 2)
    if "dict" in annotation and "int" not in annotation:
        return {}
    value = _value(name)
    return [value] if "list[int]" in annotation and not re.search(r"\bint \|", annotation) else value


def _value(name: str) -> Any:
    kind = field_kind(name)
    if kind in _USUAL:
        return _USUAL[kind]
    if re.search(r"drop|prob", name):
        return 0.0
    if re.search(r"eps", name):
        return 1e-6
    if re.search(r"act(ivation)?(_fn|_function)?$", name):
        return "silu"
    if re.match(r"(use|is|has|do|add|with|return|output)_|.*_(bias|flag)$", name):
        return False
    return 1.0 if re.search(r"scal|factor|rate|coef|alpha|theta|std", name) else 2


def _annotation(name: str, config: PreTrainedConfig) -> str:
    return next(
        (
            str(one.__annotations__[name])
            for one in type(config).__mro__
            if name in vars(one).get("__annotations__", {})
        ),
        "",
    )
