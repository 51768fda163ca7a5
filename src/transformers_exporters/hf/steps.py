"""One forward of a model whose graphs are exported: which graph, what it takes, and what becomes of the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

from ..errors import InputError
from .cache_layers import full_windows
from .engine_state import is_stateful
from .outputs import without_details
from .pytrees import CACHE_NAMES, copy_tensors
from .static_state import allocate, complete_masks, run_in_place, stays_in_place

if TYPE_CHECKING:
    from .exported import ExportedComponent, ExportedModel

__all__ = ["DECODER_SIDE", "decoder_side", "filled", "run_step"]

DECODER_SIDE = ("decoder_attention_mask", "decoder_position_ids")


def run_step(exported: ExportedModel, kwargs: dict[str, Any]) -> Any:
    """One forward: the prompt through `prefill`, anything on a filled cache through `decode`."""
    name = next((n for n in CACHE_NAMES if kwargs.get(n) is not None), None)
    cache = kwargs.get(name) if name else None
    component = exported["decode"] if "prefill" not in exported or filled(cache) else exported["prefill"]
    missing = _missing_logits(component, kwargs)
    if missing and component.spec.name == "prefill" and kwargs.get("input_ids") is not None:
        return _prompt_in_two(exported, kwargs, missing)
    static = bool(exported.manifest.generation.get("static"))
    if static and cache is None and component.spec.state and not exported.config.is_encoder_decoder:
        name, cache = component.spec.state[0][0].partition(".")[0], _empty_cache(exported)
        kwargs = {**kwargs, name: cache}
    ready = False
    if static and cache is not None and name is not None and kwargs.get("input_ids") is not None:
        allocate(cache, component.spec, name, kwargs["input_ids"].shape[0])
        ready = filled(cache)
        if ready:
            window = getattr(exported.config.get_text_config(), "sliding_window", None)
            kwargs = complete_masks(component.spec, kwargs, int(cache.get_seq_length()), window)
    ignored = exported.manifest.generation.get("ignored", ())
    kwargs = {key: value for key, value in kwargs.items() if key not in ignored}
    inputs = _complete(component, kwargs, cache, name)
    if name is not None and is_stateful(component.spec):
        inputs[name] = cache
    state = getattr(cache, "module_state", None)
    if state is not None:
        inputs["module_state"] = state
    in_place = ready and stays_in_place(component)
    steps = _one_by_one(component, inputs)
    outputs = None
    logits = []
    for step in steps:
        if outputs is not None and name is not None and not in_place:
            step = {**step, name: outputs[_cache_field(outputs)]}
            if "module_state" in step:
                step["module_state"] = step[name].module_state
        outputs = run_in_place(component, step, cache) if in_place else _with_state(component(**step))
        logits.append(outputs["logits"])
    if len(logits) > 1 and outputs is not None:
        outputs["logits"] = torch.cat(logits, dim=1)
    return outputs if in_place else _write_back(outputs, cache, static)


def _empty_cache(exported: ExportedModel) -> Any:
    """What a graph over a fixed-size cache starts from where the caller wants no cache, or has none yet."""
    from transformers import StaticCache

    with full_windows():
        return StaticCache(config=exported.config, max_cache_len=exported.manifest.generation["max_cache_len"])


def _with_state(outputs: Any) -> Any:
    """Let the state that the model keeps in its modules travel with the cache, in an attribute that no graph sees."""
    if "module_state" not in outputs:
        return outputs
    from transformers.modeling_outputs import CausalLMOutputWithPast

    cache = outputs[_cache_field(outputs)]
    cache.module_state = outputs["module_state"]
    return CausalLMOutputWithPast(logits=outputs["logits"], cache=cache)


def filled(cache: Any) -> bool:
    """Whether a cache holds tensors."""
    return cache is not None and bool(pytree.tree_leaves(cache))


def _complete(component: ExportedComponent, kwargs: dict[str, Any], cache: Any, name: str | None) -> dict[str, Any]:
    """Keep what the graph takes, and add what a model makes for itself: a mask of ones, positions."""
    inputs = {tensor.name.partition(".")[0]: tensor for tensor in component.spec.inputs}
    constants = {path.partition(".")[0] for path in component.spec.constants}
    given = {key: value for key, value in kwargs.items() if value is not None}
    missing = _missing_logits(component, given)
    if missing:
        raise InputError(
            f"{component.spec.name} returns the logits of the last {component.spec.constants['logits_to_keep']} positions, "
            f"and {missing} are needed: export with logits_to_keep=0, or a larger number."
        )
    ids = given.get("input_ids", given.get("inputs_embeds"))
    absent = inputs.keys() - given.keys()
    if ids is not None and absent & {"attention_mask", "position_ids"}:
        past = int(cache.get_seq_length()) if filled(cache) else 0
        if "attention_mask" in absent:
            given["attention_mask"] = torch.ones(ids.shape[0], past + ids.shape[1], dtype=torch.long)
        if "position_ids" in absent and len(inputs["position_ids"].shape) == 2:
            given["position_ids"] = torch.arange(past, past + ids.shape[1]).expand(ids.shape[:2])
    own, missing_side = given.get("decoder_input_ids"), absent & {*DECODER_SIDE}
    if own is not None and missing_side:
        past = int(cache.get_seq_length()) if filled(cache) else 0
        side = dict(zip(DECODER_SIDE, decoder_side(own, past), strict=True))
        given |= {key: side[key] for key in missing_side if len(inputs[key].shape) == 2}
    encoded = getattr(given.get("encoder_outputs"), "last_hidden_state", None)
    if "attention_mask" in inputs and "attention_mask" not in given and encoded is not None:
        given["attention_mask"] = torch.ones(encoded.shape[:2], dtype=torch.long)
    kept: dict[str, Any] = {}
    for key, value in given.items():
        if key in inputs:
            kept[key] = without_details(value) if key == "encoder_outputs" else value
        elif key in constants and not isinstance(value, torch.Tensor) and key != name:
            continue  # flags that `generate` passes along; the graph has its own baked in
        elif key == "attention_mask" and isinstance(value, torch.Tensor) and bool(value.all()):
            continue  # hides nothing
        elif isinstance(value, torch.Tensor):
            kept[key] = value  # the component's own check says that it has no such input
    return kept


def decoder_side(ids: torch.Tensor, past: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The mask and the positions of `past` tokens and `ids` [batch, queries] that are not padded: `DECODER_SIDE`."""
    rows, queries = ids.shape
    mask = torch.ones(rows, past + queries, dtype=torch.long, device=ids.device)
    return mask, torch.arange(past, past + queries, device=ids.device).expand(rows, queries)


