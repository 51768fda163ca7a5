"""One call of every core op, in families that share their inputs.

A family is `(inputs, calls)`: `inputs(n)` makes named tensors whose first axis has size `n`, and a call's arguments name
those tensors by strings. What follows a `#` in an op's name tells its calls apart. Every call of a family is made by one
module, so that a backend converts a family at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Calls = Mapping[str, tuple[Any, ...]]
Family = tuple[Callable[[int], dict[str, torch.Tensor]], Calls]


class Kw(dict[str, Any]):
    """Keyword arguments, given last."""


class Raw(str):
    """A string that is an argument of the op, not the name of a tensor."""

    __slots__ = ()


class Fresh(str):
    """The name of a tensor of which the op gets a copy: it writes into it."""

    __slots__ = ()


class Complex(str):
    """The name of a tensor of pairs that the op wants as complex numbers."""

    __slots__ = ()


class Swapped(str):
    """The name of a tensor that the op wants with its first two axes swapped."""

    __slots__ = ()


def _spread(low: float, high: float, *shape: int) -> torch.Tensor:
    """Distinct values in `[low, high]`, in an order without a pattern."""
    count = torch.Size(shape).numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(count))
    return torch.linspace(low, high, count)[order].reshape(shape)


def _each(names: str, *args: Any) -> dict[str, tuple[Any, ...]]:
    return {f"{name}.default" if "." not in name else name: args for name in names.split()}


def _fractions(n: int) -> dict[str, torch.Tensor]:
    return {"x": _spread(0.1, 0.9, n, 5), "far": _spread(1.1, 3.0, n, 5)}


def _signed(n: int) -> dict[str, torch.Tensor]:
    return {"x": _spread(-3.2, 3.3, n, 5)}


def _two(n: int) -> dict[str, torch.Tensor]:
    return {
        "x": _spread(-3.2, 3.3, n, 5),
        "y": _spread(0.4, 2.9, n, 5),
        "z": _spread(-1.0, 1.1, 5),
        "m": _spread(-1, 1, n, 5) > 0,
        "one": torch.tensor(0.7),
    }


def _integers(n: int) -> dict[str, torch.Tensor]:
    i = (torch.arange(n * 5).reshape(n, 5) * 7) % 11
    return {"i": i, "j": i.flip(1) % 3 + 1, "p": i > 4, "q": i % 2 == 0}


def _kinds(n: int) -> dict[str, torch.Tensor]:
    long = (torch.arange(n * 5).reshape(n, 5) * 7) % 11 - 4
    return {
        "long": long,
        "int": long.int(),
        "large": long * 30_000_001,
        "divisor": long % 3 + 1,
        "p": long > 0,
        "q": long % 2 == 0,
        "x": _spread(-2.0, 2.1, n, 5),
        "double": _spread(-2.0, 2.1, n, 5).double(),
    }


def _cube(n: int) -> dict[str, torch.Tensor]:
    return {
        "x": _spread(-2.0, 2.1, n, 4, 6),
        "y": _spread(-1.0, 1.1, n, 4, 6),
        "one": _spread(-1.0, 1.0, n, 1, 6),
        "row": _spread(0.0, 1.0, 3),
        "flat": _spread(0.0, 1.0, n, 2),
        "single": torch.tensor(0.7),
        "count": torch.tensor(4),
        "steps": _spread(-1.0, 1.1, n, 4, 6).round(),
    }


def _indexed(n: int) -> dict[str, torch.Tensor]:
    rows = (torch.arange(n * 3).reshape(n, 3) * 5) % 4
    return {
        "x": _spread(-2.0, 2.1, n, 4, 6),
        "table": _spread(-1.0, 1.0, 7, 6),
        "rows": rows,
        "line": torch.tensor([3, 0, 2]),
        "along": rows[:, :, None].expand(n, 3, 6) % 4,
        "value": _spread(-1.0, 1.0, n, 3, 6),
        "slab": _spread(-1.0, 1.0, n, 6),
        "mask": _spread(-2.0, 2.0, n, 4, 6) > 0,
        "edges": torch.tensor([-1.0, 0.0, 0.5]),
        "bags": torch.tensor([0, 2, 3]),
    }


def _matrices(n: int) -> dict[str, torch.Tensor]:
    return {
        "a": _spread(-1.0, 1.0, n, 4),
        "b": _spread(-1.0, 1.1, 4, 5),
        "bias": _spread(-0.5, 0.5, 5),
        "z": _spread(-0.5, 0.5, 4),
        "w": _spread(-1.0, 1.2, 5, 4),
        "s": _spread(-1.0, 1.0, n, 3, 4),
        "s2": _spread(-1.0, 1.2, n, 5, 4),
        "t": _spread(-1.0, 1.1, n, 4, 5),
        "u": _spread(-1.0, 1.1, n, 3, 5),
        "q": _spread(-1.0, 1.0, n, 2, 3, 4),
        "k": _spread(-1.0, 1.1, n, 2, 6, 4),
        "turned": _spread(-1.0, 1.1, n, 2, 4, 6),
        "v": _spread(-1.1, 1.0, n, 2, 6, 4),
        "mask": _spread(-1.0, 1.0, n, 1, 3, 6) > -0.5,
        "u4": _spread(-1.0, 1.1, n, 3, 6),
        "forms": _spread(-1.0, 1.1, 5, 4, 6),
        "square": _spread(-0.4, 0.4, n, 5, 5) + 2 * torch.eye(5),
    }


def _signals(n: int) -> dict[str, torch.Tensor]:
    return {
        "x": _spread(-1.0, 1.0, n, 4, 12),
        "w": _spread(-1.0, 1.0, 6, 2, 3),
        "up": _spread(-1.0, 1.0, 4, 3, 4),
        "bias": _spread(-0.5, 0.5, 6),
    }


def _images(n: int) -> dict[str, torch.Tensor]:
    return {
        "x": _spread(-1.0, 1.0, n, 4, 8, 10),
        "w": _spread(-1.0, 1.0, 6, 4, 3, 3),
        "up": _spread(-1.0, 1.0, 4, 3, 2, 2),
        "bias": _spread(-0.5, 0.5, 6),
        "grid": _spread(-0.9, 0.9, n, 5, 6, 2),
        "theta": _spread(-0.9, 0.9, 2, 2, 3),
        "columns": _spread(-1.0, 1.0, n, 12, 20),
    }


def _volumes(n: int) -> dict[str, torch.Tensor]:
    return {
        "x": _spread(-1.0, 1.0, n, 2, 4, 6, 6),
        "w": _spread(-1.0, 1.0, 4, 2, 2, 2, 2),
        "bias": _spread(-0.5, 0.5, 4),
    }


def _normed(n: int) -> dict[str, torch.Tensor]:
    return {
        "x": _spread(-2.0, 2.2, n, 4, 6),
        "scale": _spread(0.5, 1.5, 6),
        "shift": _spread(-0.5, 0.5, 6),
        "gain": _spread(0.5, 1.5, 4),
        "offset": _spread(-0.5, 0.5, 4),
        "mean": _spread(-0.3, 0.3, 4),
        "variance": _spread(0.5, 1.5, 4),
    }


def _pairs(n: int) -> dict[str, torch.Tensor]:
    return {
        "x": _spread(-1.0, 1.0, n, 6, 2),
        "y": _spread(-1.0, 1.1, n, 6, 2),
        "r": _spread(0.5, 1.0, n, 6),
        "i": _spread(-1.0, 1.0, n, 6),
        "signal": _spread(-1.0, 1.0, n, 14),
        "spectrum": _spread(-1.0, 1.0, n, 5, 6, 2),
        "window": _spread(0.3, 1.0, 8),
    }


def _steps(n: int) -> dict[str, torch.Tensor]:
    return {
        "x": _spread(-2.0, 2.0, n, 4, 5),
        "h": _spread(-1.0, 1.0, n, 2, 2),
        "c": _spread(-0.9, 0.8, n, 2, 2),
        "row": _spread(-2.0, 2.0, n, 5),
        "state": _spread(-0.9, 0.8, n, 2),
        **{f"{name}g": _spread(-0.5, 0.6, shape[0] * 3 // 4, *shape[1:]) for name, shape in _GATES.items()},
        **{f"{name}r": _spread(-0.5, 0.6, shape[0] // 4, *shape[1:]) for name, shape in _GATES.items()},
        **{f"{name}{way}": _spread(-0.5, 0.6, *shape) for way in "ab" for name, shape in _GATES.items()},
    }


_GATES = {"wi": (8, 5), "wh": (8, 2), "bi": (8,), "bh": (8,)}


FAMILIES: dict[str, Family] = {
    "functions of fractions": (
        _fractions,
        _each(
            "acos asin atan atanh ceil cos cosh erf exp exp2 expm1 floor log log10 log1p log2 neg reciprocal round rsqrt "
            "sigmoid sin sinh sqrt square tan tanh trunc asinh frac fix special_exp2 signbit erfc special_erfc",
            "x",
        )
        | {
            "round.decimals": ("x", Kw(decimals=1)),
            "pow.Tensor_Scalar": ("x", 2.5),
            "pow.Scalar": (2.0, "x"),
            "acosh.default": ("far",),
        },
    ),
    "functions of signed numbers": (
        _signed,
        _each(
            "abs relu sign isnan isinf isfinite silu mish softplus hardsigmoid hardswish hardtanh relu6 selu elu", "x"
        )
        | _each("log_sigmoid leaky_relu logical_not nan_to_num", "x")
        | {
            "gelu.default": ("x", Kw(approximate=Raw("tanh"))),
            "clamp.default": ("x", -1.0, 1.5),
            "clamp_min.default": ("x", -1.0),
            "clamp_max.default": ("x", 1.5),
            "rsub.Scalar": ("x", 2.0),
            "eq.Scalar": ("x", 0.5),
            "ne.Scalar": ("x", 0.5),
            "lt.Scalar": ("x", 0.5),
            "le.Scalar": ("x", 0.5),
            "gt.Scalar": ("x", 0.5),
            "ge.Scalar": ("x", 0.5),
            "remainder.Scalar": ("x", 1.5),
            "fmod.Scalar": ("x", 1.5),
            "add.Scalar": ("x", 2.0),
            "sub.Scalar": ("x", 2.0),
            "mul.Scalar": ("x", 2.0),
            "div.Scalar": ("x", 2.0),
            "threshold.default": ("x", 0.5, -1.0),
            "hardshrink.default": ("x", 0.5),
            "celu.default": ("x", 1.2),
        },
    ),
    "two tensors": (
        _two,
        _each(
            "add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum atan2 hypot copysign.Tensor eq.Tensor ne.Tensor lt.Tensor le.Tensor "
            "gt.Tensor ge.Tensor remainder.Tensor fmod.Tensor floor_divide clamp_min.Tensor clamp_max.Tensor",
            "x",
            "y",
        )
        | {
            "pow.Tensor_Tensor": ("y", "x"),
            "div.Tensor_mode": ("x", "y", Kw(rounding_mode=Raw("floor"))),
            "where.self": ("m", "x", "y"),
            "where.ScalarOther": ("m", "x", 0.5),
            "where.ScalarSelf": ("m", 0.5, "x"),
            "where.Scalar": ("m", 1.0, 0.0),
            "masked_fill.Scalar": ("x", "m", -2.0),
            "masked_fill.Tensor": ("x", "m", "one"),
            "lerp.Tensor": ("x", "y", "z"),
            "lerp.Scalar": ("x", "y", 0.3),
            "addcmul.default": ("x", "y", "z"),
            "addcdiv.default": ("x", "z", "y"),
            "rsub.Tensor": ("x", "y"),
            "prelu.default": ("x", "z"),
            "clamp.Tensor": ("x", "z", "y"),
        },
    ),
    "integers and booleans": (
        _integers,
        _each("logical_and logical_or logical_xor __and__.Tensor __or__.Tensor", "p", "q")
        | _each("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor floor_divide remainder.Tensor", "i", "j")
        | _each("any all", "p")
        | {
            "bitwise_not.default": ("p",),
            "any.dim": ("p", 1),
            "all.dim": ("p", 1, True),
            "cumsum.default": ("i", 1),
            "bitwise_right_shift.Tensor_Scalar": ("i", 1),
            "bitwise_and.Scalar": ("i", 3),
            "bitwise_or.Scalar": ("i", 5),
            "bitwise_or.Scalar#of booleans": ("p", True),
            "bitwise_xor.Scalar": ("i", 6),
            "bitwise_xor.Scalar#of booleans": ("p", 2),
            "bitwise_left_shift.Tensor_Scalar": ("i", 1),
            "__rshift__.Scalar": ("i", 2),
            "__lshift__.Scalar": ("i", 2),
            "one_hot.default": ("i", 11),
            "isin.Tensor_Tensor": ("i", "j"),
        },
    ),
    "numbers of other kinds": (
        _kinds,
        _each("floor ceil round trunc relu abs sign amax amin", "long")
        | _each("logical_not tril", "p")
        | {
            "flip.default": ("p", [1]),
            "cumsum.default": ("int", 1),
            "cumsum.default#1": ("p", 1),
            "sum.default": ("p",),
            "prod.dim_int": ("int", 1),
            "mean.dim": ("long", [1], Kw(dtype=torch.float32)),
            "var.correction": ("x",),
            "amax.default#1": ("p", [1]),
            "max.dim": ("p", 1),
            "maximum.default": ("p", "q"),
            "minimum.default": ("p", "q"),
            "add.Tensor": ("p", "q"),
            "add.Tensor#1": ("p", "x"),
            "mul.Tensor": ("double", "int"),
            "where.self": ("q", "p", "q"),
            "where.self#1": ("p", "long", "x"),
            "masked_fill.Scalar": ("p", "q", 1),
            "masked_fill.Scalar#1": ("p", "q", 0),
            "stack.default": (["int", "long"], 1),
            "cat.default": (["p", "x"], 1),
            "floor_divide.default": ("long", "divisor"),
            "floor_divide.default#1": ("int", 3),
            "div.Tensor_mode": ("long", "divisor", Kw(rounding_mode=Raw("floor"))),
            "div.Tensor_mode#1": ("long", "divisor", Kw(rounding_mode=Raw("trunc"))),
            "div.Tensor": ("long", 2),
            "remainder.Tensor": ("long", "divisor"),
            "remainder.Scalar": ("int", 3),
            "remainder.Scalar#1": ("large", 1009),
            "exp.default": ("long",),
            "pow.Tensor_Scalar": ("int", 2),
            "masked_scatter.default": ("int", "p", "int"),
        },
    ),
    "reductions": (
        _cube,
        _each("sum mean amax amin max min prod", "x")
        | {
            "sum.dim_IntList": ("x", [1], True),
            "mean.dim": ("x", [-1], True),
            "amax.default": ("x", [1, 2]),
            "amin.default": ("x", [2], True),
            "max.dim": ("x", 1),
            "min.dim": ("x", 2, True),
            "prod.dim_int": ("x", 1),
            "argmax.default": ("x", 2),
            "argmin.default": ("x", 1, True),
            "var.correction": ("x", [2], Kw(correction=1, keepdim=True)),
            "std.correction": ("x", [1], Kw(correction=0)),
            "linalg_vector_norm.default": ("x", 2, [-1], True),
            "logsumexp.default": ("x", [2]),
            "cumsum.default": ("x", 1),
            "cumprod.default": ("y", 1),
            "logcumsumexp.default": ("x", 1),
            "kthvalue.default": ("x", 2, 1),
            "kthvalue.default#of the last axis": ("x", 3, -1, True),
            "median.dim": ("x", 1),
            "median.default": ("x",),
            "cummax.default": ("x", 1),
            "cummin.default": ("steps", -1),
            "softmax.int": ("x", -1),
            "_softmax.default": ("x", 1, False),
            "_log_softmax.default": ("x", 1, False),
            "log_softmax.int": ("x", 2),
            "topk.default": ("x", 3),
            "sort.default": ("x", 2, True),
            "argsort.default": ("x", 1),
            "sort.stable": ("steps", Kw(stable=True, dim=1, descending=True)),
            "argsort.stable": ("steps", Kw(stable=True, dim=2)),
        },
    ),
    "shapes": (
        _cube,
        {
            "reshape.default": ("x", [-1, 24]),
            "view.default": ("x", [-1, 24]),
            "t.default": ("flat",),
            "sym_size.int": ("x", 0),
            "permute.default": ("x", [2, 0, 1]),
            "transpose.int": ("x", 1, 2),
            "squeeze.default": ("one",),
            "squeeze.dim": ("one", 1),
            "squeeze.dims": ("one", [1, 2]),
            "unsqueeze.default": ("x", 1),
            "expand.default": ("x", [2, -1, -1, -1]),
            "expand_as.default": ("x", "y"),
            "view_as.default": ("x", "y"),
            "flatten.using_ints": ("x", 1, 2),
            "unflatten.int": ("x", 2, [2, 3]),
            "repeat.default": ("x", [2, 1, 3]),
            "tile.default": ("x", [2, 1]),
            "repeat_interleave.self_int": ("x", 2, 1),
            "cat.default": (["x", "y"], 1),
            "stack.default": (["x", "y"], 1),
            "split.Tensor": ("x", 2, 1),
            "split_with_sizes.default": ("x", [1, 3], 1),
            "chunk.default": ("x", 2, -1),
            "tensor_split.sections": ("x", 3, 1),
            "tensor_split.indices": ("x", [1, -1], 2),
            "unbind.int": ("x", 1),
            "slice.Tensor": ("x", 2, 1, 5, 2),
            "select.int": ("x", 1, -2),
            "narrow.default": ("x", 1, 1, 2),
            "flip.default": ("x", [1]),
            "roll.default": ("x", [1, -2], [1, 2]),
            "movedim.int": ("x", 1, 2),
            "swapaxes.default": ("x", 1, 2),
            "pad.default": ("x", [1, 2], Raw("constant"), 0.5),
            "constant_pad_nd.default": ("x", [1, 0, 0, 2], 0.5),
            "tril.default": ("x", 1),
            "triu.default": ("x", -1),
            "diagonal.default": ("x", 1, 1, 2),
            "unfold.default": ("x", 2, 3, 2),
            "atleast_2d.default": ("x",),
        },
    ),
    "making and casting": (
        _cube,
        {
            "full_like.default": ("x", 2.5),
            "zeros_like.default": ("x",),
            "ones_like.default": ("x",),
            "new_zeros.default": ("x", [2, 3]),
            "new_ones.default": ("x", [2, 3]),
            "new_full.default": ("x", [2, 3], 1.5),
            "full.default": ([2, 3], 1.5),
            "zeros.default": ([2, 3],),
            "ones.default": ([2, 3],),
            "arange.default": (5,),
            "arange.start": (1, 5),
            "arange.start_step": (1, 9, 2),
            "scalar_tensor.default": (2.5,),
            "linspace.default": (0.0, 1.0, 5),
            "eye.default": (3,),
            "item.default": ("count",),
            "_local_scalar_dense.default": ("count",),
            "to.dtype": ("x", torch.int64),
            "to.device": ("x", torch.device("cpu"), torch.int32),
            "to.dtype_layout": ("x", Kw(dtype=torch.int32)),
            "_to_copy.default": ("x", Kw(dtype=torch.int64)),
            "type_as.default": ("x", "y"),
            "clone.default": ("x",),
            "contiguous.default": ("x",),
            "detach.default": ("x",),
            "alias.default": ("x",),
            "lift_fresh_copy.default": ("x",),
            "dropout.default": ("x", 0.1, False),
            "copy.default": ("x", "y"),
            "fill.Scalar": ("x", 1.5),
            "fill.Tensor": ("x", "single"),
            "meshgrid.indexing": (["row", "row"], Kw(indexing=Raw("ij"))),
        },
    ),
    "indexing": (
        _indexed,
        {
            "embedding.default": ("table", "rows"),
            "embedding_bag.default": ("table", "line", "bags", False, 1),
            "embedding_bag.padding_idx": ("table", "line", "bags", False, 0, False, "edges", False, 2),
            "_embedding_bag.default": ("table", "line", "bags", False, 2),
            "_embedding_bag_forward_only.default": ("table", "line", "bags", False, 0, False, "edges", True),
            "index.Tensor": ("x", [None, "line"]),
            "nonzero.default": ("mask",),
            "index_select.default": ("x", 1, "line"),
            "gather.default": ("x", 1, "along"),
            "scatter.src": ("x", 1, "along", "value"),
            "scatter.value": ("x", 1, "along", 1.5),
            "scatter_add.default": ("x", 1, "along", "value"),
            "scatter_reduce.two": ("x", 1, "along", "value", Raw("amax")),
            "index_put.default": ("x", [None, "line"], "value"),
            "index_add.default": ("x", 1, "line", "value"),
            "index_copy.default": ("x", 1, "line", "value"),
            "masked_scatter.default": ("x", "mask", "x"),
            "select_scatter.default": ("x", "slab", 1, 2),
            "slice_scatter.default": ("x", "value", 1, 0, 3),
            "bincount.default": ("line",),
            "bincount.default#weights": ("line", "edges", 6),
            "masked_select.default": ("x", "mask"),
            "repeat_interleave.Tensor": ("line",),
            "repeat_interleave.Tensor#of a given size": ("line", Kw(output_size=5)),
            "_unique2.default": ("rows", True, True, True),
            "_unique2.default#values": ("rows",),
            "unique_consecutive.default": ("rows", True, True),
            "unique_consecutive.default#values": ("line",),
            "index_reduce.default": ("x", 1, "line", "value", Raw("mean")),
            "histc.default": ("x", 5, -1.5, 2.1),
            "histc.default#own range": ("value", 4),
            "bucketize.Tensor": ("x", "edges"),
            "searchsorted.Tensor": ("edges", "x"),
        },
    ),
    "matrices": (
        _matrices,
        {
            "mm.default": ("a", "b"),
            "bmm.default": ("s", "t"),
            "addmm.default": ("bias", "a", "b"),
            "baddbmm.default": ("u", "s", "t"),
            "matmul.default": ("q", "turned"),
            "linear.default": ("s", "w", "bias"),
            "einsum.default": (Raw("nij,njk->nik"), ["s", "t"]),
            "scaled_dot_product_attention.default": ("q", "k", "v", "mask"),
            "mv.default": ("a", "z"),
            "linalg_solve_triangular.default": ("square", "square", Kw(upper=True, unitriangular=True)),
            "linalg_solve_triangular.default#from the right": ("square", "u", Kw(upper=False, left=False)),
            "bilinear.default": ("s", "u4", "forms", "bias"),
            "_cdist_forward.default": ("s", "s2", 2.0, None),
        },
    ),
    "signals": (
        _signals,
        {
            "conv1d.default": ("x", "w", "bias", [2], [1], [1], 2),
            "conv1d.default#without bias": ("x", "w", None, [1], [0], [2], 2),
            "conv1d.padding": ("x", "w", "bias", [1], Raw("same"), [1], 2),
            "conv_transpose1d.default": ("x", "up", None, [2], [1]),
            "avg_pool1d.default": ("x", [3], [2], [1]),
            "max_pool1d.default": ("x", [3], [2]),
            "adaptive_avg_pool1d.default": ("x", [4]),
            "adaptive_max_pool1d.default": ("x", [4]),
            "upsample_nearest1d.vec": ("x", None, [2.0]),
            "upsample_linear1d.vec": ("x", [18], False, None),
            "reflection_pad1d.default": ("x", [2, 3]),
            "replication_pad1d.default": ("x", [2, 3]),
            "glu.default": ("x", 1),
        },
    ),
    "images": (
        _images,
        {
            "conv2d.default": ("x", "w", "bias", [2, 2], [1, 1]),
            "conv2d.default#without bias": ("x", "w", None, [1, 1], [0, 1], [2, 1]),
            "conv2d.padding": ("x", "w", "bias", [1, 1], Raw("same")),
            "convolution.default": ("x", "w", "bias", [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
            "conv_transpose2d.input": ("x", "up", None, [2, 2]),
            "avg_pool2d.default": ("x", [2, 2], [2, 2]),
            "max_pool2d.default": ("x", [3, 3], [2, 2], [1, 1]),
            "max_pool2d_with_indices.default": ("x", [2, 2]),
            "adaptive_avg_pool2d.default": ("x", [1, 1]),
            "_adaptive_avg_pool2d.default": ("x", [4, 3]),
            "adaptive_max_pool2d.default": ("x", [4, 3]),
            "affine_grid_generator.default": ("theta", [2, 3, 4, 5], False),
            "affine_grid_generator.default#aligned": ("theta", [2, 3, 4, 1], True),
            "upsample_nearest2d.vec": ("x", None, [2.0, 2.0]),
            "upsample_bilinear2d.vec": ("x", [12, 15], False, None),
            "upsample_bicubic2d.vec": ("x", [12, 15], False, None),
            "_upsample_bicubic2d_aa.vec": ("x", [6, 5], False, None),
            "_upsample_bilinear2d_aa.vec": ("x", [6, 5], False, None),
            "_upsample_bicubic2d_aa.default": ("x", [6, 15], False),
            "_upsample_bilinear2d_aa.default": ("x", [12, 5], True),
            "grid_sampler.default": ("x", "grid", 0, 0, False),
            "pixel_shuffle.default": ("x", 2),
            "pixel_unshuffle.default": ("x", 2),
            "col2im.default": ("columns", [6, 5], [2, 3], [1, 1], [1, 1], [2, 1]),
            "im2col.default": ("x", [2, 2], [1, 1], [0, 0], [2, 2]),
            "reflection_pad2d.default": ("x", [1, 2, 1, 0]),
            "replication_pad2d.default": ("x", [1, 2, 1, 0]),
        },
    ),
    "volumes": (
        _volumes,
        {
            "conv3d.default": ("x", "w", "bias", [1, 2, 2]),
            "conv3d.default#without bias": ("x", "w", None, [2, 1, 1], [0, 1, 1]),
            "avg_pool3d.default": ("x", [2, 2, 2]),
            "adaptive_avg_pool3d.default": ("x", [3, 1, 4]),
            "_adaptive_avg_pool3d.default": ("x", [1, 1, 1]),
            "max_pool3d.default": ("x", [2, 2, 2]),
            "upsample_nearest3d.vec": ("x", None, [1.0, 2.0, 2.0]),
            "upsample_trilinear3d.vec": ("x", [4, 8, 8], False, None),
        },
    ),
    "normalization": (
        _normed,
        {
            "layer_norm.default": ("x", [6], "scale", "shift", 1e-5),
            "rms_norm.default": ("x", [6], "scale", 1e-5),
            "group_norm.default": ("x", 2, "gain", "offset", 1e-5),
            "batch_norm.default": ("x", "gain", "offset", "mean", "variance", False, 0.1, 1e-5, False),
            "instance_norm.default": ("x", "gain", "offset", None, None, True, 0.1, 1e-5, False),
        },
    ),
    "complex numbers": (
        _pairs,
        {
            "view_as_complex.default": ("x",),
            "complex.default": ("r", "i"),
            "polar.default": ("r", "i"),
            "fft_fft.default": ("r",),
            "fft_fftn.default": ("x", None, [1, 2], Raw("ortho")),
            "fft_ifft.default": ("r", None, 1),
            "fft_rfft.default": ("r", 5),
            "fft_irfft2.default": ("x", None, [1, 2]),
            "fft_hfft.default": ("r",),
            "stft.default": ("signal", 8, 2, 8, "window", Kw(return_complex=True)),
            "stft.default#of a short window": ("signal", 8, 3, 5, None, True, Kw(return_complex=False)),
            "stft.center": ("signal", 8, 2, 8, "window", Kw(return_complex=True)),
            "istft.default": (Complex("spectrum"), 8, 2, 8, "window"),
            "istft.default#of a length": (Complex("spectrum"), 8, 3, 8, None, True, True, None, 15),
        },
    ),
    "random numbers": (
        _fractions,
        {
            "rand.default": ([3, 2],),
            "randn.default": ([3, 2],),
            "rand_like.default": ("x",),
            "randn_like.default": ("x",),
            "randint.default": (5, [3]),
            "randint.low": (2, 5, [3], Kw(dtype=torch.int32)),
            "randint_like.default": ("x", 4),
            "randint_like.low_dtype": ("x", 1, 4),
            "randperm.default": (6,),
            "bernoulli.default": ("x",),
            "bernoulli.p": ("x", 0.3),
            "bernoulli_.float": (Fresh("x"), 0.3),
            "multinomial.default": ("x", 2),
            "multinomial.default#with replacement": ("x", 7, True),
            "normal.Tensor_float": ("x", 0.5),
            "normal.float_Tensor": (0.5, "x"),
            "normal.Tensor_Tensor": ("far", "x"),
            "normal_.default": (Fresh("x"),),
            "normal_functional.default": ("x", 1.0, 0.5),
            "uniform.default": ("x", -1.0, 1.0),
            "uniform_.default": (Fresh("x"), 0.0, 2.0),
            "exponential.default": ("x",),
            "exponential_.default": (Fresh("x"), 2.0),
        },
    ),
    "steps of a recurrent layer": (
        _steps,
        {
            "gru_cell.default": ("row", "state", "wig", "whg", "big", "bhg"),
            "lstm_cell.default": ("row", ["state", "state"], "wia", "wha", "bia", "bha"),
            "rnn_tanh_cell.default": ("row", "state", "wir", "whr"),
            "lstm.input": (
                "x",
                [Swapped("h"), Swapped("c")],
                [f"{name}{way}" for way in "ab" for name in _GATES],
                *(True, 1, 0.0, False, True, True),  # biases, layers, dropout, train, bidirectional, batch first
            ),
        },
    ),
}
