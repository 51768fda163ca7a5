"""Sample inputs that a tiny model's own forward accepts: made by the names in its signature, then tried."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import torch
from transformers import PreTrainedModel

from .attempts import MEDIA, attempts
from .complaint import Complaint, complaint_of
from .described import tensor_for
from .mending import mended
from .placeholders import with_placeholders
from .tensors import Layout

#: Choices of inputs that are mended, and how many changed inputs are tried for each.
_MOST_MENDED, _MOST_STEPS = 6, 24


def working_inputs(model: PreTrainedModel) -> dict[str, Any]:
    """Keywords of `model.forward` for two rows of different content, which ran through it once without a NaN.

    Where a model that takes pictures or sound runs with text alone, inputs with a picture or a sound that it refused are
    mended first.

    Args:
        model: In eval mode, on the CPU.

    Raises:
        Exception: The error of the first attempt, if none of the attempts runs.
    """
    search = _Search(model)
    accepted: dict[str, Any] | None = None
    refused: dict[tuple[str, ...], tuple[dict[str, Any], Layout, Complaint]] = {}
    for names, layout in attempts(model):
        inputs, complaint = search.made(names, layout)
        if complaint is None:
            accepted = inputs
            break
        if inputs:
            refused.setdefault((*names, layout.image, layout.audio), (inputs, layout, complaint))
    if accepted is not None and any(name in accepted for name in MEDIA):
        return accepted
    worth = [one for one in refused.values() if accepted is None or any(name in one[0] for name in MEDIA)]
    for inputs, layout, complaint in worth[: _MOST_MENDED if accepted is None else _MOST_MENDED // 2]:
        answer = search.mended(inputs, layout, complaint)
        if answer is not None and (accepted is None or any(name in answer for name in MEDIA)):
            return answer
    if accepted is None:
        raise search.first or ValueError("its forward takes no tensors") from search.deepest
    return accepted


class _Search:
    """Inputs that were tried, and the complaints that say most.

    Attributes:
        first: The first one, of the likeliest inputs.
        deepest: The one that came from furthest inside the model, if that is another one.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self.first: Exception | None = None
        self.deepest: Exception | None = None
        self._depth = 0

    def made(self, names: list[str], layout: Layout) -> tuple[dict[str, Any], Complaint | None]:
        """The inputs of these names as far as they could be made, and what the model complained about."""
        inputs: dict[str, Any] = {}
        try:
            inputs = {name: tensor_for(name, self._model, layout) for name in names}
            inputs = with_placeholders(self._model, inputs, layout)
            _run(self._model, inputs)
        except Exception as problem:  # noqa: BLE001 -- any error of the model's code says that these are not its inputs
            return inputs, self._heard(problem)
        return inputs, None

    def mended(self, inputs: dict[str, Any], layout: Layout, complaint: Complaint) -> dict[str, Any] | None:
        """`inputs` changed step by step after what the forward says, depth first; None where that leads nowhere.

        A step counts when the forward complains about something that it did not complain about before.
        """
        seen, tried = {complaint.message}, {_shapes(inputs)}
        waiting = [mended(self._model, inputs, layout, complaint)]
        for _ in range(_MOST_STEPS):
            while waiting and (candidate := next(waiting[-1], None)) is None:
                waiting.pop()
            if not waiting or candidate is None:
                return None
            if _shapes(candidate) in tried:
                continue
            tried.add(_shapes(candidate))
            try:
                complete = with_placeholders(self._model, candidate, layout)
                _run(self._model, complete)
            except Exception as problem:  # noqa: BLE001 -- as above
                heard = self._heard(problem)
                if heard.message not in seen:
                    seen.add(heard.message)
                    waiting.append(mended(self._model, candidate, layout, heard))
            else:
                return complete
        return None

    def _heard(self, problem: Exception) -> Complaint:
        complaint = complaint_of(problem)
        depth = sum(1 for _ in traceback.walk_tb(problem.__traceback__))
        if self.first is None:
            self.first, self._depth = problem, depth
        elif depth > self._depth:
            self.deepest, self._depth = problem, depth
        else:
            problem.__traceback__ = None  # which would keep what the frames hold
        return complaint


def _shapes(inputs: dict[str, Any]) -> str:
    return repr([(name, *map(_form, _tensors(value))) for name, value in inputs.items()])


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    content = None if tensor.is_floating_point() else int(tensor.sum())
    return tuple(tensor.shape), str(tensor.dtype), content


def _run(model: PreTrainedModel, inputs: dict[str, Any]) -> None:
    with torch.no_grad():
        outputs = model(**inputs)
    tensors = list(_tensors(outputs))
    if not tensors:
        raise ValueError("its forward returns no tensor for these inputs")
    if any(tensor.is_floating_point() and bool(torch.isnan(tensor).any()) for tensor in tensors):
        raise ValueError("its forward gives NaN with random weights")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _tensors(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _tensors(inner)
