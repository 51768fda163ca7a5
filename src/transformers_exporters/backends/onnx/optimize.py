"""Make an ONNX graph small and fast without touching its weights."""

from __future__ import annotations

from collections.abc import Set

import onnx_ir as ir
from onnx_ir.passes import common as passes
from onnxscript.optimizer import fold_constants_ir

from .graph_fixes import GRAPH_FIXES

__all__ = ["optimize"]

# Folding more would copy weights into the graph and break their references.
_FOLD_INPUT_ELEMENTS, _FOLD_OUTPUT_ELEMENTS = 2 * 1024, 16 * 1024
# Equal constants up to this size become one.
_SMALL_ELEMENTS = 1024


def optimize(model: ir.Model, weights: Set[str] = frozenset()) -> dict[str, int]:
    """Fold small constants, rewrite what is costly, share what is computed twice, drop what is unused; in place.

    Border names and shapes stay.

    Args:
        model: The converted graph.
        weights: Names of initialisers whose values lie elsewhere: they are neither read nor merged.

    Returns:
        How many places each graph fix changed.
    """
    border = [*model.graph.inputs, *model.graph.outputs]
    names = [value.name for value in border]
    shapes = [value.shape for value in model.graph.outputs]
    if model.functions:
        passes.InlinePass()(model)
    _fold(model, weights)
    changed = {name: fix(model.graph) for name, fix in GRAPH_FIXES.items()}
    passes.RemoveUnusedNodesPass()(model)
    passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    passes.LiftSubgraphInitializersToMainGraphPass()(model)
    _share_constants(model.graph, weights)
    passes.CommonSubexpressionEliminationPass()(model)
    passes.OutputFixPass()(model)
    _restore_names(model, names)
    passes.NameFixPass()(model)
    for value, shape in zip(model.graph.outputs, shapes, strict=True):
        value.shape = shape
    return {name: count for name, count in changed.items() if count}


def _fold(model: ir.Model, weights: Set[str]) -> None:
    def should_fold(node: ir.Node) -> bool | None:
        known = [value for value in node.inputs if value is not None]
        if any(value.is_initializer() and value.name in weights for value in known):
            return False
        sizes = [value.const_value.size for value in known if value.const_value is not None]
        # By itself the pass folds every Transpose, however large: that is a copy of each Linear's weight.
        return False if any(size > _FOLD_INPUT_ELEMENTS for size in sizes) else None

    for _ in range(2):  # what the first round folds makes more foldable
        done = fold_constants_ir(
            model,
            input_size_limit=_FOLD_INPUT_ELEMENTS,
            output_size_limit=_FOLD_OUTPUT_ELEMENTS,
            should_fold=should_fold,
        )
        if not done.modified:
            break
    passes.RemoveUnusedNodesPass()(model)


def _share_constants(graph: ir.Graph, weights: Set[str]) -> None:
    """Equal small constants become one, so that what is computed from them is recognised as equal."""
    first: dict[tuple[object, ...], ir.Value] = {}
    for name, value in list(graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or name in weights or tensor.size > _SMALL_ELEMENTS or value.is_graph_output():
            continue
        kept = first.setdefault((tensor.dtype, tuple(tensor.shape), tensor.tobytes()), value)
        if kept is not value:
            ir.convenience.replace_all_uses_with(value, kept)
            graph.initializers.pop(name)


def _restore_names(model: ir.Model, names: list[str | None]) -> None:
    """Give the border its names back, and whoever took one in between another."""
    border = [*model.graph.inputs, *model.graph.outputs]
    wanted, own = set(names), set(map(id, border))
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        for value in node.outputs:
            if value.name in wanted and id(value) not in own:
                value.name = f"{value.name}_inner"
    for value, name in zip(border, names, strict=True):
        if value.name != name:
            value.name = name
