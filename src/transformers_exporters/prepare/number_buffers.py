"""Whole numbers that a module keeps as tensors and computes sizes with."""

from __future__ import annotations

import inspect

import torch


class Number(int):
    """A whole number that still says where its tensor was. Symbolic sizes compute with plain ones only."""

    device: torch.device


def numbers_for_buffers(model: torch.nn.Module) -> None:
    """Replace the scalar integer buffers of padded convolutions by numbers; the caller holds `untouched(model)` and the trace's patches.

    Encodec, Mimi and what descends from them keep stride and kernel size as buffers. In a trace a buffer has no value, and
    the padding that follows from it would be one that the graph reads from data. Their own code computes with tensors; the patch
    `series/extra_padding` is what computes with numbers.
    """
    for module in model.modules():
        if not hasattr(type(module), "_get_extra_padding_for_conv1d"):
            continue
        for name, buffer in list(module._buffers.items()):
            if buffer is not None and buffer.dim() == 0 and not buffer.is_floating_point() and not buffer.is_meta:
                del module._buffers[name]
                setattr(module, name, _number(buffer, f"self.{name}.device" in inspect.getsource(type(module))))


def _number(buffer: torch.Tensor, with_device: bool) -> int:
    if not with_device:
        return int(buffer)
    number = Number(int(buffer))
    number.device = buffer.device
    return number
