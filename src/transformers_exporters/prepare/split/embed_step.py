"""The step before the language model as a component: which inputs it needs, at sizes that freeze no axis."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.overrides import TorchFunctionMode

from ...hf.joined import fields, joined, stacks, tensor_lists, without
from ...hf.pytrees import CACHE_NAMES, holds_tensors
from ...hf.submodules import projectors
from ..axes import leaf_path, name_axes
from ..record import Part
from ..shapes_only import run_forward
from .embed_inputs import EmbedInputs
from .record_calls import Recording

logger = logging.getLogger(__name__)

# generate() may run the encoders itself and hand their features to forward under this name.
_ENCODED = "mm_encoder_outputs"


@dataclass(frozen=True)
class EmbedStep:
    """The component `embed_inputs`.

    Attributes:
        part: The component.
        results: What it gives the language model for the inputs of the part.
        joined: Paths of what has one tensor, or one item of a tensor, an image, and that it takes as one.
        unread: Paths of what encoders return and it does not take.
    """

    part: Part
    results: dict[str, Any]
    joined: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def embed_step(
    model: Any,
    called: Mapping[str, torch.nn.Module],
    recordings: Mapping[str, Recording],
    prefill: Mapping[str, Any],
    call: Mapping[str, Any],
) -> EmbedStep | None:
    """Split off what the model does up to its language model, or None where it cannot be split off.

    Args:
        model: The composite model.
        called: Its parts that ran, by component name.
        recordings: What each part was called with and returned.
        prefill: Kwargs of the model's first forward.
        call: Kwargs of the language model's.
    """
    names = [name for name, value in call.items() if name not in CACHE_NAMES and holds_tensors(value)]
    inputs = {name: value for name, value in prefill.items() if name not in CACHE_NAMES}
    stubs: list[str] = []
    if _ENCODED not in prefill:
        own = [name for name in called if name in projectors(model)]
        stubs = own or [name for name in called if name.endswith("_encoder")]
        inputs["features"] = [result for name in stubs for result in recordings[name].results]
    module = EmbedInputs(model, called["language_model"], [called[name] for name in stubs], names).eval()
    wanted = _results(module, inputs)
    if wanted is None:
        return None  # a model that reaches its language model another way stays whole
    unread: list[str] = []
    for path in fields(inputs):
        if _same(_results(module, without(inputs, [*unread, path])), wanted):
            unread.append(path)
    inputs = without(inputs, unread)
    lists = [path for path in tensor_lists(inputs) if _only_joins(module, inputs, path, wanted)]
    inputs = joined(inputs, lists)
    twice = _of_two_rows(inputs)
    doubled = _results(module, twice) if twice is not None else None
    if twice is not None and doubled is not None:
        inputs, wanted = twice, doubled
    rows = [path for path in _taken_apart(module, inputs) if _same(_results(module, joined(inputs, [path])), wanted)]
    return EmbedStep(Part("embed_inputs", module, joined(inputs, rows)), wanted, [*lists, *rows], unread)


class _Unbinds(TorchFunctionMode):
    """Notes which tensors are taken apart along their first axis, as a Python loop over a tensor does."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[torch.Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.Tensor.unbind, torch.unbind):
            self.seen.append(args[0])
        return func(*args, **(kwargs or {}))


def _taken_apart(module: torch.nn.Module, inputs: Mapping[str, Any]) -> list[str]:
    """The paths of the tensors over whose items the model loops: a graph would keep their number."""
    with _Unbinds() as unbinds:
        _results(module, inputs)
    return [
        path
        for path, tensor in stacks(inputs)
        if tensor.shape[0] > 1 and any(_equal(seen, tensor) for seen in unbinds.seen)
    ]


def _results(module: torch.nn.Module, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the step gives, or None where it refuses the inputs."""
    try:
        with torch.no_grad():
            results: dict[str, Any] = run_forward(module, inputs)
    except Exception as error:  # noqa: BLE001 - whatever the model raises: it takes no such inputs
        logger.debug("the step before the language model refuses the inputs: %s", error)
        return None
    return results


def _only_joins(module: torch.nn.Module, inputs: Mapping[str, Any], path: str, wanted: Any) -> bool:
    """Whether a list's tensors are only joined by the model: however its rows are cut, the result is the same."""
    return all(_same(_results(module, joined(inputs, [path], pieces)), wanted) for pieces in (1, 2))


def _of_two_rows(inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """A prompt of one row twice, with its images and features twice; None if it has more rows.

    Rows and images change together, so no axis alone can be given another size.
    """
    axes = name_axes(inputs)
    ids = next((inputs[name] for name in ("input_ids", "inputs_embeds") if inputs.get(name) is not None), None)
    if ids is None or ids.shape[0] != 1:
        return None

    def double(path: Any, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            return value
        names = axes.get(leaf_path(path), ())
        dim = names.index("batch") if "batch" in names and value.shape[names.index("batch")] == 1 else 0
        return torch.cat([value, value], dim=dim)

    return dict(pytree.tree_map_with_path(double, dict(inputs)))


def _same(first: Any, second: Any) -> bool:
    a, b = pytree.tree_leaves(first), pytree.tree_leaves(second)
    return first is not None and len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))


def _equal(first: Any, second: Any) -> bool:
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return bool(first == second)
    return first.shape == second.shape and (first.is_meta or torch.equal(first, second))
