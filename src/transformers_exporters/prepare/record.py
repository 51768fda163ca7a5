"""What preparation hands to the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .axes import AxisNames
from .counters import Counters


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
        numbers: The whole numbers that forward reads from objects among the inputs, by path: constants of the graph.
        counters: The attributes of such objects that forward changes; they are tensors in `inputs` and `original`.
    """

    name: str
    model: torch.nn.Module
    inputs: Mapping[str, Any]
    axes: Mapping[str, AxisNames]
    original: Mapping[str, Any]
    static: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = field(default_factory=dict)
    counters: Counters = frozenset()
