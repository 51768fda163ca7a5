"""Hand an ONNX component to a tool that works on whole models, and take the result back."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import onnx_ir as ir
import torch
from onnx_ir.passes.common import RemoveUnusedNodesPass

from ..artifact.weights import WeightRef
from ..doors import find_backend
from .onnx_weights import add_initializer
from .values import Values

if TYPE_CHECKING:
    from ..backends.contract import Lowered

# What is smaller stays in the graph file.
_INLINE_BYTES = 1024


def quantized_by(lowered: Lowered, values: Values, quantize: Callable[[Path, Path], None]) -> Lowered:
    """A component as `quantize(source file, target file)` leaves it.

    The values are in memory once as they were and once quantized.
    """
    model: ir.Model = lowered.program.model
    folded = _fold_transposes(model, values.of(lowered))
    lowered = values.placed(lowered, folded)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        names = find_backend("onnx").load("save")([lowered], directory)[lowered.spec.name]
        target = directory / "quantized.onnx"
        quantize(directory / names[0], target)
        made = ir.load(target)
        ir.external_data.load_to_model(made)
    lowered.program.model = made
    return dataclasses.replace(lowered, weights=_weights(made, values))


def _fold_transposes(model: ir.Model, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Store a transposed weight the other way round: the tools look for the weight itself at a MatMul.

    Returns:
        The new initializers by name.
    """
    made: dict[str, torch.Tensor] = {}
    for node in list(model.graph):
        source = node.inputs[0] if node.op_type == "Transpose" and not node.domain else None
        if source is None or not source.is_initializer() or source.name not in weights:
            continue
        permutation = node.attributes.get("perm")
        tensor = weights[str(source.name)]
        axes = list(permutation.as_ints()) if permutation is not None else list(range(tensor.dim()))[::-1]
        name = f"{source.name}.permuted.{'.'.join(map(str, axes))}"
        turned = add_initializer(model, name, tensor.permute(axes).contiguous(), made)
        ir.convenience.replace_all_uses_with(node.outputs[0], turned)
    RemoveUnusedNodesPass()(model)
    return made


def _weights(model: ir.Model, values: Values) -> dict[str, WeightRef]:
    """References to the initializers, equal ones of several components to one tensor."""
    found: dict[str, WeightRef] = {}
    for name, value in model.graph.initializers.items():
        constant = value.const_value
        if constant is None or constant.nbytes < _INLINE_BYTES:
            continue
        found[name] = values.shared(constant)
    return found
