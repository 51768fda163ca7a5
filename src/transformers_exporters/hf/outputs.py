"""Rebuild what the source model returns: its own output classes and caches, filled with the engine's tensors."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from ..artifact.spec import Json
from ..artifact.structure import PIECES, split_pieces
from .plain_values import find_class
from .pytrees import build


def make_object(class_path: str, fields: dict[str, Any], context: Json) -> Any:
    """Build an object node of a structure tree.

    Where the class cannot be imported (a model that is not installed here), a `ModelOutput`-like object with the same
    names is built instead, so that `output.logits` and `output["logits"]` work everywhere.
    """
    from transformers.utils import ModelOutput

    if class_path == PIECES:
        return split_pieces(fields["packed"], fields["lengths"], context)
    cls = find_class(class_path)
    if cls is None:
        return Output(fields)
    if context is not None:
        return build(cls, fields, context)
    if issubclass(cls, ModelOutput) or not issubclass(cls, dict):
        return cls(**fields)
    return cls(fields)


def first_tensor(outputs: Any) -> torch.Tensor | None:
    """The first tensor of a model's outputs (its logits or hidden states), or None."""
    values = outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, tuple | list) else ()
    return next((value for value in values if isinstance(value, torch.Tensor)), None)


def without_details(encoded: Any) -> Any:
    """Of what an encoder made, its states alone: its attentions, if they were asked for, are only passed through."""
    if not isinstance(encoded, dict):
        return encoded
    kept = {name: value for name, value in encoded.items() if name not in ("attentions", "hidden_states")}
    return type(encoded)(**kept)


class Output(OrderedDict[str, Any]):
    """Stands for an output class that is not importable here; its items are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error
