"""Clean an ONNX graph without touching its weights."""

from __future__ import annotations

import onnx_ir as ir
from onnxscript import optimizer

# Folding a larger constant would copy weights into the graph and break their references.
_FOLD_INPUT_BYTES, _FOLD_OUTPUT_BYTES = 8 * 1024, 64 * 1024


def optimize(model: ir.Model) -> None:
    """Fold small constants, drop what is unused, inline functions; in place. Border names stay."""
    ports = [value.name for value in model.graph.inputs], [value.name for value in model.graph.outputs]
    shapes = [value.shape for value in model.graph.outputs]
    optimizer.optimize_ir(
        model,
        num_iterations=2,
        onnx_shape_inference=False,
        input_size_limit=_FOLD_INPUT_BYTES,
        output_size_limit=_FOLD_OUTPUT_BYTES,
    )
    for values, names in zip((model.graph.inputs, model.graph.outputs), ports, strict=True):
        for value, name in zip(values, names, strict=True):
            value.name = name
    for value, shape in zip(model.graph.outputs, shapes, strict=True):
        value.shape = shape
