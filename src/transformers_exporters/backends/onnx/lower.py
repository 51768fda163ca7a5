"""`Traced` → `torch.onnx.ONNXProgram` → files."""

from __future__ import annotations

import copy
import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass
from torch.export import ExportedProgram

from ...artifact.spec import ComponentSpec
from ...artifact.weights import WeightRef
from ...errors import LoweringError
from ...prepare.references import has_values
from ...quiet import quiet
from ...repair.source_line import source_line
from ...trace.record import Traced
from ..contract import Lowered
from .config import OnnxConfig
from .in_place import prove_in_place
from .names import name_values
from .optimize import optimize
from .quick_passes import quick_passes
from .store import write_components
from .translations import translation_table

logger = logging.getLogger(__name__)


def lower(traced: Traced, config: OnnxConfig) -> Lowered:
    """Translate a traced component to ONNX.

    Weights whose values were never loaded stay references: the program's initialisers then have shapes only, and `save`
    points them into the weights file.

    Raises:
        LoweringError: If an op has no translation; names the op, the component and the model source line.
    """
    try:
        # The converter prints progress even when told not to, and warns of each op of torchvision that it lacks.
        with quiet("torch.onnx._internal.exporter._registration", logging.ERROR), quick_passes():
            program = torch.onnx.export(
                _unguarded(traced.program),
                (),
                dynamo=True,
                optimize=False,
                opset_version=config.opset_version,
                custom_translation_table=translation_table(),
                verbose=False,
            )
    except Exception as error:  # the converter raises errors of onnxscript, onnx_ir and torch alike
        raise LoweringError(_explain(traced, error)) from error
    assert program is not None
    name_values(program.model, traced.spec)
    rewritten = optimize(program.model, traced.weights.keys()) if config.optimize else {}
    for name, reference in traced.weights.items():
        if name in program.model.graph.initializers and not has_values(reference):
            program.model.graph.initializers[name].const_value = None  # built on `meta`: shapes only
    _drop_traces(program.model)
    _say_missing_kernels(traced.spec)
    options = {**traced.spec.options, "in_place": list(prove_in_place(program.model, traced.spec))}
    spec = dataclasses.replace(traced.spec, options=options)
    return Lowered(
        spec=spec,
        program=program,
        weights=_held_by(program.model, traced.weights),
        notes={"graph_fixes": rewritten} if rewritten else {},
    )


def _unguarded(program: ExportedProgram) -> ExportedProgram:
    """The same graph without the guards on its inputs.

    The converter traces anew, and a guard that holds a `max` is a question about the traced size there: `x[-3:]` of two rows
    fixed the axis at two. The session checks what a graph may be fed.
    """
    free = copy.copy(program)
    free._guards_code = []
    return free


def save(components: Sequence[Lowered], directory: Path, weights: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Write one `.onnx` a component and one safetensors file with the weights of all of them.

    Args:
        components: What `lower` returned.
        directory: An existing directory.
        weights: Unused: references carry their own files.

    Returns:
        File names relative to `directory`, by component; the graph first.
    """
    return write_components(components, directory)


def _drop_traces(model: ir.Model) -> None:
    """The converter writes each node's torch source and stack trace into the graph: most of a file without weights."""
    ClearMetadataAndDocStringPass()(model)
    for value in ir.convenience.create_value_mapping(model.graph).values():
        value.metadata_props.clear()


def _held_by(model: ir.Model, weights: Mapping[str, WeightRef]) -> dict[str, WeightRef]:
    return {name: ref for name, ref in weights.items() if name in model.graph.initializers}


def _explain(traced: Traced, error: BaseException) -> str:
    """The op without a translation and the line that called it, read from the converter's chain of errors."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    said = " | ".join(str(item).strip().splitlines()[0] for item in reversed(chain) if str(item).strip())
    for node in traced.program.graph.nodes:
        if node.op == "call_function" and str(node.target) in str([str(item) for item in chain]):
            where = source_line(node)
            return f"{traced.spec.name!r} cannot be written as ONNX: {node.target} (at {where}): {said[:300]}."
    return f"{traced.spec.name!r} cannot be written as ONNX: {said[:600]}."


def _say_missing_kernels(spec: ComponentSpec) -> None:
    if any(tensor.dtype == "bfloat16" for tensor in (*spec.inputs, *spec.outputs)):
        logger.warning(
            "%s is a bfloat16 graph: ONNX Runtime's CPU provider has no bfloat16 kernels, so run it on CUDA "
            "or export the model in float32 or float16.",
            spec.name,
        )
