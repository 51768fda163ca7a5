"""Write a pytree spec as the JSON structure tree of a manifest."""

from __future__ import annotations

import json
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..artifact.spec import Json
from ..errors import TraceError
from ..hf.pieces import Pieces
from ..hf.plain_values import PLAIN, class_path


def structure_of(spec: pytree.TreeSpec, leaves: list[Any]) -> Json:
    """The structure tree of a pytree spec.

    Args:
        spec: The spec of kwargs or outputs.
        leaves: One entry a leaf of the spec: an int (the number of a tensor), or the constant wrapped in a 1-tuple.
    """
    remaining = iter(leaves)

    def build(node: pytree.TreeSpec) -> Json:
        if node.is_leaf():
            leaf = next(remaining)
            return {"leaf": leaf} if isinstance(leaf, int) else {"value": plain_constant(leaf[0])}
        children = [build(child) for child in node.children()]
        if node.type is list:
            return {"list": children}
        if node.type in (tuple, torch.Size):
            return {"tuple": children}
        if node.type is dict:
            keys = list(node.context)
            tree: dict[str, Json] = {"dict": {str(key): child for key, child in zip(keys, children, strict=True)}}
            if any(isinstance(key, int) for key in keys):
                tree["int_keys"] = True
            return tree
        if node.type is None:
            return {"value": None}
        return _object(node, children)

    return build(spec)


def _object(node: pytree.TreeSpec, children: list[Json]) -> Json:
    context = node.context
    if node.type is Pieces:
        fields = dict(zip(("packed", "lengths"), children, strict=True))
        return {"object": class_path(node.type), "fields": fields, "context": context}
    if isinstance(context, str):  # our own registration: names and attributes as JSON
        described = json.loads(context)
        return {
            "object": class_path(node.type),
            "fields": dict(zip(described["children"], children, strict=True)),
            "context": described["attributes"],
        }
    if isinstance(context, list | tuple) and all(isinstance(key, str) for key in context):  # ModelOutput, OrderedDict
        return {"object": class_path(node.type), "fields": dict(zip(context, children, strict=True))}
    if isinstance(context, type) and hasattr(context, "_fields"):
        return {"object": class_path(context), "fields": dict(zip(context._fields, children, strict=True))}
    raise TraceError(
        f"The model takes or returns a {class_path(node.type)}, which no manifest can describe; "
        "return a dict, a ModelOutput or a dataclass instead."
    )


def plain_constant(value: Any) -> Json:
    """A non-tensor leaf as JSON; what JSON cannot hold becomes its name (`torch.float32`)."""
    if isinstance(value, PLAIN):
        return value
    return str(value)
