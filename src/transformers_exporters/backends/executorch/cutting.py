"""Cut the delegated parts out of a graph without copying all of it for each.

executorch (1.5.1) puts a call in the place of a part and then writes the whole graph anew in sorted order, with its Python
code: three fifths of a lowering where a graph has some hundred parts. Only what reads a result and stands before the call
is out of order, so that is moved.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from executorch.exir import lowered_backend_module
from torch.fx import GraphModule, Node


@contextmanager
def cuts_in_place() -> Iterator[None]:
    """While held, cutting a part out moves the nodes that have to move, and keeps the order of all others."""
    with mock.patch.object(lowered_backend_module, "legalize_graph", readers_behind_calls):
        yield


def readers_behind_calls(module: GraphModule) -> GraphModule:
    """Move what depends on a called part and stands before the call, directly behind the call's results.

    Args:
        module: All that is out of order in its graph depends on a call of a part. Changed in place.
    """
    for call in module.graph.find_nodes(op="call_module"):
        results = [call, *(user for user in call.users if user.target is operator.getitem)]
        last = max(results)
        for node in sorted(_early_readers(results, call)):
            last.append(node)
            last = node
    return module


def _early_readers(results: list[Node], call: Node) -> set[Node]:
    """What depends on `results`, directly or not, and stands before `call`."""
    found: set[Node] = set()
    waiting = list(results)
    while waiting:
        early = {user for user in waiting.pop().users if user < call and user not in found}
        found |= early
        waiting += early
    return found
