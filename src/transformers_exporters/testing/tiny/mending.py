"""Other inputs, after what the forward said about the ones that it refused."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import PreTrainedModel

from .complaint import Complaint
from .described import axis_size, described_shape, described_tensor, tensor_for
from .tensors import Layout

#: No input gets longer, or of more numbers, than this.
_LONGEST, _LARGEST = 20_000, 1_000_000


def mended(
    model: PreTrainedModel, inputs: dict[str, Any], layout: Layout, complaint: Complaint
) -> Iterator[dict[str, Any]]:
    """Changed copies of `inputs`, the likeliest first; each answers the complaint in one way."""
    for candidates in (
        _completed(model, inputs, layout, complaint),
        _resized(inputs, complaint),
        _unpacked(model, inputs, layout, complaint),
        _renumbered(inputs, complaint),
        _cast(inputs, complaint),
        _as_described(model, inputs, layout),
        _without(inputs, complaint),
    ):
        for candidate in candidates:
            if all(value.numel() <= _LARGEST for value in candidate.values() if isinstance(value, torch.Tensor)):
                yield candidate


def _completed(
    model: PreTrainedModel, inputs: dict[str, Any], layout: Layout, complaint: Complaint
) -> Iterator[dict[str, Any]]:
    """With a parameter that the complaint is about and that was not passed."""
    if not complaint.of_nothing:
        return
    parameters = inspect.signature(type(model).forward).parameters
    for name in dict.fromkeys([*complaint.nothing, *complaint.names]):
        parameter = parameters.get(name)
        if parameter is None or name in inputs or name == "self" or isinstance(parameter.default, bool):
            continue
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            try:
                yield {**inputs, name: tensor_for(name, model, layout)}
            except ValueError:  # nothing is known about it; the complaint may name another one
                continue


def _resized(inputs: dict[str, Any], complaint: Complaint) -> Iterator[dict[str, Any]]:
    """With an axis of the size that was found made as long as the size that was wanted: of one input, then of all."""
    lengths = [(found, _wanted(found, wanted, complaint.message)) for found, wanted in complaint.pairs]
    for found, wanted in lengths:
        places = [
            (name, axis)
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor) and found != wanted and 0 < wanted < _LONGEST
            for axis in reversed(range(min(1, value.ndim - 1), value.ndim))
            if value.shape[axis] == found
        ]
        for name, axis in places:
            yield {**inputs, name: _long(inputs[name], axis, wanted)}
            if sum(name == other for other, _ in places) > 1:  # the sides of a picture
                yield {
                    **inputs,
                    name: _like(inputs[name], [wanted if one == found else one for one in inputs[name].shape]),
                }
        last = dict(reversed(places))
        if len(last) > 1:
            yield {**inputs, **{name: _long(inputs[name], axis, wanted) for name, axis in last.items()}}
    if re.search(r"[Kk]ernel size can't be greater|[Oo]utput size is too small|negative dimension", complaint.message):
        yield _each(inputs, lambda value: _long(value, -1, min(64 * value.shape[-1], _LONGEST)), floating=True)


def _wanted(found: int, wanted: int, message: str) -> int:
    """The size to put for `found`: `wanted`, or the next multiple of it where the message asks for a multiple."""
    if wanted and re.search(r"multiple of|divisible by", message):
        return wanted * math.ceil(found / wanted)
    return wanted


def _unpacked(
    model: PreTrainedModel, inputs: dict[str, Any], layout: Layout, complaint: Complaint
) -> Iterator[dict[str, Any]]:
    """With as many axes as the code unpacks, as long as their names there say."""
    if not complaint.axes:
        pattern = (
            r"too many indices for tensor of dimension (\d)|Dimension out of range \(expected to be in range of \[-(\d)"
        )
        if found := re.search(pattern, complaint.message):
            axes, at = int(found[1] or found[2]), 0 if found[1] else 1
            yield _each(inputs, lambda value: value.unsqueeze(at) if value.ndim == axes else value, floating=at == 1)
            yield _each(inputs, lambda value: value.unsqueeze(at) if value.ndim == axes else value)
        return
    shape = [axis_size(name, model, layout) for name in complaint.axes]
    named = [name for name in complaint.names if name in inputs]
    for name in dict.fromkeys([*named, *inputs]):
        value = inputs[name]
        if isinstance(value, torch.Tensor) and value.ndim != len(shape):
            yield {**inputs, name: _like(value, shape)}


def _renumbered(inputs: dict[str, Any], complaint: Complaint) -> Iterator[dict[str, Any]]:
    """With whole numbers that fit what they count or point into."""
    if found := re.search(r"index (\d+) is out of (?:range|bounds)(?:.* with size (\d+))?", complaint.message):
        index, count = int(found[1]), int(found[2] or found[1])
        pointing = {
            name: value % count
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor)
            and not value.is_floating_point()
            and count
            and bool((value == index).any())
        }
        if pointing:
            yield {**inputs, **pointing}
        yield _each(inputs, lambda value: value[:, : max(count, 1)] if value.ndim > 1 else value)
    if found := re.search(r"split_sizes to sum exactly to (\d+).*split_sizes=\[([\d, ]+)\]", complaint.message):
        parts = found[2].count(",") + 1
        shares = torch.tensor([int(found[1]) * (at + 1) // parts - int(found[1]) * at // parts for at in range(parts)])
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor) and value.shape == shares.shape:
                yield {**inputs, name: shares}


def _cast(inputs: dict[str, Any], complaint: Complaint) -> Iterator[dict[str, Any]]:
    """With true-or-false masks, where the complaint is about a dtype, and with those that pick rows only as deep."""
    pattern = r"shape of the mask \[([\d, ]+)\] at index (\d+) does not match .* tensor \[([\d, ]+)\]"
    if found := re.search(pattern, complaint.message):
        refused, given, depth = *([int(one) for one in found[at].split(",")] for at in (1, 3)), int(found[2])
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor) and list(value.shape) == refused and depth:
                yield {**inputs, name: torch.ones(given[:depth], dtype=torch.bool)}
    if re.search(r"dtype|scalar type|data type|Tensor of type|bool", complaint.message):
        yield {name: value.bool() if name.endswith("mask") else value for name, value in inputs.items()}


def _as_described(model: PreTrainedModel, inputs: dict[str, Any], layout: Layout) -> Iterator[dict[str, Any]]:
    """With what the docstring says, where that has another number of axes than what was made by the name."""
    changed: dict[str, Any] = {}
    for name, value in inputs.items():
        shape = described_shape(name, model, layout)
        if shape is not None and isinstance(value, torch.Tensor) and len(shape) != value.ndim:
            changed[name] = described_tensor(name, model, layout)
    if changed:
        yield {**inputs, **changed}


def _without(inputs: dict[str, Any], complaint: Complaint) -> Iterator[dict[str, Any]]:
    """Without an input of which the message says that it does not belong to another one."""
    if re.search(r"both|either|exactly one|only one|not supported|unexpected", complaint.message):
        for name in inputs:
            if re.search(rf"\b{name}\b", complaint.message) and len(inputs) > 1:
                yield {other: value for other, value in inputs.items() if other != name}


def _each(
    inputs: dict[str, Any], change: Callable[[torch.Tensor], torch.Tensor], *, floating: bool = False
) -> dict[str, Any]:
    return {
        name: change(value)
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or not floating)
        else value
        for name, value in inputs.items()
    }


def _like(value: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """A tensor of the same kind with another shape."""
    if value.is_floating_point():
        return torch.randn(shape)
    return value.flatten().repeat(-(-math.prod(shape) // value.numel()))[: math.prod(shape)].reshape(shape)


def _long(value: torch.Tensor, axis: int, length: int) -> torch.Tensor:
    """The same kind of tensor with another length on one axis; random numbers stay random, others repeat."""
    axis %= value.ndim
    shape = [*value.shape[:axis], length, *value.shape[axis + 1 :]]
    if value.is_floating_point():
        return torch.randn(shape)
    repeats = [1] * value.ndim
    repeats[axis] = -(-length // value.shape[axis])
    return value.repeat(repeats).narrow(axis, 0, length).clone()
