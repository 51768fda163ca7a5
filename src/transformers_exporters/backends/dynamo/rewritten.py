"""A copy of a program, over the same weights, whose graph may be changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from torch.export import ExportedProgram


@contextmanager
def rewritten(program: ExportedProgram) -> Iterator[ExportedProgram]:
    """While held, replacing a node of the copy renames it in the signature too; then the graph is checked."""
    made = copy.copy(program)
    made._graph_module = copy.deepcopy(program.graph_module)
    made._graph_signature = copy.deepcopy(program.graph_signature)
    for old, new in zip(program.graph.nodes, made.graph.nodes, strict=True):
        new.name = old.name  # a copy renames what shadows a builtin, the signature does not
    with made.graph_module._set_replace_hook(made.graph_signature.get_replace_hook()):
        yield made
    made.graph.lint()
    made.graph_module.recompile()
