"""Reading a config and its sub-configs: the fields, the layers, the patches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from transformers import PreTrainedConfig

from . import plan as size


def configs_of(config: PreTrainedConfig) -> Iterator[PreTrainedConfig]:
    """The config and all its sub-configs, outermost first."""
    yield config
    for value in vars(config).values():
        if isinstance(value, PreTrainedConfig):
            yield from configs_of(value)


def field_of(config: PreTrainedConfig, name: str) -> Any:
    """The value of a field under its own or its mapped name; None where there is none.

    Not `getattr`: some configs raise for a field that differs from layer to layer.
    """
    return vars(config).get(type(config).attribute_map.get(name, name))


def fields_of(config: PreTrainedConfig) -> dict[str, Any]:
    """The public fields; `out_indices` of a backbone, which is kept under a private name, among them."""
    named = {("out_indices" if name == "_out_indices" else name): value for name, value in vars(config).items()}
    return {name: value for name, value in named.items() if not name.startswith("_")}


def layers_of(config: PreTrainedConfig) -> int:
    """How many layers the config has, if only by the list of their types; 0 where it does not say."""
    names = ("num_hidden_layers", "num_layers", "n_layer", "depth")
    types = field_of(config, "layer_types")
    listed = len(types) if isinstance(types, list | tuple) else 0
    return next((value for name in names if is_size(value := field_of(config, name))), listed)


def is_size(value: Any) -> TypeGuard[int]:
    """Whether the value is a whole number above zero."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def is_sizes(value: Any) -> bool:
    """Whether the value lists several sizes."""
    return isinstance(value, list | tuple) and len(value) > 1 and all(is_size(one) for one in value)


def patch_of(config: PreTrainedConfig) -> int:
    """The side of a patch in pixels; 0 where the config has none."""
    patch = field_of(config, "patch_size")
    if isinstance(patch, list | tuple) and patch:
        patch = patch[-1]
    return patch if isinstance(patch, int) and not isinstance(patch, bool) else 0


def patches_a_side(patch: int) -> int:
    """Four, or as many as make a picture of 64 pixels: hierarchical models halve it several times."""
    return max(4, 2 * (size.IMAGE // 2 // patch))


def patch_scale(image: Any, patch: int) -> float | None:
    """By how much fewer patches a side of the picture gets; None where it is not cut into patches."""
    if isinstance(image, list | tuple) and image:
        image = image[0]
    if not is_size(image) or not patch or image < patch:
        return None
    return float(min(1.0, patches_a_side(patch) / (image // patch)))
