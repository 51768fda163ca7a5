"""Where a weight's values are: in a checkpoint file, by offset, or in a tensor of this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CheckpointRef:
    """Values inside a safetensors file that is read by nobody until the artifact is run.

    Attributes:
        file: The safetensors file.
        key: The tensor's name in that file.
        offset: First byte of the values, counted from the start of the file.
        length: Number of bytes.
        dtype: numpy's name of the dtype, or `bfloat16`.
        shape: The tensor's shape.
    """

    file: Path
    key: str
    offset: int
    length: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class TensorRef:
    """Values in memory. Two references to one storage (tied weights) hold the same `tensor`, so it is stored once."""

    tensor: Any  # torch.Tensor; this room does not import torch
    dtype: str
    shape: tuple[int, ...]


WeightRef = CheckpointRef | TensorRef
