"""Run the repairs: traced graph in, traced graph in the shared form out."""

from __future__ import annotations

import copy
import dataclasses

from torch.export import ExportedProgram

from ..configs import ExportConfig
from ..doors import Backend
from ..errors import TraceError
from ..trace.record import Traced
from ..workarounds import Workaround, collect
from .assumed_output import return_assumed
from .complex_numbers import split_complex
from .fixes.stated_defaults import state_defaults
from .fixes.symbolic_scalars import take_tensor_overloads
from .functional import marks_vmap
from .normal_form import to_normal_form

_SHARED = f"{__package__}.fixes"

#: Run once more after ops were taken apart: their parts may multiply by a size, or reduce without an axis.
_OF_PARTS = (take_tensor_overloads, state_defaults)


def repair(traced: Traced, backend: Backend, config: ExportConfig) -> Traced:
    """Apply the shared repairs and the backend's own to a copy of the traced graph.

    Raises:
        TraceError: If a repair leaves a graph that does not validate; names the repair and those that ran before it.
        LoweringError: If the graph cannot be written in core ops and those of `backend.ops`.
    """
    fixes = [
        fix
        for package in (_SHARED, backend.fixes)
        if package is not None
        for fix in collect(package)
        if fix.id not in config.disabled_workarounds
    ]
    program = copy.copy(traced.program)
    program._graph_module = copy.deepcopy(traced.program.graph_module)
    program._graph_signature = copy.deepcopy(traced.program.graph_signature)
    for old, new in zip(traced.program.graph.nodes, program.graph.nodes, strict=True):
        new.name = old.name  # a copy renames what shadows a builtin (`input` → `input_1`), the signature does not
    if backend.normal_form and marks_vmap(program.graph):
        program = program.run_decompositions({})
    if backend.normal_form:
        traced = return_assumed(dataclasses.replace(traced, program=program))
    fired = dict(traced.fired)
    ran: list[str] = []
    for fix in fixes:
        changed = _applied(fix, program)
        ran.append(fix.id)
        if changed:
            fired[fix.id] = fired.get(fix.id, 0) + changed
            try:
                program.graph.lint()
            except RuntimeError as error:
                raise TraceError(f"The repair {fix.id} broke the graph (repairs run: {', '.join(ran)}).") from error
    weights = traced.weights
    if backend.normal_form:
        program._state_dict, program._constants = dict(program.state_dict), dict(program.constants)
        weights = split_complex(program, weights, traced.spec.name)
        to_normal_form(program, traced.spec.name, backend.ops)
        for fix in fixes:
            if fix.apply in _OF_PARTS:
                _applied(fix, program)
    return dataclasses.replace(traced, program=program, weights=weights, fired=fired)


def _applied(fix: Workaround, program: ExportedProgram) -> int:
    """Apply a fix; an output that it replaces is replaced by name in the signature too."""
    with program.graph_module._set_replace_hook(program.graph_signature.get_replace_hook()):
        return int(fix.apply(program))
