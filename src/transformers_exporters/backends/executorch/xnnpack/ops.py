"""An operator that stands for XNNPACK's batched matrix product until the graph is serialized.

`aten.matmul` would be taken apart into `expand`, `view` and `bmm`, whose views fold two dynamic axes into one; XNNPACK
has no such view, and the part of the graph that it computes would end there.
"""

from __future__ import annotations

import torch
from executorch.backends.xnnpack.utils.quant_utils import is_dequant, is_per_channel, is_per_channel_group
from torch.fx import Node


@torch.library.custom_op("transformers_exporters::batched_matmul", mutates_args=())
def batched_matmul(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`left: float32 [..., m, k]` times `right: float32 [..., k, n]`, leading axes broadcast; rank 3 to 6 each."""
    return torch.matmul(left, right)


@batched_matmul.register_fake
def _fake(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    leading = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return left.new_empty((*leading, left.shape[-2], right.shape[-1]))


BATCHED_MATMUL = torch.ops.transformers_exporters.batched_matmul.default


def is_plain_float(node: Node) -> bool:
    """Whether the node is one float32 tensor, which is what XNNPACK computes at full accuracy."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def fits_batched_matmul(left: Node, right: Node) -> bool:
    """Whether XNNPACK can multiply the two."""
    return all(is_plain_float(n) and 3 <= n.meta["val"].dim() <= 6 for n in (left, right))


def has_quantized_weight_only(node: Node) -> bool:
    """Whether a product is one of float32 inputs with a weight of 8 bits, one scale a row."""
    inputs, weight = node.args[:2]
    rows = is_dequant(weight) and is_per_channel(weight) and not is_per_channel_group(weight)
    return bool(rows and not is_dequant(inputs) and is_plain_float(inputs) and is_plain_float(node))
