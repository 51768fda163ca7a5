"""The weights of a graph that is rebuilt: which it had before, which are new, and what each is called."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Graph, Node

from ..prepare.references import tensor_bytes
from .weights import HELD

#: Equal tensors that tools made for several components: stored once, as the weights are that they stand for.
_SHARED: WeakValueDictionary[Any, torch.Tensor] = WeakValueDictionary()


class GraphState:
    """The weights of a new graph: a placeholder for each distinct tensor."""

    def __init__(self, program: ExportedProgram, graph: Graph, mode: FakeTensorMode) -> None:
        self._old = {id(held_tensor(program, spec)): spec for _, spec in program_inputs(program) if spec.kind in HELD}
        self._graph = graph
        self.mode = mode
        self.nodes: dict[int, Node] = {}
        self.specs: list[InputSpec] = []
        self.state: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}

    def add(self, attribute: str, tensor: torch.Tensor) -> Node:
        """The placeholder of a tensor; one of the program keeps its name, a new one is named after its attribute."""
        if id(tensor) in self.nodes:
            return self.nodes[id(tensor)]
        spec = self._old.get(id(tensor)) or _new_spec(attribute, {s.target for s in self.specs})
        value = tensor if id(tensor) in self._old else _shared(tensor.detach())
        node = self._graph.placeholder(f"w_{len(self.specs)}")
        node.meta = {"val": self.mode.from_tensor(value, static_shapes=True)}
        self.specs.append(dataclasses.replace(spec, arg=TensorArgument(node.name)))
        table = self.constants if spec.kind is InputKind.CONSTANT_TENSOR or spec.persistent is False else self.state
        table[str(spec.target)] = value
        self.nodes[id(tensor)] = node
        return node


def program_inputs(program: ExportedProgram) -> Iterator[tuple[Node, InputSpec]]:
    """Placeholders and what they are, in order."""
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    return zip(placeholders, program.graph_signature.input_specs, strict=True)


def held_tensor(program: ExportedProgram, spec: InputSpec) -> Any:
    """The tensor that a placeholder stands for."""
    name = str(spec.target)
    return program.state_dict[name] if name in program.state_dict else program.constants[name]


def _new_spec(attribute: str, taken: set[str | None]) -> InputSpec:
    name = attribute.lstrip("_")
    while name in taken:
        name += "_"
    return InputSpec(InputKind.BUFFER, TensorArgument(name), name, persistent=True)


def _shared(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or an equal one that was met before."""
    digest = hashlib.sha256(tensor_bytes(tensor)).digest()
    return _SHARED.setdefault((digest, tensor.dtype, tuple(tensor.shape)), tensor.contiguous())
