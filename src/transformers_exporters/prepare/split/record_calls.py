"""Run `generate` once and note what every forward was called with."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from ...hf.pytrees import register_known_caches, register_objects_in
from ...hf.replaced import replaced
from ..shapes_only import to_device
from .module_state import tensor_attributes


@dataclass(frozen=True)
class Recording:
    """What a module was called with, and what it returned, call by call; copies.

    Attributes:
        calls: The kwargs of each call.
        results: What each call returned, if asked for.
        states: The tensors in attributes of the module and its submodules before each call, and after the last.
    """

    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    states: list[dict[str, torch.Tensor]] = field(default_factory=list)


@contextmanager
def recorded(
    module: torch.nn.Module, shapes_only: bool = False, keep_results: bool = False, keep_states: bool = False
) -> Iterator[Recording]:
    """While held, every call of `module.forward` is recorded; the module is put back afterwards.

    Kwargs are copied before the call, since a forward writes into its cache; positional arguments are named by the
    forward's signature.

    Args:
        module: The module.
        shapes_only: The weights are on `meta` (`without_values`): forwards run for their shapes, the logits that
            `generate` reads are zeros, and what is recorded are zeros on the CPU.
        keep_results: Record results too.
        keep_states: Record the tensors in attributes too.
    """
    register_known_caches()
    recording = Recording()
    original = module.forward
    signature = inspect.signature(original)

    def forward(*args: Any, **kwargs: Any) -> Any:
        named = _by_name(signature, args, kwargs)
        recording.calls.append(to_device(copy.deepcopy(named), "cpu") if shapes_only else copy.deepcopy(named))
        if keep_states:
            recording.states.append(_copied(tensor_attributes(module), shapes_only))
        if shapes_only:
            outputs = original(**to_device(named, "meta"), **({"return_dict": True} if "return_dict" in kwargs else {}))
            for name in ("logits", "last_hidden_state") if isinstance(outputs, dict) else ():
                if isinstance(outputs.get(name), torch.Tensor):
                    outputs[name] = torch.zeros_like(outputs[name], device="cpu")
        else:
            outputs = original(*args, **kwargs)
        register_objects_in(outputs)  # a model may make its cache itself, of a class of its own
        if keep_results:
            recording.results.append(to_device(copy.deepcopy(outputs), "cpu"))
        return outputs

    # `generate` reads the forward's signature to know what it may pass.
    forward.__signature__ = signature  # type: ignore[attr-defined]
    with replaced(module, forward):
        yield recording
        if keep_states:
            recording.states.append(_copied(tensor_attributes(module), shapes_only))


def _copied(tensors: Mapping[str, torch.Tensor], shapes_only: bool) -> dict[str, torch.Tensor]:
    return {name: value if shapes_only else value.detach().clone() for name, value in tensors.items()}


def _by_name(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    positional = [
        p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)
    ]
    named = dict(zip(positional, args, strict=False))
    return {key: value for key, value in {**named, **kwargs}.items() if value is not None and key != "return_dict"}


def run_generate(
    model: torch.nn.Module, inputs: Mapping[str, Any], new_tokens: int, generation_config: Any = None
) -> None:
    """Generate exactly `new_tokens` tokens greedily on a copy of `inputs`."""
    options: dict[str, Any] = (
        {} if generation_config is None else {"generation_config": copy.deepcopy(generation_config)}
    )
    with torch.no_grad():
        model.generate(  # type: ignore[operator]
            **copy.deepcopy(dict(inputs)),
            **options,
            **generate_options(new_tokens),
        )


def generate_options(new_tokens: int) -> dict[str, Any]:
    """The options of a run that is recorded."""
    return {
        "max_new_tokens": new_tokens,
        "min_new_tokens": new_tokens,
        "do_sample": False,
        "num_beams": 1,
        "use_cache": True,
        "disable_compile": True,
    }
