"""The source model's Python code with none of its weights but the few that its code uses between the components."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel

from ..artifact.manifest import ModelRecord
from .plain_values import find_class

if TYPE_CHECKING:
    from .exported import ExportedModel


def build_skeleton(cls: type, config: Any, record: ModelRecord, loose: Mapping[str, torch.Tensor]) -> Any:
    """A model on the meta device whose modules say that they are on the CPU, since exported graphs compute for them.

    Args:
        cls: The model class.
        config: Its config.
        record: What the artifact says about the model.
        loose: Weights to fill in, by parameter or buffer name.
    """
    with torch.device("meta"):
        model: Any = cls(config)
    model.eval()
    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            source: Any = type(module)
            module.__class__ = on_cpu(source, record.dtype)
    for name, value in loose.items():
        path, _, last = name.rpartition(".")
        owner = model.get_submodule(path)
        if last in owner._parameters:
            owner._parameters[last] = torch.nn.Parameter(value, requires_grad=False)
        else:
            owner._buffers[last] = value
    return model


@functools.cache
def on_cpu(source: Any, dtype: str) -> type:
    """A subclass of a model class that reports the device and dtype of the exported graphs."""
    members = {
        "device": property(lambda self: torch.device("cpu")),
        "dtype": property(lambda self: getattr(torch, dtype)),
        "__module__": source.__module__,
        "__doc__": source.__doc__,
    }
    return type(source.__name__, (source,), members)


def make_stand_in(exported: ExportedModel) -> Any:
    """The source model's class for an artifact of one graph, or None if it is no `PreTrainedModel` or not importable."""
    source: Any = find_class(exported.manifest.model.class_path)
    if source is None or not issubclass(source, PreTrainedModel) or exported.config is None:
        return None

    @functools.wraps(source.forward)
    def forward(**inputs: Any) -> Any:
        return exported(**inputs)

    model = build_skeleton(source, exported.config, exported.manifest.model, {})
    object.__setattr__(model, "forward", forward)
    return model
