"""Load a saved artifact and run it with numpy alone: no torch, no transformers, no model code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..artifact.manifest import Manifest
from ..artifact.spec import ComponentSpec, TensorSpec
from ..artifact.store import open_artifact
from ..artifact.structure import flatten_kwargs, get_child, rebuild
from ..doors import find_backend
from ..errors import ArtifactError, InputError
from .assumed import check_assumed
from .feeds import check_feeds
from .session import Session
from .torch_arrays import to_numpy, to_torch

__all__ = ["Component", "Runtime", "load"]


def load(directory: Path | str, *, verify_hashes: bool = False, **runtime_options: Any) -> Runtime:
    """Open an artifact.

    Args:
        directory: What `ExportedModel.save_pretrained` wrote.
        verify_hashes: Hash the large files too; small ones always are.
        runtime_options: Handed to the backend's run door, e.g. `threads=2` or `device="cuda"` for ONNX Runtime.

    Raises:
        ArtifactError: If the artifact is missing, damaged or of a newer schema.
        ConfigError: If its format has no backend here.
    """
    root, manifest = open_artifact(directory, verify_hashes=verify_hashes)
    return Runtime(root, manifest, runtime_options)


class Runtime(Mapping[str, "Component"]):
    """An opened artifact: components by name, each opened by its engine at its first call.

    Attributes:
        directory: The artifact's directory.
        manifest: What it says about itself.
    """

    def __init__(self, directory: Path, manifest: Manifest, runtime_options: Mapping[str, Any]) -> None:
        self.directory = directory
        self.manifest = manifest
        self._components = {
            name: Component(directory, manifest.format, spec, runtime_options)
            for name, spec in manifest.components.items()
        }

    def __getitem__(self, name: str) -> Component:
        if name not in self._components:
            raise InputError(f"There is no component {name!r}; the artifact has {', '.join(self._components)}.")
        return self._components[name]

    def __contains__(self, name: object) -> bool:
        return name in self._components

    def __iter__(self) -> Iterator[str]:
        return iter(self._components)

    def __len__(self) -> int:
        return len(self._components)

    def __call__(self, **kwargs: Any) -> Any:
        """Run the only component. Raises `InputError` if there are several."""
        if len(self._components) != 1:
            names = ", ".join(self._components)
            raise InputError(f'The artifact has several components ({names}); call one, e.g. runtime["decode"](...).')
        return next(iter(self._components.values()))(**kwargs)


class Component:
    """One graph of an artifact.

    Attributes:
        spec: Its border.
    """

    def __init__(self, directory: Path, format: str, spec: ComponentSpec, runtime_options: Mapping[str, Any]) -> None:
        self.spec = spec
        self._directory = directory
        self._format = format
        self._runtime_options = dict(runtime_options)

    @cached_property
    def session(self) -> Session:
        """The engine's session, opened at first use."""
        session: Session = find_backend(self._format).load("open")(self._directory, self.spec, **self._runtime_options)
        return session

    def __call__(self, **kwargs: Any) -> Any:
        """Run the graph.

        Args:
            kwargs: What the model's forward takes, nested as there, as numpy arrays; objects (a cache) as dicts of their
                fields. A tensor may also be given by its full name: `**{"cache.layers.0.keys": array}`.

        Returns:
            What the model returned, its objects as dicts, as numpy arrays; they may share the engine's memory, and stay
            valid as long as they are held.

        Raises:
            InputError: If an input is missing, unexpected, of a wrong dtype, rank or size, or a flag differs from the one
                that the graph was exported with.
        """
        feeds = flatten_feeds(self.spec, kwargs)
        session = self.session
        if session.arrays == "torch":
            feeds = {name: to_torch(value) for name, value in feeds.items()}
        outputs = session.run(check_feeds(self.spec, feeds))
        check_assumed(self.spec, outputs)
        return rebuild_outputs(self.spec, {name: to_numpy(value) for name, value in outputs.items()})


#: Flags of a forward that ask for no more than a graph returns that was exported without them.
_ASKS_FOR_NO_MORE = {"use_cache": False, "output_attentions": False, "output_hidden_states": False}


def flatten_feeds(spec: ComponentSpec, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Nested kwargs as feeds by input name. Raises `InputError` for a flag that differs from the baked one."""
    names = {tensor.name for tensor in spec.inputs}
    feeds = {name: value for name, value in kwargs.items() if name in names and value is not None}
    nested = {name: value for name, value in kwargs.items() if name not in names}
    if spec.input_structure is None:
        return {**feeds, **nested}
    flat = flatten_kwargs(spec.input_structure, nested)
    if flat.mismatched:
        path, baked, given = flat.mismatched[0]
        shown = f"a {type(given).__name__}" if hasattr(given, "shape") else repr(given)
        raise InputError(f"{path} was exported as {baked!r} and cannot be {shown} now; leave it out or export again.")
    check_numbers(spec, nested)
    feeds |= {spec.inputs[i].name: _array(spec.inputs[i], value) for i, value in flat.leaves.items()}
    # Unexpected ones are fed too: the check of the feeds names them, with the closest name that exists.
    idle = {name for name, value in _ASKS_FOR_NO_MORE.items() if nested.get(name) is value}
    return feeds | dict.fromkeys(name for name in flat.unexpected if name not in idle)


def check_numbers(spec: ComponentSpec, kwargs: Mapping[str, Any]) -> None:
    """Raise `InputError` if an object has another whole number than the one that is built into the graph."""
    for path, baked in spec.options.get("numbers", {}).items():
        value: Any = kwargs
        try:
            for key in path.split("."):
                value = get_child(value, key)
        except KeyError:
            continue
        if isinstance(value, int) and value != baked:
            raise InputError(
                f"{path} is {value}, and {baked} is built into the graph; export again with an input that has {value}, or "
                "let the model keep the number in a tensor."
            )


def _array(tensor: TensorSpec, value: Any) -> Any:
    """A plain number, given for a tensor without axes, as an array."""
    return np.asarray(value, tensor.dtype) if tensor.shape == () and type(value) is int else value


def rebuild_outputs(spec: ComponentSpec, outputs: Mapping[str, Any]) -> Any:
    """Outputs by name as what the model returned; without a structure, the dict by name."""
    if missing := [tensor.name for tensor in spec.outputs if tensor.name not in outputs]:
        raise ArtifactError(f"The graph of {spec.name} did not compute {missing[0]}; export the model again.")
    if spec.output_structure is None:
        return dict(outputs)
    return rebuild(spec.output_structure, [outputs[tensor.name] for tensor in spec.outputs])
