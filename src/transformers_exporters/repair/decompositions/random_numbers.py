"""Random numbers of every kind, from uniform and normal ones.

The numbers of a graph are of the same distribution as the model's, not the same numbers: no engine shares torch's generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

#: The smallest normal float32: keeps a logarithm finite.
_TINY = 2.0**-126


def rand_like(x: Tensor, **options: Any) -> Tensor:
    """Uniform in [0, 1)."""
    return torch.rand(x.shape, **_options(options, x))


def randn_like(x: Tensor, **options: Any) -> Tensor:
    """Normal, of mean 0 and deviation 1."""
    return torch.randn(x.shape, **_options(options, x))


def randint(high: Any, size: Sequence[Any], **options: Any) -> Tensor:
    """Whole numbers in [0, high)."""
    return randint_from(0, high, size, **options)


def randint_from(low: Any, high: Any, size: Sequence[Any], **options: Any) -> Tensor:
    """Whole numbers in [low, high); of 2**24 numbers and more, not each can come out."""
    uniform = torch.rand(size, dtype=torch.float32, device=options.get("device"))
    steps = (
        (uniform * (high - low)).to(torch.int64).clamp(max=high - low - 1)
    )  # the product may be rounded up to `high`
    return (steps + low).to(options.get("dtype") or torch.int64)


def randint_like(x: Tensor, high: Any, **options: Any) -> Tensor:
    """`randint` of a tensor's shape and dtype."""
    return randint_from(0, high, x.shape, **_options(options, x))


def randint_like_from(x: Tensor, low: Any, high: Any, **options: Any) -> Tensor:
    """`randint_from` of a tensor's shape and dtype."""
    return randint_from(low, high, x.shape, **_options(options, x))


def randperm(n: Any, **options: Any) -> Tensor:
    """The numbers below `n` in the order of as many uniform ones."""
    order = torch.argsort(torch.rand([n], dtype=torch.float32, device=options.get("device")))
    return order.to(options.get("dtype") or torch.int64)


def bernoulli(x: Tensor, *, generator: None = None) -> Tensor:
    """1 with the probability that an element is, else 0."""
    return (rand_like(x) < x).to(x.dtype)


def bernoulli_of(x: Tensor, p: float = 0.5, *, generator: None = None) -> Tensor:
    """1 with probability `p`, else 0, in the shape of `x`."""
    return (rand_like(x, dtype=torch.float32) < p).to(x.dtype)


def multinomial(x: Tensor, samples: Any, replacement: bool = False, *, generator: None = None) -> Tensor:
    """Places along the last axis, drawn with probabilities in the proportion of `x`.

    Without replacement the places race: one of weight `w` arrives after an exponential time of rate `w`.
    """
    if not replacement:
        return torch.topk(x / exponential(x).clamp(min=_TINY), samples, dim=-1)[1]
    upto = x.cumsum(-1)
    drawn = torch.rand([*x.shape[:-1], samples], dtype=x.dtype, device=x.device) * upto[..., -1:]
    return (upto.unsqueeze(-2) <= drawn.unsqueeze(-1)).sum(-1).clamp(max=x.shape[-1] - 1)


def normal(x: Tensor, mean: float = 0, std: float = 1, *, generator: None = None) -> Tensor:
    """Normal, in the shape of `x`."""
    return randn_like(x) * std + mean


def normal_around(mean: Tensor, std: float = 1, *, generator: None = None) -> Tensor:
    """Normal, with a mean for each element."""
    return randn_like(mean) * std + mean


def normal_within(mean: float, std: Tensor, *, generator: None = None) -> Tensor:
    """Normal, with a deviation for each element."""
    return randn_like(std) * std + mean


def normal_of_each(mean: Tensor, std: Tensor, *, generator: None = None) -> Tensor:
    """Normal, with a mean and a deviation for each element."""
    return randn_like(mean + std) * std + mean


def uniform(x: Tensor, low: float = 0, high: float = 1, *, generator: None = None) -> Tensor:
    """Uniform in [low, high), in the shape of `x`."""
    return rand_like(x) * (high - low) + low


def exponential(x: Tensor, rate: float = 1, *, generator: None = None) -> Tensor:
    """Times until an event of that rate, in the shape of `x`."""
    return torch.log(1 - rand_like(x)) * (-1 / rate)


def _in_place(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def write(x: Tensor, *args: Any, **options: Any) -> Tensor:
        return x.copy_(draw(x, *args, **options))

    return write


def _options(given: dict[str, Any], x: Tensor) -> dict[str, Any]:
    return {"dtype": given.get("dtype") or x.dtype, "device": given.get("device") or x.device}


RULES: dict[str, Callable[..., Any]] = {
    "aten.rand_like.default": rand_like,
    "aten.randn_like.default": randn_like,
    "aten.randint.default": randint,
    "aten.randint.low": randint_from,
    "aten.randint_like.default": randint_like,
    "aten.randint_like.low_dtype": randint_like_from,
    "aten.randperm.default": randperm,
    "aten.bernoulli.default": bernoulli,
    "aten.bernoulli.p": bernoulli_of,
    "aten.bernoulli_.float": _in_place(bernoulli_of),
    "aten.multinomial.default": multinomial,
    "aten.normal.Tensor_float": normal_around,
    "aten.normal.float_Tensor": normal_within,
    "aten.normal.Tensor_Tensor": normal_of_each,
    "aten.normal_.default": _in_place(normal),
    "aten.normal_functional.default": normal,
    "aten.uniform.default": uniform,
    "aten.uniform_.default": _in_place(uniform),
    "aten.exponential.default": exponential,
    "aten.exponential_.default": _in_place(exponential),
}
