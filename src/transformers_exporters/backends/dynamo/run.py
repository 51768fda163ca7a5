"""Run a saved PyTorch program. torch is this engine, so this run door imports it."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export.passes import move_to_device_pass
from torch.fx.graph import CodeGen

from ...artifact.spec import ComponentSpec, Json
from ...errors import ArtifactError
from ...exclusive import EXCLUSIVE
from ...runtime.assumed import MARK, broken


class DynamoSession:
    """One loaded program; tensors in, tensors out.

    A program that writes into its inputs (a static cache) writes into the very tensors that it is given.
    """

    arrays = "torch"

    def __init__(self, spec: ComponentSpec, call: Any, device: torch.device | None) -> None:
        self.spec = spec
        self._call = call
        self._device = device
        self._leaves = _flat_order(spec.input_structure)
        self._outputs = _flat_order(spec.output_structure)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name. The tensors belong to the caller, except where the program returns a mutated input itself."""
        tensors = [feeds[tensor.name] for tensor in self.spec.inputs]
        if self._device is not None:
            tensors = [tensor.to(self._device) for tensor in tensors]
        flat = [tensors[leaf] if isinstance(leaf, int) else leaf[0] for leaf in self._leaves]
        try:
            with torch.no_grad():
                outputs = self._call(flat)
        except (RuntimeError, IndexError) as error:
            # A list that was as long as the sample's is read before the assertion about its length.
            if MARK in str(error) or (isinstance(error, IndexError) and self.spec.options.get("assumed")):
                raise broken(self.spec) from error
            raise
        return {
            self.spec.outputs[leaf].name: value
            for leaf, value in zip(self._outputs, outputs, strict=True)
            if isinstance(leaf, int)
        }


def open_session(
    directory: Path,
    component: ComponentSpec,
    *,
    device: str | torch.device | None = None,
    trust_remote_code: bool = False,
) -> DynamoSession:
    """Open one component.

    Args:
        directory: The artifact.
        component: The component's border, with its files.
        device: Where to run, e.g. `"cuda"`; None leaves the program where it was exported.
        trust_remote_code: A `.pt2` may carry pickled Python objects, which run code when loaded.

    Raises:
        ArtifactError: Without `trust_remote_code`, or if the file is not a saved program.
    """
    if not trust_remote_code:
        raise ArtifactError(
            f"{component.files[0]} may carry pickled Python objects: pass trust_remote_code=True if you trust its origin."
        )
    if component.options.get("quantized_ops"):
        importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers the operators that the program has
    target = None if device is None else torch.device(device)
    compiled = next((name for name in component.files if name.endswith(".aoti.pt2")), None)
    if compiled is not None:
        package = torch._inductor.aoti_load_package(str(directory / compiled))
        return DynamoSession(component, lambda flat: pytree.tree_leaves(package(*flat)), target)
    classes = _import_classes(component)
    try:
        with EXCLUSIVE, torch.serialization.safe_globals(classes), _without_broken_message():
            program = torch.export.load(directory / component.files[0])
    except (RuntimeError, ValueError, OSError) as error:
        raise ArtifactError(f"{component.files[0]} is not a program that this torch can load: {error}.") from error
    for name in component.files:
        if name.endswith(".weights.json"):
            _attach(program, directory, directory / name)
    if target is not None:
        program = move_to_device_pass(program, target)
    module = program.module(check_guards=False)
    # The graph's own leaves go in and come out. Built into its object and flattened again, an output that the model filled in
    # another order than its class lists its fields (InternVL sets `pooler_output` last) would change its order.
    module.graph.set_codegen(CodeGen())
    module.recompile()

    def call(flat: list[Any]) -> list[Any]:
        # Not `module(...)`: its hook solves the shapes' equations with sympy at every call, half of a small model's step
        # (torch 2.13); the feeds are checked against the component's border already.
        return list(module.forward(*flat))

    return DynamoSession(component, call, target)


@contextmanager
def _without_broken_message() -> Iterator[None]:
    """While held, torch does not say that it read the example inputs with pickle.

    torch 2.13 gives that message one argument of two (`deserialize_torch_artifact`), so that logging it fails; the caller
    has agreed to pickle by `trust_remote_code`.
    """
    logger = logging.getLogger("torch._export.serde.serialize")

    def passes(record: logging.LogRecord) -> bool:
        return "Fallback to weights_only=False" not in str(record.msg)

    logger.addFilter(passes)
    try:
        yield
    finally:
        logger.removeFilter(passes)


def _attach(program: torch.export.ExportedProgram, directory: Path, names: Path) -> None:
    """Put the shared weights into a program that was saved without values."""
    from safetensors import safe_open

    mapping: dict[str, str] = json.loads(names.read_text(encoding="utf-8"))
    with safe_open(directory / "model.safetensors", framework="pt") as file:
        for name, stored in mapping.items():
            value = file.get_tensor(stored)
            parameter = isinstance(program.state_dict[name], torch.nn.Parameter)
            program.state_dict[name] = torch.nn.Parameter(value, requires_grad=False) if parameter else value


def _import_classes(component: ComponentSpec) -> list[Any]:
    """Import and register the classes of a saved program's inputs and outputs, or torch cannot rebuild its structure."""
    from ...hf.plain_values import import_class
    from ...hf.pytrees import growing_layers, is_registered, register_known_caches, register_pytree_node

    register_known_caches()
    classes: list[Any] = growing_layers()
    for tree in (component.input_structure, component.output_structure):
        for path in _object_paths(tree):
            try:
                cls = import_class(path)
            except (ImportError, AttributeError) as error:
                raise ArtifactError(
                    f"The artifact returns a {path}, which cannot be imported here: {error}."
                ) from error
            classes.append(cls)
            if not is_registered(cls):
                register_pytree_node(cls)
    return classes


def _object_paths(tree: Json) -> Iterator[str]:
    if isinstance(tree, dict):
        if "object" in tree:
            yield tree["object"]
        for child in tree.values():
            yield from _object_paths(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from _object_paths(child)


def _flat_order(tree: Json) -> list[Any]:
    """Leaves in pytree order: a tensor's number, or a constant in a 1-tuple."""
    order: list[Any] = []

    def visit(node: Json) -> None:
        if "leaf" in node:
            order.append(node["leaf"])
        elif "value" in node:
            order.append((node["value"],))
        else:
            children: Any = next((node[kind] for kind in ("list", "tuple", "dict", "fields") if kind in node), [])
            for child in children.values() if isinstance(children, dict) else children:
                visit(child)

    visit(tree)
    return order
