"""The export door: a traced graph becomes an ExecuTorch program."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import torch
from executorch.exir import EdgeProgramManager
from executorch.exir.capture._config import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass

from ...errors import LoweringError
from ...repair.decompose import own_copy
from ...trace.dims import shape_env_of
from ...trace.record import Traced
from ..contract import Lowered
from .borders import Results, arrange_results, drop_constants, without_written_inputs
from .bounds import bounded_spec, bounds_applied, choose_bounds
from .config import ExecutorchConfig
from .counts import counts_of
from .cutting import cuts_in_place
from .execution import to_execution
from .guards import quick_guards
from .half_precision import calls_in_half_precision, check_half_precision
from .kernels import check_kernels, count_nodes, load_quantized_kernels, missing_operators, undelegated_ops
from .pte import write_program
from .recurrent import layers_as_steps, loops_of_any_batch, steps_as_scans
from .sample_counts import sample_counts
from .sizes import expand_powers
from .targets import find_target
from .upper_sizes import UpperSizes, exact_upper_bounds
from .views import unsqueezes_as_views
from .weights import compute_weights


def lower(traced: Traced, config: ExecutorchConfig) -> Lowered:
    """Decompose, delegate and plan one component.

    Args:
        traced: The component. It is not changed.
        config: Its config; `backend` and the `alloc_*` flags are read here.

    Returns:
        The `ExecutorchProgramManager`, with the finite bound of every dynamic axis in its spec, and in its notes how
        many operators were delegated.

    Raises:
        LoweringError: For an operator without a kernel, or with one that refuses 16-bit numbers; names it, the component and the model's source line.
        UnsupportedModelError: If the target refuses the component.
    """
    target = find_target(config.backend)
    target.check(traced)
    program = own_copy(traced.program)
    layers_as_steps(program)
    compute_weights(program)
    counted = sample_counts(program, {p: traced.samples[name] for p, name in _input_names(traced).items()})
    bounds = choose_bounds(program, traced.spec, traced.symbols, config.dynamic_shapes is not None, counted)
    with bounds_applied(program, bounds), exact_upper_bounds(counts_of(program)), quick_guards(shape_env_of(program)):
        with cuts_in_place():
            edge = target.delegate(program)
        steps_as_scans(edge.exported_program())
        expand_powers(edge.exported_program())
        unsqueezes_as_views(edge.exported_program())
        drop_constants(edge.exported_program())
        results = arrange_results(edge.exported_program(), _input_names(traced), in_place=not config.alloc_graph_input)
        counts = count_nodes(edge.exported_program())
        own_kernels = undelegated_ops(edge.exported_program())
        quantized = load_quantized_kernels(edge.exported_program())
        halves = calls_in_half_precision(edge.exported_program())
        planned = _planned(edge, config, traced.spec.name, results)
    check_kernels(planned.exported_program(), traced.spec.name)
    if halves and config.backend == "xnnpack":
        check_half_precision(planned, halves, [traced.samples[t.name] for t in traced.spec.inputs], traced.spec.name)
    if not counts["delegated"]:
        warnings.warn(
            f"{config.backend} took no operator of {traced.spec.name!r}: all of it runs in ExecuTorch's own kernels.",
            stacklevel=2,
        )
    plan = planned.executorch_program.execution_plan[0]
    results = results.in_order(plan, [tensor.name for tensor in traced.spec.inputs])
    spec = bounded_spec(traced.spec, traced.symbols, bounds)
    options = {**spec.options, "backend": config.backend, "results": results.as_json(), **_libraries(quantized)}
    spec = dataclasses.replace(spec, options=options)
    notes = {
        "backend": config.backend,
        **counts,
        "undelegated_ops": dict(own_kernels),
        "arena_bytes": arena_bytes(planned),
        **_libraries(quantized),
    }
    return Lowered(spec=spec, program=planned, notes=notes)


def _libraries(quantized: bool) -> dict[str, list[str]]:
    """What a runtime must be linked with besides its own kernels and the delegate."""
    return {"kernel_libraries": ["executorch_kernels_quantized"]} if quantized else {}


def _input_names(traced: Traced) -> dict[str, str]:
    """The component's input name of each placeholder that is a tensor."""
    values = {node.name: node.meta.get("val") for node in traced.program.graph.nodes if node.op == "placeholder"}
    tensors = [
        name for name in traced.program.graph_signature.user_inputs if isinstance(values.get(name), torch.Tensor)
    ]
    return {name: tensor.name for name, tensor in zip(tensors, traced.spec.inputs, strict=True)}


def _backend_config(plan: MemoryPlanningPass, results: Results) -> ExecutorchBackendConfig:
    passes = [without_written_inputs] if results.in_place else []
    return ExecutorchBackendConfig(
        memory_planning_pass=plan,
        passes=passes,
        sym_shape_eval_pass=UpperSizes(),
        # In the caller's memory, a cache update writes the new rows; otherwise it copies the whole cache there and
        # back. In planned memory the planner reuses an input's place after its last reader (executorch 1.5.1), so not.
        run_reinplace_pass=results.in_place,
    )


def arena_bytes(planned: Any) -> int:
    """The memory that the runtime takes for activations when it loads the method."""
    return int(sum(planned.executorch_program.execution_plan[0].non_const_buffer_sizes))


def _planned(edge: EdgeProgramManager, config: ExecutorchConfig, component: str, results: Results) -> Any:
    """Choose kernels, plan memory and serialize."""
    plan = MemoryPlanningPass(
        alloc_graph_input=config.alloc_graph_input,
        alloc_graph_output=config.alloc_graph_output,
        alloc_mutable_buffers=config.alloc_mutable_buffers,
    )
    try:
        with loops_of_any_batch():
            planned = to_execution(edge, _backend_config(plan, results))
    except RuntimeError as error:
        if "out variants" not in str(error):
            raise
        operator = missing_operators(edge.exported_program(), str(error))
        raise LoweringError(
            f"ExecuTorch has no kernel for {operator}, which {component!r} needs; change the model's code, or add a "
            "repair that rewrites it."
        ) from error
    # The manager's own bytes hold a tied weight twice; `buffer`, `save` and `write_to_file` read this attribute.
    if not planned._tensor_data:
        planned._pte_data = write_program({"forward": planned})
    return planned
