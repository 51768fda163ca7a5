"""Size arithmetic in the operators that the runtime has."""

from __future__ import annotations

import operator

from torch.export import ExportedProgram
from torch.fx import Node


def expand_powers(program: ExportedProgram) -> int:
    """Write a size to a whole power as products; torch folds `n * n` into `n ** 2`, for which there is no kernel.

    Returns how many were rewritten. The power stays where its exponent is not a small whole number.
    """
    count = 0
    for node in list(program.graph.nodes):
        if node.op != "call_function" or node.target not in (operator.pow, pow):
            continue
        base, exponent = node.args
        if not (isinstance(base, Node) and isinstance(exponent, int) and 2 <= exponent <= 8):
            continue
        product: Node = base
        with program.graph.inserting_before(node):
            for power in range(2, exponent + 1):
                product = program.graph.call_function(operator.mul, (product, base))
                product.meta["val"] = base.meta["val"] ** power
        node.replace_all_uses_with(product)
        program.graph.erase_node(node)
        count += 1
    return count
