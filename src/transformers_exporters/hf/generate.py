"""Generate with exported graphs through transformers' own `GenerationMixin`.

The source model's class is built on the meta device (its code, none of its weights), and its forward is replaced by the
exported components. Everything that `generate` does around a forward (masks, positions, caches, processors, beams,
streamers, stopping criteria) is then the source class's own.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

from ..errors import UnsupportedModelError
from .cache_layers import full_windows
from .composed import attach_parts, run_composite
from .delegated import delegate_to
from .engine_state import is_stateful
from .pytrees import copy_tensors, find_class, register_known_caches
from .skeleton import build_skeleton
from .static_state import allocate, complete_masks, run_in_place, stays_in_place

if TYPE_CHECKING:
    from .exported import ExportedComponent, ExportedModel

_CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state")


def make_generator(exported: ExportedModel) -> Any:
    """The source model's class, with its forward run by `exported`'s components.

    Raises:
        UnsupportedModelError: If the artifact was not exported for generation, or its class is not importable here.
    """
    if "decode" not in exported:
        raise UnsupportedModelError(
            f"This artifact has only {', '.join(exported)}: export it with for_generation=True to generate."
        )
    source = find_class(exported.manifest.model.class_path)
    if source is None:
        raise UnsupportedModelError(
            f"{exported.manifest.model.class_path} cannot be imported; generate needs the model's Python code."
        )
    register_known_caches()  # `_filled` looks into a cache
    delegate = exported.manifest.generation.get("delegate")
    model = build_skeleton(source, exported.config, exported.manifest.model, exported.loose_weights)
    looping = model.get_submodule(delegate) if delegate else model
    inner: Any = type(looping)
    looping.__class__ = _class_of(inner)
    if delegate:
        delegate_to(model, looping, exported)
    object.__setattr__(looping, "exported", exported)
    attach_parts(looping, exported)
    if exported.generation_config is not None:
        model.generation_config = exported.generation_config
    looping.generation_config.disable_compile = True
    looping.generation_config.use_cache = True  # the graphs were recorded with one, whatever the source model's default
    return model


@functools.cache
def _class_of(source: Any) -> type:
    """A subclass of a model class whose forward calls exported components."""

    @functools.wraps(source.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args:
            raise TypeError("an exported model's forward takes keyword arguments only")
        if kwargs.get("use_cache") is False:
            kwargs = {key: value for key, value in kwargs.items() if key not in _CACHE_NAMES}
        if "language_model" in self.exported and not any(_filled(kwargs.get(name)) for name in _CACHE_NAMES):
            return run_composite(self, self.exported, source.forward, kwargs)
        return run_step(self.exported, kwargs)

    def prepare_cache(
        self: Any, generation_config: Any, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        known = self.exported.manifest.generation
        if known.get("static") and model_kwargs.get("cache") is None:
            generation_config.cache_implementation = "static"
            generation_config.max_cache_len = max(known["max_cache_len"], generation_config.max_cache_len or 0)
        with full_windows():
            return super(cls, self)._prepare_cache_for_generation(  # type: ignore[arg-type]
                generation_config, model_kwargs, *args, **kwargs
            )

    members = {
        "forward": forward,
        "_prepare_cache_for_generation": prepare_cache,
        "__module__": source.__module__,
        "__doc__": f"{source.__name__} whose forward runs exported graphs.",
    }
    cls = type(source.__name__, (source,), members)
    return cls


def run_step(exported: ExportedModel, kwargs: dict[str, Any]) -> Any:
    """One forward: the prompt through `prefill`, anything on a filled cache through `decode`."""
    name = next((n for n in _CACHE_NAMES if kwargs.get(n) is not None), None)
    cache = kwargs.get(name) if name else None
    component = exported["decode"] if "prefill" not in exported or _filled(cache) else exported["prefill"]
    static = bool(exported.manifest.generation.get("static"))
    filled = False
    if static and cache is not None and name is not None and kwargs.get("input_ids") is not None:
        allocate(cache, component.spec, name, kwargs["input_ids"].shape[0])
        filled = _filled(cache)
        if filled:
            window = getattr(exported.config.get_text_config(), "sliding_window", None)
            kwargs = complete_masks(component.spec, kwargs, int(cache.get_seq_length()), window)
    inputs = _complete(component, dict(kwargs), cache, name)
    if name is not None and is_stateful(component.spec):
        inputs[name] = cache
    state = getattr(cache, "module_state", None)
    if state is not None:
        inputs["module_state"] = state
    in_place = filled and stays_in_place(component)
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


def _with_state(outputs: Any) -> Any:
    """Let the state that the model keeps in its modules travel with the cache, in an attribute that no graph sees."""
    if "module_state" not in outputs:
        return outputs
    from transformers.modeling_outputs import CausalLMOutputWithPast

    cache = outputs[_cache_field(outputs)]
    cache.module_state = outputs["module_state"]
    return CausalLMOutputWithPast(logits=outputs["logits"], cache=cache)


def _filled(cache: Any) -> bool:
    return cache is not None and bool(pytree.tree_leaves(cache))


def _complete(component: ExportedComponent, kwargs: dict[str, Any], cache: Any, name: str | None) -> dict[str, Any]:
    """Keep what the graph takes, and add the mask that `generate` leaves out when it is all ones."""
    inputs = {tensor.name.partition(".")[0]: tensor for tensor in component.spec.inputs}
    constants = {path.partition(".")[0] for path in component.spec.constants}
    given = {key: value for key, value in kwargs.items() if value is not None}
    ids = given.get("input_ids", given.get("inputs_embeds"))
    if "attention_mask" in inputs and "attention_mask" not in given and ids is not None:
        past = int(cache.get_seq_length()) if _filled(cache) else 0
        given["attention_mask"] = torch.ones(ids.shape[0], past + ids.shape[1], dtype=torch.long)
    encoded = getattr(given.get("encoder_outputs"), "last_hidden_state", None)
    if "attention_mask" in inputs and "attention_mask" not in given and encoded is not None:
        given["attention_mask"] = torch.ones(encoded.shape[:2], dtype=torch.long)
    kept: dict[str, Any] = {}
    for key, value in given.items():
        if key in inputs:
            kept[key] = value
        elif key in constants and not isinstance(value, torch.Tensor) and key != name:
            continue  # flags that `generate` passes along; the graph has its own baked in
        elif isinstance(value, torch.Tensor):
            kept[key] = value  # the component's own check says that it has no such input
    return kept


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
    return next(name for name in _CACHE_NAMES if name in outputs)


def _write_back(outputs: Any, cache: Any, static: bool) -> Any:
    """Keep the caller's static cache: the values of the step go into its own tensors, where the engine did not put them."""
    if not static or not _filled(cache):
        return outputs
    field = _cache_field(outputs)
    copy_tensors(outputs[field], cache)
    outputs[field] = cache
    return outputs
