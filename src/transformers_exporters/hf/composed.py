"""Run composite and encoder-decoder models: exported components stand in for the source class's own submodules."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import torch

from ..errors import InputError
from . import submodules
from .joined import joined, without
from .replaced import Reached, replaced, stopping_at

if TYPE_CHECKING:
    from .exported import ExportedComponent, ExportedModel

_ENCODED = "mm_encoder_outputs"


def attach_parts(model: Any, exported: ExportedModel) -> None:
    """Let the encoders and projectors of a meta-device model compute with the exported components of the same role.

    `generate` calls them through the source class's own code (`get_encoder()`, `get_image_features()`), which keeps
    whatever that code does before and after.
    """
    object.__setattr__(model, "encoded", [])
    for name, module in submodules.generation_parts(model).items():
        if name in exported and name not in ("language_model", "lm_head"):
            module.forward = _caller(exported[name], module.forward, model, name)


def _caller(component: ExportedComponent, original: Any, model: Any, name: str) -> Any:
    positional = list(dict.fromkeys(tensor.name.partition(".")[0] for tensor in component.spec.inputs))

    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(positional, args, strict=False)) | {k: v for k, v in kwargs.items() if k in positional}
        given = {key: value for key, value in given.items() if value is not None}
        prompt = given.get("input_ids", given.get("inputs_embeds"))
        if "attention_mask" in positional and "attention_mask" not in given and prompt is not None:
            given["attention_mask"] = torch.ones(prompt.shape[:2], dtype=torch.long)  # `generate` drops one of all ones
        if name == "encoder" and "attention_mask" not in positional:
            _refuse_mask(kwargs.get("attention_mask"), model.exported)
        result = component(**given)
        model.encoded.append((name, result))
        return result

    return forward


def _refuse_mask(mask: Any, exported: ExportedModel) -> None:
    """Raise `InputError` if a mask hides something that the encoder's graph, which takes no mask, would hear."""
    ignored = exported.manifest.generation.get("ignored", ())
    if isinstance(mask, torch.Tensor) and "attention_mask" not in ignored and not bool(mask.all()):
        raise InputError(
            "This artifact was exported without attention_mask, and this one hides a part of the input: export with it "
            "among the inputs of generate."
        )


def run_composite(model: Any, exported: ExportedModel, forward: Any, kwargs: Mapping[str, Any]) -> Any:
    """The prompt of a composite model: embed and merge, language model, head.

    Args:
        model: The meta-device model, its parts attached.
        exported: Its components.
        forward: The source class's forward, used to run the encoders where `generate` did not.
        kwargs: What the model's forward was called with.

    Returns:
        A `CausalLMOutputWithPast`: `logits` float [batch, kept positions, vocabulary], and the cache.

    Raises:
        InputError: If the prompt has no image or audio although the graph was exported with one.
    """
    from transformers.modeling_outputs import CausalLMOutputWithPast

    embed = exported["embed_inputs"]
    taken = {tensor.name.partition(".")[0] for tensor in embed.spec.inputs}
    inputs = {name: value for name, value in kwargs.items() if name in taken and value is not None}
    if "attention_mask" in taken and "attention_mask" not in inputs:  # `generate` leaves out an all-ones mask
        inputs["attention_mask"] = torch.ones_like(kwargs["input_ids"])
    if "features" in taken:
        inputs["features"] = _features(model, exported, forward, kwargs)
    elif _ENCODED in taken and _ENCODED not in inputs:
        raise InputError("This artifact was exported with an image or audio prompt; pass one, or export without.")
    known = exported.manifest.generation
    embedded = embed(**joined(without(inputs, known.get("unread", ())), known.get("joined", ())))
    hidden = exported["language_model"](**embedded)
    states = hidden["last_hidden_state"]
    keep = kwargs.get("logits_to_keep", 0)
    states = states[:, -keep:] if isinstance(keep, int) else states[:, keep]
    name = exported["lm_head"].spec.inputs[0].name
    logits = exported["lm_head"](**{name: states})
    return CausalLMOutputWithPast(logits=logits, cache=hidden["cache"])


def _features(model: Any, exported: ExportedModel, forward: Any, kwargs: Mapping[str, Any]) -> list[Any]:
    """What the encoders (or projectors) give for this prompt, by running the model up to its language model."""
    model.encoded.clear()
    table = model.get_input_embeddings()
    width = table.weight.shape[-1]
    decoder = submodules.decoder(model)
    assert decoder is not None
    with ExitStack() as stack:
        stack.enter_context(stopping_at(decoder))
        # The merge is the graph's work: here the embeddings only have to have the right shape.
        stack.enter_context(replaced(table, lambda ids: torch.zeros(*ids.shape, width, dtype=model.dtype)))
        with suppress(Reached):
            forward(model, **kwargs)
    projected = [result for name, result in model.encoded if not name.endswith("_encoder")]
    return projected or [result for _, result in model.encoded]
