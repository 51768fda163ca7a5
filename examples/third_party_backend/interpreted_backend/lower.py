"""The export door: a traced graph as JSON, its weights as safetensors."""

import json
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch.export.graph_signature import InputKind, OutputKind

from transformers_exporters.artifact.weights import CheckpointRef, TensorRef
from transformers_exporters.backends.contract import Lowered
from transformers_exporters.errors import LoweringError
from transformers_exporters.trace.record import Traced

from .config import InterpretedConfig


def lower(traced: Traced, config: InterpretedConfig) -> Lowered:
    """Write every node as `[name, op, args, kwargs]`; the weights stay references until `save`."""
    signature = traced.program.graph_signature
    names = [node.name for node in traced.program.graph.nodes if node.op == "placeholder"]
    kinds = list(zip(names, signature.input_specs, strict=True))
    returned = traced.program.graph.output_node().args[0]
    graph = {
        "weights": {name: spec.target for name, spec in kinds if spec.kind is not InputKind.USER_INPUT},
        # A flag or None among the user inputs is part of the graph already.
        "inputs": [n for n, spec in kinds if spec.kind is InputKind.USER_INPUT and hasattr(spec.arg, "name")],
        "nodes": [
            [node.name, _op(node.target, traced.spec.name), _plain(node.args), _plain(node.kwargs)]
            for node in traced.program.graph.nodes
            if node.op == "call_function"
        ],
        "outputs": [
            node.name
            for node, spec in zip(returned, signature.output_specs, strict=True)
            if spec.kind is OutputKind.USER_OUTPUT and isinstance(node, torch.fx.Node)
        ],
    }
    return Lowered(spec=traced.spec, program=json.dumps(graph, indent=config.indent), weights=traced.weights)


def save(components: Sequence[Lowered], directory: Path, weights: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Write `<component>.json` and `<component>.safetensors`; returns the file names by component, the graph first."""
    files = {}
    for component in components:
        graph, values = f"{component.spec.name}.json", f"{component.spec.name}.safetensors"
        (directory / graph).write_text(component.program, encoding="utf-8")
        save_file({name: _values(ref) for name, ref in component.weights.items()}, directory / values)
        files[component.spec.name] = (graph, values)
    return files


def _values(reference: TensorRef | CheckpointRef) -> torch.Tensor:
    if isinstance(reference, TensorRef):
        return reference.tensor.detach().clone(memory_format=torch.contiguous_format)
    with safe_open(reference.file, framework="pt") as checkpoint:
        return checkpoint.get_tensor(reference.key)


def _op(target: Any, component: str) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    module = "operator" if getattr(operator, target.__name__, None) is target else target.__module__
    if module not in ("operator", "math", "torch"):
        raise LoweringError(f"The interpreted backend has no op {target}, which {component!r} needs.")
    return f"{module}.{target.__name__}"


def _plain(value: Any) -> Any:
    """A node's argument as JSON: other nodes by name, torch's constants by theirs."""
    if isinstance(value, torch.fx.Node):
        return {"node": value.name}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {"dict": {key: _plain(item) for key, item in value.items()}}
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": value.type}
    return value
