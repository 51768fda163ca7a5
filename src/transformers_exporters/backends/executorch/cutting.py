"""Cut the delegated parts out of a graph without copying all of it for each.

executorch (1.5.1) puts a call in the place of a part and then writes the whole graph anew in sorted order, with its Python
code: three fifths of a lowering where a graph has some hundred parts. Only what reads a result and stands before the call
is out of order, so that is moved. A weight that several parts read is copied, values and all, once for every reader, with
the graph's code written anew and checked each time: here each part has an input of its own for the same tensor.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from executorch.exir import lowered_backend_module
from executorch.exir.backend import backend_api
from torch.export import ExportedProgram
from torch.export.graph_signature import TensorArgument
from torch.fx import GraphModule, Node


@contextmanager
def cuts_in_place() -> Iterator[None]:
    """While held, cutting a part out moves the nodes that have to move, and keeps the order of all others."""
    with (
        mock.patch.object(lowered_backend_module, "legalize_graph", readers_behind_calls),
        mock.patch.object(backend_api, "_maybe_duplicate_constant_nodes", weights_of_its_own),
    ):
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


def weights_of_its_own(program: ExportedProgram, tag: str) -> None:
    """Leave the weights of one part to it, and give whatever else reads them an input for the same tensor.

    Args:
        program: Its nodes have the tag of their part as `delegation_tag`. Changed in place.
        tag: The part.

    Raises:
        RuntimeError: If the backend has said of such a weight that it may be there but once.
    """
    specs = program.graph_signature.input_specs
    for place, node in reversed(list(enumerate(program.graph.find_nodes(op="placeholder")))):
        readers: dict[str | None, list[Node]] = {}
        for user in node.users:
            readers.setdefault(user.meta.get("delegation_tag"), []).append(user)
        readers.pop(tag, None)
        if node.meta.get("delegation_tag") != tag or not readers:
            continue
        if node.meta.get("no_copy"):
            raise RuntimeError(f"{node} is read by the part {tag} and outside of it, and its backend allows no copy")
        for offset, (other, users) in enumerate(readers.items()):
            with program.graph.inserting_before(node):
                again = program.graph.placeholder(f"{node.name}_of_{other or 'the_rest'}")
            again.meta = {**node.meta, "delegation_tag": other}
            if other is None:
                del again.meta["delegation_tag"]
            for user in users:
                user.replace_input_with(node, again)
            spec = copy.copy(specs[place])
            spec.arg = TensorArgument(again.name)
            specs.insert(place + offset, spec)
