"""Run models whose `generate` hands the loop to an inner model: one exported step makes the inner model's inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .exported import ExportedModel


def delegate_to(model: Any, inner: Any, exported: ExportedModel) -> None:
    """Let the `generate` of a meta-device model run the exported `embed_inputs`, then the loop of `inner`.

    Args:
        model: The outer model.
        inner: The submodule that generates; its forward already runs exported components.
        exported: The components.
    """
    step = exported["embed_inputs"]
    taken = {tensor.name.partition(".")[0] for tensor in step.spec.inputs}

    def generate(inputs: Any = None, **kwargs: Any) -> Any:
        if inputs is not None:
            kwargs[model.main_input_name] = inputs
        given = {name: kwargs.pop(name) for name in taken if kwargs.get(name) is not None}
        if "attention_mask" in taken and "attention_mask" not in given and "input_ids" in given:
            given["attention_mask"] = torch.ones_like(given["input_ids"])
        return inner.generate(**step(**given), **kwargs)

    model.__dict__["generate"] = generate
