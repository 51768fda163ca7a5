"""The converter's passes over the graph, without tracing all of it anew.

`torch.onnx.export` (2.13) runs `run_decompositions`, which traces a graph twice, and computes every value again to find the
types that an op promotes its inputs to: three quarters of an export of Grounding DINO. Here the few nodes that need it are
taken apart alone, and values that the trace has found are taken from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from torch.export import ExportedProgram
from torch.fx import Node
from torch.onnx._internal.exporter import _decomp, _fx_passes
from torch.onnx._internal.fx.passes import type_promotion

from ...repair.decompose import decompose, own_copy


@contextmanager
def quick_passes() -> Iterator[None]:
    """While held, `torch.onnx.export` uses the passes of this file."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(_fx_passes, "decompose_with_registry", _decomposed))
        stack.enter_context(mock.patch.object(type_promotion, "_TypePromotionInterpreter", _KnownValues))
        yield


def _decomposed(program: ExportedProgram, registry: Any) -> ExportedProgram:
    """Core aten but for the ops that have a translation."""
    known = set(_decomp.get_onnx_implemented_overloads(registry))
    return decompose(own_copy(program), _decomp.create_onnx_friendly_decomposition_table(known), known)


class _KnownValues(type_promotion._TypePromotionInterpreter):
    """Inserts casts; computes the values of new and changed nodes only."""

    _at: Node
    _changed = False

    def run_node(self, n: Node) -> Any:
        self._at = n
        return super().run_node(n)

    def _run_node_and_set_meta(self, node: Node) -> Any:
        self._changed = True
        try:
            return super()._run_node_and_set_meta(node)
        finally:
            self._changed = False

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if not self._changed and "val" in self._at.meta:
            return self._at.meta["val"]
        return super().call_function(target, args, kwargs)
