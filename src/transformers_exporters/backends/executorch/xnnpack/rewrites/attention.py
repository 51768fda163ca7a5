"""Attention as two batched products around a softmax, all of it in XNNPACK.

Three things differ from the decomposition that torch brings:

- The products keep their four axes (see `xnnpack.ops`), so the scores live in XNNPACK's workspace at their real size
  and never in the arena at their upper bound.
- Grouped-query attention multiplies every key head with its group of query heads by broadcasting, instead of first
  repeating the keys.
- A row whose every key is masked gives zeros, as in eager torch, without a NaN on the way: masked scores get a large
  negative finite number, and the result is multiplied by 0 or 1 a row, computed once a mask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from .....repair.meta_keys import size_key
from ...insertion import Inserter, replace
from ..ops import BATCHED_MATMUL, is_plain_float

_aten = torch.ops.aten
_SDPA = _aten.scaled_dot_product_attention.default

#: A score no smaller than this makes exp(score - largest) exactly 0, and adding any finite score keeps it finite.
MASKED = -1e30


@dataclass(frozen=True)
class _Mask:
    """What is added to the scores, and 1.0 for every row that has a key (0.0 otherwise)."""

    bias: Node
    has_key: Node | None


def apply(program: ExportedProgram) -> int:
    """Rewrite every float32 `scaled_dot_product_attention`; returns how many."""
    masks: dict[Node, _Mask] = {}
    count = 0
    for node in program.graph.find_nodes(op="call_function", target=_SDPA):
        arguments = _arguments(node)
        inputs = [arguments[name] for name in ("query", "key", "value")]
        if all(is_plain_float(n) and n.meta["val"].dim() == 4 for n in inputs) and _has_known_groups(*inputs):
            _rewrite(node, arguments, masks)
            count += 1
    return count


def _has_known_groups(query: Node, key: Node, value: Node) -> bool:
    """Whether it is known how many query heads share each key head."""
    heads = {size_key(n.meta["val"].shape[1]) for n in (query, key, value)}
    return len(heads) == 1 or all(isinstance(size, int) for size in heads)


def _arguments(node: Node) -> dict[str, Any]:
    schema = _SDPA._schema.arguments
    given = {argument.name: value for argument, value in zip(schema, node.args, strict=False)}
    return {argument.name: argument.default_value for argument in schema} | given | dict(node.kwargs)


def _rewrite(node: Node, arguments: dict[str, Any], masks: dict[Node, _Mask]) -> None:
    insert = Inserter(node)
    query, key, value = arguments["query"], arguments["key"], arguments["value"]
    rows, shape = (insert.size(query, 0), insert.size(query, 2)), node.meta["val"].shape
    scale = _scale(insert, query) if arguments["scale"] is None else float(arguments["scale"])
    mask = arguments["attn_mask"]
    prepared = None
    if mask is not None:
        if mask not in masks:
            masks[mask] = _prepare_mask(mask)
        prepared = masks[mask]
    elif arguments["is_causal"]:
        prepared = _causal_mask(insert, query, key)
    key, value, groups = _ungroup(query, key, value)
    if groups > 1:
        query, key, value, prepared = _grouped(insert, query, key, value, groups, prepared)
    scores = insert.call(BATCHED_MATMUL, insert.call(_aten.mul.Tensor, query, scale), _transposed(insert, key))
    if prepared is not None:
        scores = insert.call(_aten.add.Tensor, scores, prepared.bias)
    result = insert.call(BATCHED_MATMUL, insert.call(_aten.softmax.int, scores, -1), value)
    if prepared is not None and prepared.has_key is not None:
        result = insert.call(_aten.mul.Tensor, result, prepared.has_key)
    if groups > 1:
        result = insert.call(_aten.reshape.default, result, [rows[0], shape[1], rows[1], shape[3]])
    replace(node, result)


def _scale(insert: Inserter, query: Node) -> float | Node:
    """1 / sqrt of the last axis, a tensor where its size varies: `math.sqrt` would keep the traced one."""
    width = insert.size(query, -1)
    if isinstance(width, int):
        return 1.0 / math.sqrt(width)
    return insert.call(_aten.rsqrt.default, insert.call(_aten.scalar_tensor.default, width, dtype=torch.float32))


def _transposed(insert: Inserter, node: Node) -> Node:
    rank = node.meta["val"].dim()
    return insert.call(_aten.permute.default, node, [*range(rank - 2), rank - 1, rank - 2])


def _ungroup(query: Node, key: Node, value: Node) -> tuple[Node, Node, int]:
    """The keys and values before they were repeated for each query head, and how often each is used."""
    heads = query.meta["val"].shape[1]
    sources = [_before_repeat(key), _before_repeat(value)]
    if all(s is not None for s in sources) and sources[0].meta["val"].shape[1] == sources[1].meta["val"].shape[1]:
        key, value = sources  # type: ignore[assignment]
    own = key.meta["val"].shape[1]
    return key, value, heads // own if isinstance(own, int) and isinstance(heads, int) else 1


def _before_repeat(node: Node) -> Node | None:
    """`x` in `reshape(expand(x[:, :, None], [b, heads, repeats, t, d]), [b, heads * repeats, t, d])`, if it is that."""
    shape = node.meta["val"].shape
    expand: Any = node.args[0] if node.args else None
    while isinstance(expand, Node) and expand.target in (_aten.clone.default, _aten.contiguous.default):
        expand = expand.args[0]
    if not isinstance(expand, Node) or expand.target is not _aten.expand.default:
        return None
    wide = expand.meta["val"].shape
    source: Any = expand.args[0]
    while isinstance(source, Node) and source.meta["val"].dim() == 5:
        source = source.args[0] if source.target in (_aten.unsqueeze.default, _aten.slice.Tensor) else None
    if not isinstance(source, Node) or source.meta["val"].dim() != 4:
        return None
    before = source.meta["val"].shape
    repeated = (
        isinstance(before[1], int)
        and wide[1] == before[1]
        and isinstance(wide[2], int)
        and shape[1] == before[1] * wide[2]
        and wide[3] == before[2] == shape[2]
        and before[3] == shape[3]
    )
    return source if repeated else None


def _grouped(
    insert: Inserter, query: Node, key: Node, value: Node, groups: int, mask: _Mask | None
) -> tuple[Node, Node, Node, _Mask | None]:
    """Five axes: [batch, key heads, query heads of each, rows, columns]."""
    shape = query.meta["val"].shape
    sizes = [insert.size(query, 0), shape[1] // groups, groups, insert.size(query, 2), shape[3]]
    query = insert.call(_aten.reshape.default, query, sizes)
    key, value = (insert.call(_aten.unsqueeze.default, n, 2) for n in (key, value))
    if mask is not None:
        bias = _grouped_mask(insert, mask.bias, groups)
        mask = _Mask(bias, None if mask.has_key is None else _grouped_mask(insert, mask.has_key, groups))
    return query, key, value, mask


def _grouped_mask(insert: Inserter, mask: Node, groups: int) -> Node:
    rank, heads = mask.meta["val"].dim(), mask.meta["val"].shape[1] if mask.meta["val"].dim() == 4 else 1
    if rank < 4:
        return mask  # broadcasts over the heads from the left
    if heads == 1:
        return insert.call(_aten.unsqueeze.default, mask, 1)
    sizes = [insert.size(mask, 0), heads // groups, groups, insert.size(mask, 2), insert.size(mask, 3)]
    return insert.call(_aten.reshape.default, mask, sizes)


def _prepare_mask(mask: Node) -> _Mask:
    """Right behind the mask, so that all layers share it."""
    insert = Inserter(mask.next)
    if mask.meta["val"].dtype == torch.bool:
        zero = insert.call(_aten.scalar_tensor.default, 0.0)
        low = insert.call(_aten.scalar_tensor.default, MASKED)
        bias = insert.call(_aten.where.self, mask, zero, low)
        rows = insert.call(_aten.any.dim, mask, -1, True)
    else:
        floor = torch.finfo(mask.meta["val"].dtype).min
        bias = insert.call(_aten.clamp.default, mask, floor)
        rows = insert.call(_aten.ne.Scalar, insert.call(_aten.amax.default, mask, [-1], True), -math.inf)
    return _Mask(bias, insert.call(_aten.to.dtype, rows, torch.float32))


def _causal_mask(insert: Inserter, query: Node, key: Node) -> _Mask:
    """torch's alignment: row i sees the keys 0..i. Every row has a key."""
    rows = insert.call(_aten.arange.default, insert.size(query, 2))
    columns = insert.call(_aten.arange.default, insert.size(key, 2))
    allowed = insert.call(_aten.le.Tensor, columns, insert.call(_aten.unsqueeze.default, rows, 1))
    zero = insert.call(_aten.scalar_tensor.default, 0.0)
    low = insert.call(_aten.scalar_tensor.default, MASKED)
    bias = insert.call(_aten.where.self, allowed, zero, low)
    for _ in range(2):
        bias = insert.call(_aten.unsqueeze.default, bias, 0)
    return _Mask(bias, None)
