"""One tensor for a parameter of unknown name: by its annotation, and by the shape in the forward's docstring."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import torch
from transformers import PreTrainedModel

from .tensors import DECODER, TEXT, Layout, named_tensor, picture_size, setting

_SHAPE = re.compile(r"[(\[]\s*((?:batch|num_|seq|config\.|\d)[^()\[\]]*(?:\([^()]*\)[^()\[\]]*)*)[)\]]")
_WIDTHS = ("hidden_size", "d_model", "n_embd", "embed_dim", "dim")


def tensor_for(name: str, model: PreTrainedModel, layout: Layout) -> Any:
    """A value for the parameter `name` of the forward: by its name, else as it is described.

    Raises:
        ValueError: As `described_tensor`.
    """
    named = named_tensor(name, model, layout)
    return described_tensor(name, model, layout) if named is None else named


def described_tensor(name: str, model: PreTrainedModel, layout: Layout) -> Any:
    """A value for the parameter `name` of the forward, as its docstring and its annotation describe it.

    A float tensor is random, an integer tensor holds ones to threes (which are places, counts and kinds alike), a mask is
    all true. Without a shape it is [batch, length], and [batch, length, width] where it is a float tensor.

    Raises:
        ValueError: If the forward has no such parameter, or wants a structure that is not made of tensors.
    """
    parameter = inspect.signature(type(model).forward).parameters.get(name)
    if parameter is None:
        raise ValueError(f"its forward has no parameter {name!r}")
    annotation = "" if parameter.annotation is parameter.empty else str(parameter.annotation)
    header, _ = _described(name, type(model).forward.__doc__ or "")
    if re.search(r"^dict\[str, tuple\[torch", annotation):
        return _states_by_kind(model, layout)
    if re.search(r"Cache|dict\[|Session|Output\b", annotation):
        raise ValueError(f"its forward wants {name!r}, for which no sample is known")
    if re.search(r"class 'int'|^int\b", annotation):
        return DECODER
    if re.search(r"class '(bool|float)'|^(bool|float)\b", annotation):
        return parameter.default if isinstance(parameter.default, bool | float) else False
    kind = f"{annotation} {header}"
    shape = described_shape(name, model, layout)
    tensor = _filled(name, kind, shape, model, layout)
    return [tensor] if re.search(r"list\[", annotation) else tensor


def described_shape(name: str, model: PreTrainedModel, layout: Layout) -> tuple[int, ...] | None:
    """The shape that the docstring gives the parameter, in numbers; None where it gives none."""
    header, text = _described(name, type(model).forward.__doc__ or "")
    found = _SHAPE.search(header) or _SHAPE.search(text)
    if found is None:
        return None
    axes = [axis.strip() for axis in found[1].split(",") if axis.strip()]
    return tuple(_product(axis, model, layout) for axis in axes)


def _described(name: str, docs: str) -> tuple[str, str]:
    """What stands between the parameter's name and the colon, and the text after it, up to the next parameter."""
    found = re.search(rf"^([ \t]*){re.escape(name)}\s*(\(.*\))?:(.*(?:\n\1[ \t]+.*|\n[ \t]*$)*)", docs, re.MULTILINE)
    return (found[2] or "", found[3]) if found else ("", "")


def _filled(
    name: str, kind: str, shape: tuple[int, ...] | None, model: PreTrainedModel, layout: Layout
) -> torch.Tensor:
    if name.endswith("mask") or "BoolTensor" in kind:
        return torch.ones(shape or (layout.batch, TEXT), dtype=torch.bool)
    if re.search(r"(Long|Int)Tensor|torch\.int|dtype=int", kind) or re.search(
        r"idx|index|indices|codes?$|lengths?$", name
    ):
        return torch.randint(1, 4, shape or (layout.batch, TEXT))
    if re.search(r"time_?steps?$", name):
        return torch.rand(shape or (layout.batch,))
    return torch.randn(shape or (layout.batch, TEXT, _width(model)))


def _states_by_kind(model: PreTrainedModel, layout: Layout) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values [batch, heads, length, head size] of another model, for each kind of this model's layers."""
    kinds = setting(model, "layer_types", default=["full_attention"])
    sizes = {
        kinds[module.layer_idx]: int(module.head_dim)
        for module in model.modules()
        if isinstance(getattr(module, "layer_idx", None), int) and isinstance(getattr(module, "head_dim", None), int)
    }
    heads = int(setting(model, "num_key_value_heads", default=1))
    return {
        kind: (torch.randn(layout.batch, heads, TEXT, width), torch.randn(layout.batch, heads, TEXT, width))
        for kind, width in sizes.items()
    }


def _product(axis: str, model: PreTrainedModel, layout: Layout) -> int:
    return math.prod(axis_size(part.strip(" `"), model, layout) for part in axis.split("*"))


def axis_size(symbol: str, model: PreTrainedModel, layout: Layout) -> int:
    """How long an axis of this name is (in a docstring, in code): a field of the config says so, or the word does."""
    if symbol.isdigit():
        return int(symbol)
    if counted := re.fullmatch(r"len\((?:config\.)?(\w+)\)", symbol):
        value = setting(model, counted[1], default=1)
        return len(value) if isinstance(value, list | tuple) else 1
    symbol = re.sub(r"^(self\.)?config\.", "", symbol)
    if "batch" in symbol:
        return layout.batch
    if symbol in ("height", "image_size", "image_height", "h"):
        return picture_size(model)[0]
    if symbol in ("width", "image_width", "w"):
        return picture_size(model)[1]
    if symbol in ("channel", "channels"):
        symbol = "num_channels"
    given = setting(model, symbol)
    if isinstance(given, int) and given > 0:
        return given
    if re.search(r"target|decoder", symbol):
        return DECODER
    if re.search(r"len|^num_|token|frame|patch|seq", symbol):
        return TEXT
    return _width(model) if re.search(r"dim|size|hidden|features|channels|width", symbol) else TEXT


def _width(model: PreTrainedModel) -> int:
    width = setting(model, *_WIDTHS, default=64)
    return int(width[-1] if isinstance(width, list | tuple) else width)
