"""The run door: read the graph back and call its ops one after the other."""

import functools
import json
import math
import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from transformers_exporters.artifact.spec import ComponentSpec


class InterpretedSession:
    """One opened graph; takes and returns torch tensors by name."""

    arrays = "torch"

    def __init__(self, spec: ComponentSpec, graph: Mapping[str, Any], weights: Mapping[str, torch.Tensor]) -> None:
        self.spec, self._graph, self._weights = spec, graph, weights

    def run(self, feeds: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Outputs by name; the feeds have been checked and cast."""
        values: dict[str, Any] = {node: self._weights[name] for node, name in self._graph["weights"].items()}
        values |= {node: feeds[t.name] for node, t in zip(self._graph["inputs"], self.spec.inputs, strict=True)}
        with torch.no_grad():
            for name, op, args, kwargs in self._graph["nodes"]:
                values[name] = _function(op)(*_value(args, values), **_value(kwargs, values))
        return {t.name: values[node] for node, t in zip(self._graph["outputs"], self.spec.outputs, strict=True)}


def open_session(directory: Path, component: ComponentSpec, **runtime_options: Any) -> InterpretedSession:
    """Open one component of an artifact."""
    graph, weights = (directory / file for file in component.files)
    return InterpretedSession(component, json.loads(graph.read_text(encoding="utf-8")), load_file(weights))


def _function(op: str) -> Any:
    root, *rest = op.split(".")
    return functools.reduce(getattr, rest, {"torch": torch, "operator": operator, "math": math}[root])


def _value(argument: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(argument, list):
        return [_value(item, values) for item in argument]
    if not isinstance(argument, dict):
        return argument
    ((kind, content),) = argument.items()
    if kind == "dict":
        return {key: _value(item, values) for key, item in content.items()}
    return {"node": values.get, "torch": lambda n: getattr(torch, n), "device": torch.device}[kind](content)
