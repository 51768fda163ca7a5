"""Run the repairs: traced graph in, traced graph in the shared form out."""

from __future__ import annotations

import copy
import dataclasses

from ..configs import ExportConfig
from ..doors import Backend
from ..errors import TraceError
from ..trace.record import Traced
from ..workarounds import collect
from .assumed_output import return_assumed
from .complex_numbers import split_complex
from .fixes.symbolic_scalars import take_tensor_overloads
from .normal_form import to_normal_form

_SHARED = f"{__package__}.fixes"


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
    for old, new in zip(traced.program.graph.nodes, program.graph.nodes, strict=True):
        new.name = old.name  # a copy renames what shadows a builtin (`input` → `input_1`), the signature does not
    if backend.normal_form:
        traced = return_assumed(dataclasses.replace(traced, program=program))
    fired = dict(traced.fired)
    ran: list[str] = []
    for fix in fixes:
        changed = fix.apply(program)
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
            if fix.apply is take_tensor_overloads:  # what was taken apart may multiply by a size again
                fix.apply(program)
    return dataclasses.replace(traced, program=program, weights=weights, fired=fired)
