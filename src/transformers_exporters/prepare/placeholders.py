"""Let a model on the `meta` device be traced: its weights get addresses but no memory, its computed buffers get values."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..artifact.weights import TensorRef
from .references import remember


@contextmanager
def placeholders(model: torch.nn.Module) -> Iterator[None]:
    """While held, every `meta` parameter and buffer is a CPU tensor; nothing changes for a model without any.

    Parameters and saved buffers become views of one sparse file as large as the largest of them: they take neither
    memory nor disk, and their values are never read. Buffers that the model computes (rotary frequencies) are computed.
    The caller holds `untouched(model)`, which puts the originals back.
    """
    tensors = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    empty = [(name, tensor) for name, tensor in tensors if tensor.device.type == "meta"]
    if not empty:
        yield
        return
    saved = set(model.state_dict())
    with tempfile.TemporaryDirectory(prefix="placeholders-", ignore_cleanup_errors=True) as directory:
        sparse = Path(directory) / "zeros"
        with sparse.open("wb") as stream:
            stream.truncate(max(_bytes(tensor) for _, tensor in empty))
        done: dict[int, torch.Tensor] = {}
        for name, tensor in empty:
            if id(tensor) not in done:
                done[id(tensor)] = _placeholder(sparse, tensor, held=name in saved)
            owner, _, leaf = name.rpartition(".")
            module = model.get_submodule(owner)
            table: dict[str, Any] = module._parameters if leaf in module._parameters else module._buffers
            table[leaf] = done[id(tensor)]
        compute_buffers(model)
        yield


def compute_buffers(model: Any) -> None:
    """Give buffers that no checkpoint holds the values of a fresh model; everything marked as initialised stays."""
    if hasattr(model, "initialize_weights"):
        model.initialize_weights()


def _placeholder(sparse: Path, tensor: torch.Tensor, held: bool) -> torch.Tensor:
    if not held:
        return torch.zeros_like(tensor, device="cpu")
    storage = torch.UntypedStorage.from_file(str(sparse), True, _bytes(tensor))
    flat = torch.empty(0, dtype=torch.uint8).set_(storage)  # type: ignore[arg-type]
    values: torch.Tensor = flat[: math.prod(tensor.shape) * tensor.element_size()].view(tensor.dtype).view(tensor.shape)
    if isinstance(tensor, torch.nn.Parameter):
        values = torch.nn.Parameter(values, requires_grad=False)
    values._is_hf_initialized = True  # type: ignore[attr-defined]
    remember(values, TensorRef(tensor, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)))
    return values


def _bytes(tensor: torch.Tensor) -> int:
    return max(math.prod(tensor.shape) * tensor.element_size(), 1)
