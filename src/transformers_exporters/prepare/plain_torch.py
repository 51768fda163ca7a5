"""Torch without the caller's modes: an export under autocast would hold its casts, under a default device its copies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def plain_torch(model: torch.nn.Module) -> Iterator[None]:
    """While held, ops compute in the model's own dtypes, and tensors that name no device are made where the model is."""
    tensors = (tensor.device for tensor in (*model.parameters(), *model.buffers()))
    device = next((device for device in tensors if device.type != "meta"), torch.device("cpu"))
    with ExitStack() as modes:
        for kind in {"cpu", device.type}:
            if torch.is_autocast_enabled(kind):
                modes.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != device.type and torch.get_default_device().type != "cpu":
            modes.enter_context(device)
        yield
