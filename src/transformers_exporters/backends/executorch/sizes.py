"""Size arithmetic in the operators that the runtime has."""

from __future__ import annotations

import operator
from typing import Any

import torch
from executorch.exir.dialects._ops import ops
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.shape_prop import _extract_tensor_metadata


def expand_powers(program: ExportedProgram) -> int:
    """Write a size to a whole power as products; torch folds `n * n` into `n ** 2`, for which there is no kernel.

    Any other power (`int(length**0.5)`, the side of a square of patches) is computed as a tensor without axes.

    Returns how many were rewritten.
    """
    count = 0
    for node in list(program.graph.nodes):
        if node.op != "call_function" or node.target not in (operator.pow, pow):
            continue
        base, exponent = node.args
        if not isinstance(base, Node) or isinstance(exponent, Node):
            continue
        with program.graph.inserting_before(node):
            if isinstance(exponent, int) and 2 <= exponent <= 8:
                product = _repeated(node, base, exponent)
            else:
                product = _as_tensor(node, base, exponent)
        node.replace_all_uses_with(product)
        program.graph.erase_node(node)
        count += 1
    return count


def _repeated(node: Node, base: Node, exponent: int) -> Node:
    product = base
    for power in range(2, exponent + 1):
        product = node.graph.call_function(operator.mul, (product, base))
        product.meta["val"] = base.meta["val"] ** power
    return product


def _as_tensor(node: Node, base: Node, exponent: float) -> Node:
    """The power of a size by the kernel for tensors, in float64: the square root of a square is its side."""
    mode = detect_fake_mode([n.meta.get("val") for n in node.graph.nodes])
    assert mode is not None
    with mode:
        scalar = torch.empty((), dtype=torch.float64)
    edge = ops.edge.aten
    made: Any = base
    for target, args in (
        (edge.scalar_tensor.default, ()),
        (edge.pow.Tensor_Scalar, (float(exponent),)),
        (torch.ops.aten._local_scalar_dense.default, ()),
    ):
        made = node.graph.call_function(target, (made, *args))
        made.meta.update(val=scalar, tensor_meta=_extract_tensor_metadata(scalar))
    made.prev.prev.kwargs = {"dtype": torch.float64}
    made.meta = {"val": node.meta["val"]}
    return made
