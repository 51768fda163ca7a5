"""Generate with exported graphs through transformers' own `GenerationMixin`.

The source model's class is built on the meta device (its code, none of its weights), and its forward is replaced by the
exported components. Everything that `generate` does around a forward (masks, positions, caches, processors, beams,
streamers, stopping criteria) is then the source class's own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InputError, UnsupportedModelError
from .cache_layers import full_windows
from .composed import attach_parts, run_composite
from .delegated import delegate_to
from .plain_values import find_class
from .pytrees import CACHE_NAMES, register_known_caches
from .skeleton import build_skeleton
from .steps import filled, run_step

if TYPE_CHECKING:
    from .exported import ExportedModel


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
    register_known_caches()  # `filled` looks into a cache
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


def _encoded(model: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The kwargs of a forward that was given the encoder's inputs, with what the encoder makes of them instead."""
    exported = model.exported
    if "encoder" not in exported or kwargs.get("encoder_outputs") is not None:
        return kwargs
    taken, needed = ({t.name.partition(".")[0] for t in exported[n].spec.inputs} for n in ("encoder", "decode"))
    if "encoder_outputs" not in needed or not any(kwargs.get(name) is not None for name in taken):
        return kwargs
    encoder_outputs = model.get_encoder()(**{name: value for name, value in kwargs.items() if name in taken})
    kept = {name: value for name, value in kwargs.items() if name not in taken - needed}
    return {**kept, "encoder_outputs": encoder_outputs}


def _complete(outputs: Any, kwargs: Mapping[str, Any]) -> Any:
    """The outputs, refused where they lack the attentions or hidden states that were asked for."""
    for flag, field in (("output_attentions", "attentions"), ("output_hidden_states", "hidden_states")):
        own = (name for name in outputs if name.endswith(field) and not name.startswith("encoder"))
        if kwargs.get(flag) and not any(own):
            raise InputError(
                f"{flag}=True: this artifact's graphs return no {field}; export with it among the inputs of generate (for "
                "word timestamps: return_token_timestamps=True), and a model of attn_implementation='eager' for attentions."
            )
    return outputs


@functools.cache
def _class_of(source: Any) -> type:
    """A subclass of a model class whose forward calls exported components."""
    parameters = list(inspect.signature(source.forward).parameters)[1:]

    @functools.wraps(source.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs = dict(zip(parameters, args, strict=False)) | kwargs
        if kwargs.get("use_cache") is False:
            kwargs = {key: value for key, value in kwargs.items() if key not in CACHE_NAMES}
        kwargs = _encoded(self, kwargs)
        if "language_model" in self.exported and not any(filled(kwargs.get(name)) for name in CACHE_NAMES):
            return _complete(run_composite(self, self.exported, source.forward, kwargs), kwargs)
        outputs = _complete(run_step(self.exported, kwargs), kwargs)
        if kwargs.get("use_cache") is False:
            for name in CACHE_NAMES:
                if name in outputs:
                    outputs[name] = None
        return outputs

    def prepare_cache(
        self: Any, generation_config: Any, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        known = self.exported.manifest.generation
        if generation_config.cache_implementation is not None and not known.get("static"):
            raise UnsupportedModelError(
                f"cache_implementation={generation_config.cache_implementation!r}: this artifact's cache grows; export with "
                "generation_config=GenerationConfig(cache_implementation='static', max_cache_len=...) for one of a fixed size."
            )
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
