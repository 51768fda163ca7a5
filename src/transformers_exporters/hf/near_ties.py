"""Runs a model that selects among values which are equal up to rounding, and lets it select otherwise.

A detector keeps its 300 best anchors, a router its two best experts. Where the next best is equal up to rounding, float32
does not say which it is: another order of summation gives another selection, and outputs that differ by far more than
rounding. Neither is wrong.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten

#: How far a selection's values are moved, relative to the values that it selects: an engine's float32 scores were up to 8e-6
#: of them away from PyTorch's (RT-DETR v2, whose best scores are small differences of large numbers).
ROUNDING = 1e-5

#: Enough to tell the order of equal values, and less than the distance of any two others in float32.
_ORDER = 1e-9

#: Each op, and whether it promises an order of equal values: such ones are moved together.
_ORDERED = {
    _aten.topk.default: False,
    _aten.sort.default: False,
    _aten.sort.stable: True,
    _aten.argmax.default: True,
    _aten.argmin.default: True,
    _aten.max.dim: True,
    _aten.min.dim: True,
}


class Otherwise(NamedTuple):
    """A run of the model that selected otherwise.

    Attributes:
        outputs: What it returned.
        places: `op at file:line` of every selection that came out differently.
    """

    outputs: Any
    places: tuple[str, ...]


def selected_otherwise(run: Callable[[], Any], tries: int) -> Iterator[Otherwise]:
    """Run a model with the values of each selection moved by rounding, where that changes a selection.

    What is selected keeps its value: only the choice differs, and what the model computes with it. The first two runs take
    equal values in their order and against it (PyTorch has an order of its own, engines take the first), the others move
    values at random, every second one alike in all rows.

    Args:
        run: Calls the model.
        tries: How often.
    """
    for number in range(tries):
        with _Moved(number) as moved:
            outputs = run()
        if moved.places:
            yield Otherwise(outputs, tuple(moved.places))


class _Moved(TorchDispatchMode):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.places: dict[str, None] = {}
        self._number = number
        self._noise = torch.Generator().manual_seed(number)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        results = func(*args, **named)
        values = args[0] if args else None
        if func not in _ORDERED or not isinstance(values, Tensor) or not values.is_floating_point():
            return results
        indices = results if isinstance(results, Tensor) else results[1]
        if not indices.numel() or not values.dim():
            return results
        dim = _dim(func, args, named)
        others = func(values + self._movement(values, results, dim, ordered=_ORDERED[func]), *args[1:], **named)
        other = others if isinstance(others, Tensor) else others[1]
        if torch.equal(other, indices):
            return results
        self.places[f"{func._schema.name.rpartition('::')[2]} at {_model_line()}"] = None
        return other if isinstance(results, Tensor) else type(results)((_taken(values, dim, other), other))

    def _movement(self, values: Tensor, results: Any, dim: int, *, ordered: bool) -> Tensor:
        """What is added to the values before they are selected from; float64, so that it is not rounded away."""
        best = values.amax() if isinstance(results, Tensor) else results[0]
        finite = best[torch.isfinite(best)].abs().double()
        size = values.abs().double().clamp_min(max(float(finite.median()) if finite.numel() else 0.0, 1e-12))
        along = [length if place == dim % values.dim() else 1 for place, length in enumerate(values.shape)]
        if self._number < 2:
            order = torch.linspace(1.0, -1.0, values.shape[dim], dtype=torch.float64).reshape(along)
            scaled = 0.0 * size if ordered else _ORDER * size * (order if self._number == 0 else -order)
        else:
            distinct, place = values.unique(return_inverse=True) if ordered else (values, ...)
            shape = along if self._number % 2 and not ordered else distinct.shape
            noise = 2 * torch.rand(shape, generator=self._noise, dtype=torch.float64) - 1
            scaled = max(ROUNDING, 4 * torch.finfo(values.dtype).eps) * size * (noise[place] if ordered else noise)
        return torch.where(torch.isfinite(values), scaled, 0.0)


def _dim(func: Any, args: Any, named: Any) -> int:
    """Along which axis an op selects; the last one where it does not say."""
    names = [argument.name for argument in func._schema.arguments]
    dim = {**dict(zip(names, args, strict=False)), **named}.get("dim")
    return -1 if dim is None else int(dim)


def _taken(values: Tensor, dim: int, indices: Tensor) -> Tensor:
    """The values at other indices."""
    if indices.dim() == values.dim():
        return values.gather(dim, indices)
    return values.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


def _model_line() -> str:
    """`file:line` of the innermost running frame of modelling code, or of any code outside of torch."""
    frames = [frame for frame in traceback.extract_stack() if "/torch/" not in frame.filename.replace("\\", "/")]
    own = [frame for frame in frames if frame.filename != __file__]
    found = ([frame for frame in own if "modeling" in Path(frame.filename).name] or own)[-1]
    return f"{Path(found.filename).name}:{found.lineno}"
