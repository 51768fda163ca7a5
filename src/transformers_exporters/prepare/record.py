"""What preparation hands to the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .axes import AxisNames


@dataclass(frozen=True)
class Part:
    """One component before preparation: a module and the forward kwargs to trace it with.

    Attributes:
        name: `model`, `prefill`, `decode`, ...
        model: The module.
        inputs: Forward kwargs, nested as the module takes them.
        static: Names of axes that keep their size.
        full_windows: Trace sliding-window caches as full caches (see `hf.cache_layers`), as generation needs them.
    """

    name: str
    model: torch.nn.Module
    inputs: Mapping[str, Any]
    static: frozenset[str] = frozenset()
    full_windows: bool = False


@dataclass(frozen=True)
class Prepared:
    """One component, ready to be traced.

    Attributes:
        name: `model`, `prefill`, `decode`, ...
        model: The module. The caller's own: the stages below leave it as it was.
        inputs: Forward kwargs at the sizes of the trace; copies, never the caller's tensors.
        axes: Axis names of every tensor leaf, by leaf path.
        original: The inputs at the caller's own sizes.
        static: Axis names that stay at the traced size (the query axis of a one-token decode step).
    """

    name: str
    model: torch.nn.Module
    inputs: Mapping[str, Any]
    axes: Mapping[str, AxisNames]
    original: Mapping[str, Any]
    static: frozenset[str] = frozenset()