def _missing_logits(component: ExportedComponent, kwargs: dict[str, Any]) -> int:
    """How many positions' logits a step needs, if that is more than the graph returns; else 0."""
    kept, wanted = component.spec.constants.get("logits_to_keep", 0), kwargs.get("logits_to_keep") or 0
    ids = next((kwargs[name] for name in ("input_ids", "inputs_embeds") if kwargs.get(name) is not None), None)
    if not isinstance(kept, int) or kept == 0 or not isinstance(wanted, int) or wanted == 0 or ids is None:
        return 0
    needed = min(wanted, int(ids.shape[1]))
    return needed if needed > kept else 0


def _prompt_in_two(exported: ExportedModel, kwargs: dict[str, Any], rows: int) -> Any:
    """A prompt of which the logits of the last `rows` positions are needed: all but `rows - 1` tokens, then the others."""
    length = int(kwargs["input_ids"].shape[1])
    cut = length - rows + 1

    def part(start: int, stop: int) -> dict[str, Any]:
        chosen = dict(kwargs)
        for name in ("input_ids", "position_ids", "token_type_ids"):
            if chosen.get(name) is not None:
                chosen[name] = chosen[name][..., start:stop]
        mask = chosen.get("attention_mask")
        if isinstance(mask, torch.Tensor) and mask.dim() == 2:
            chosen["attention_mask"] = mask[:, :stop]
        return {**chosen, "logits_to_keep": 1 if start == 0 else stop - start}

    first = run_step(exported, part(0, cut))
    field = _cache_field(first)
    second = run_step(exported, {**part(cut, length), field: first[field]})
    second["logits"] = torch.cat([first["logits"][:, -1:], second["logits"]], dim=1)
    return second


def _one_by_one(component: ExportedComponent, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """A one-token decode graph takes several tokens one after the other."""
    ids = inputs.get("input_ids")
    spec = next((tensor for tensor in component.spec.inputs if tensor.name == "input_ids"), None)
    if ids is None or spec is None or spec.shape[1] != 1 or ids.shape[1] == 1:
        return [inputs]
    count = ids.shape[1]
    mask = inputs.get("attention_mask")
    steps = []
    for index in range(count):
        step = dict(inputs)
        step["input_ids"] = ids[:, index : index + 1]
        if mask is not None and mask.dim() == 2:
            step["attention_mask"] = mask[:, : mask.shape[1] - count + index + 1]
        if "position_ids" in inputs:
            step["position_ids"] = inputs["position_ids"][..., index : index + 1]
        steps.append(step)
    return steps


def _cache_field(outputs: Any) -> str:
    return next(name for name in CACHE_NAMES if name in outputs)


def _write_back(outputs: Any, cache: Any, static: bool) -> Any:
    """Keep the caller's static cache: the values of the step go into its own tensors, where the engine did not put them."""
    if not static or not filled(cache):
        return outputs
    field = _cache_field(outputs)
    copy_tensors(outputs[field], cache)
    outputs[field] = cache
    return outputs
