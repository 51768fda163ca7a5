"""Regions of a graph that only say whether gradients are recorded, or that autocast is off."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from ...workarounds import Workaround

#: Where the region's graph is among the arguments of each operator; its inputs follow.
_REGIONS = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}
#: Where `wrap_with_autocast` says whether it is on.
_ENABLED = 2


def inline_regions(program: ExportedProgram) -> int:
    """Put what a region computes in the place of its call, regions inside of it included; returns how many there were."""
    module, count = program.graph_module, 0
    while calls := [node for node in module.graph.nodes if _changes_nothing(node)]:
        for call in calls:
            _inline(module, call)
        count += len(calls)
    return count


def _changes_nothing(node: Node) -> bool:
    name = getattr(node.target, "__name__", "")
    if node.op != "call_function" or name not in _REGIONS:
        return False
    # Where autocast is on, the operators of the region are those before their inputs are cast.
    return name != "wrap_with_autocast" or node.args[_ENABLED] is False


def _inline(module: GraphModule, call: Node) -> None:
    place = _REGIONS[call.target.__name__]  # type: ignore[union-attr]
    holder: Any = call.args[place]
    region: GraphModule = getattr(module, holder.target)
    feeds = iter(call.args[place + 1 :])
    known: dict[Node, Any] = {}
    results: Any = None
    for inner in region.graph.nodes:
        if inner.op == "placeholder":
            known[inner] = next(feeds)
        elif inner.op == "output":
            results = map_arg(inner.args[0], known.__getitem__)
        else:
            with module.graph.inserting_before(call):
                known[inner] = module.graph.node_copy(inner, known.__getitem__)
            if inner.op == "get_attr":  # a region in the region
                name = f"{holder.target}_{inner.target}"
                setattr(module, name, getattr(region, inner.target))
                known[inner].target = name
    for user in list(call.users):
        user.replace_all_uses_with(results[user.args[1]])
        module.graph.erase_node(user)
    module.graph.erase_node(call)
    if not holder.users:
        module.graph.erase_node(holder)


WORKAROUND = Workaround(
    reason="`with torch.autocast(..., enabled=False)` around rotary angles and `torch.enable_grad()` become calls of subgraphs, "
    "which OpenVINO's frontend has no rule for, and for which the other backends trace the whole graph again.",
    upstream="none: torch.export keeps the regions so that a program can be trained",
    targets=("higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast"),
    apply=inline_regions,
)
