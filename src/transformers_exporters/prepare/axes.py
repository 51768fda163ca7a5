"""Name the axes of a model's inputs: which are batch, sequence, cache, image or audio axes, and which nobody knows.

Names come from the leaf's own name and rank, which transformers keeps the same over all models; what no rule knows is
compared with the sizes of the known axes; the rest stays unnamed and is left for the trace to decide.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree

from ..artifact.spec import TensorSpec
from ..hf.pytrees import CACHE_NAMES

AxisNames = tuple[str | None, ...]

# (pattern of the leaf path's last part, rank) -> names; None is an axis that belongs to the model. The first match wins.
_RULES: tuple[tuple[str, int, AxisNames], ...] = (
    (
        r"(decoder|encoder)_(attention_mask|input_ids|position_ids|token_type_ids|head_mask)",
        2,
        ("batch", r"\1_sequence"),
    ),
    (r"(decoder|encoder)_(inputs_embeds|hidden_states)", 3, ("batch", r"\1_sequence", None)),
    (r"attention_mask|mask", 2, ("batch", "mask_sequence")),
    (r"cross_attention_mask", 4, ("batch", "sequence", "images", "tiles")),
    (r"(full|sliding|linear|causal|chunked)_attention|.*attention_mask", 4, ("batch", None, "query", "key")),
    (r"position_ids", 3, (None, "batch", "sequence")),
    (r"(input|token_type|position|inputs?|langs?|mm_token_type)_?ids?|langs|input", 2, ("batch", "sequence")),
    (r"inputs_embeds|hidden_states", 3, ("batch", "sequence", None)),
    (r"last_hidden_state", 3, ("batch", "encoder_sequence", None)),
    (r"bbox", 3, ("batch", "sequence", None)),
    (r"input_points", 4, ("batch", "prompts", "points", None)),
    (r"input_labels", 3, ("batch", "prompts", "points")),
    (r"input_boxes", 3, ("batch", "prompts", None)),
    (r".*grid_thw", 2, ("images", None)),
    (r"(image|video)_merge_sizes", 1, ("images",)),
    (r"pixel_values.*|.*image.*|.*frame.*", 4, ("batch", None, "height", "width")),
    (r"pixel_values.*|.*image.*|.*frame.*", 5, ("batch", "images", None, "height", "width")),
    (r"pixel_values.*", 6, ("batch", "images", "tiles", None, "height", "width")),
    (r"aspect_ratio_mask", 3, ("batch", "images", "tiles")),
    (r"pixel_(attention_)?mask.*", 3, ("batch", "height", "width")),
    (r"pixel_(attention_)?mask.*", 4, ("batch", "images", "height", "width")),
    (r"input_values|padding_mask|audio_values", 2, ("batch", "samples")),
    (r"input_values|audio_values|padding_mask", 3, ("batch", None, "samples")),
    (r"input_features", 3, ("batch", "frames", "frames")),
    (r"(input_)?features?_mask|feature_attention_mask", 2, ("batch", "frames")),
    (r"keys|values|key|value", 4, ("batch", None, "cache", None)),
    (r"(conv|recurrent|ssm)_states?(\.\d+)?", 3, ("batch", None, None)),
    (r"(conv|recurrent|ssm)_states?(\.\d+)?", 4, ("batch", None, None, None)),
)

_TEXT = re.compile(r"input_ids|inputs_embeds")
_OF_IMAGES = re.compile(r"pixel_.*|image_.*|aspect_ratio_.*")


def named_leaves(kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(leaf path, value) of every leaf of nested kwargs, in pytree order."""
    flat, _ = pytree.tree_flatten_with_path(dict(kwargs))
    return [(leaf_path(path), value) for path, value in flat]


def leaf_path(path: Sequence[Any]) -> str:
    """A pytree key path as `cache.layers.0.keys`."""
    return ".".join(str(_key(entry)) for entry in path)


def _key(entry: Any) -> Any:
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return getattr(entry, attribute)
    raise TypeError(f"unknown pytree key {entry!r}")


def name_axes(kwargs: Mapping[str, Any]) -> dict[str, AxisNames]:
    """Axis names of every tensor leaf, by leaf path.

    Args:
        kwargs: The model's forward kwargs, nested as the model takes them.
    """
    leaves = [(path, value) for path, value in named_leaves(kwargs) if isinstance(value, torch.Tensor)]
    axes: dict[str, AxisNames] = {}
    sizes: dict[str, int] = {}
    packed = any(path.endswith("grid_thw") for path, _ in leaves)
    for path, tensor in leaves:
        names = _by_rule(path, tensor.dim())
        if packed and tensor.dim() == 2 and re.fullmatch(r"pixel_values.*|hidden_states", path):
            names = ("patches", None)  # of all images, one after the other
        if names is not None:
            axes[path] = names
            for name, size in zip(names, tensor.shape, strict=True):
                if name is not None:
                    sizes.setdefault(name, int(size))
    text = {"sequence", "encoder_sequence"} & sizes.keys()
    past = sizes.get("mask_sequence", 0) - sizes.get("sequence", sizes.get("mask_sequence", 0))
    if "cache" not in sizes and past > 0:
        grown = {path: names for path, tensor in leaves if path not in axes and (names := _by_past(path, tensor, past))}
        axes |= grown
        sizes |= {"cache": past} if grown else {}
    has_cache = "cache" in sizes
    decoder_only = "decoder_sequence" in sizes and "sequence" not in sizes
    if not has_cache:  # what is masked may have a name that no rule knows
        sizes.setdefault("encoder_sequence" if decoder_only else "sequence", sizes.get("mask_sequence", 0))
    for path, tensor in leaves:
        if path not in axes:
            axes[path] = _by_size(tensor, sizes, of_mask=not text and not has_cache)
        if "mask_sequence" in axes[path]:
            own: str | None = "total_sequence" if has_cache and tensor.shape[1] != sizes.get("sequence") else "sequence"
            if decoder_only:  # the encoder's mask: an encoder that strides has fewer positions than its mask
                own = "encoder_sequence" if tensor.shape[1] == sizes.get("encoder_sequence", tensor.shape[1]) else None
            if not text and tensor.shape[1] == sizes.get("samples"):  # of a waveform
                own = "samples"
            axes[path] = tuple(own if name == "mask_sequence" else name for name in axes[path])
        if has_cache and path == "decoder_attention_mask" and tensor.shape[-1] != sizes.get("decoder_sequence"):
            axes[path] = tuple("total_sequence" if name == "decoder_sequence" else name for name in axes[path])
    return _with_images(leaves, axes)


def _with_images(leaves: Sequence[tuple[str, torch.Tensor]], axes: dict[str, AxisNames]) -> dict[str, AxisNames]:
    """The same, where a prompt's rows have several images, or none, and these come one after the other: their axis is their own."""
    rows = next((tensor.shape[0] for path, tensor in leaves if _TEXT.fullmatch(path)), None)
    images = next((t.shape[0] for path, t in leaves if path == "pixel_values" and t.dim() == 4), rows)
    if rows is None or images == rows:
        return axes
    return images_apart(axes, {path for path, tensor in leaves if tensor.dim() and tensor.shape[0] == images})


def images_apart(axes: Mapping[str, AxisNames], paths: Collection[str]) -> dict[str, AxisNames]:
    """The same with an axis `images` instead of the first one of those of the paths that are about images."""
    return {
        path: ("images", *names[1:]) if path in paths and _OF_IMAGES.fullmatch(path) else names
        for path, names in axes.items()
    }


def with_traced_names(axes: Mapping[str, AxisNames], inputs: Sequence[TensorSpec]) -> dict[str, AxisNames]:
    """The same, and for an axis that no rule names the name that its graph gave it (`x_1`).

    Args:
        axes: Axis names by leaf path.
        inputs: The graph's.
    """
    named = dict(axes)
    for tensor in inputs:
        pairs = itertools.zip_longest(axes.get(tensor.name, ())[: len(tensor.shape)], tensor.shape)
        named[tensor.name] = tuple(name or (size if isinstance(size, str) else None) for name, size in pairs)
    return named


def own_name(path: str, dim: int) -> str:
    """What an axis is called that has no name: by the input's path and its place there."""
    return f"{re.sub(r'[^0-9A-Za-z]', '_', path)}_{dim}"


def _by_rule(path: str, rank: int) -> AxisNames | None:
    parts = path.split(".")
    last = ".".join(parts[-2:]) if parts[-1].isdigit() and len(parts) > 1 else parts[-1]
    if "cross_attention_cache" in parts and rank == 4:
        return "batch", None, "encoder_sequence", None
    for pattern, expected, names in _RULES:
        match = re.fullmatch(pattern, last)
        if match and rank == expected:
            return tuple(match.expand(name) if name else None for name in names)
    return None


def _by_past(path: str, tensor: torch.Tensor, past: int) -> AxisNames | None:
    """A leaf of a cache of a model's own: batched, with an axis for the tokens that are masked and not given."""
    if path.partition(".")[0] not in CACHE_NAMES:
        return None
    for axis in (2, 1, 3) if tensor.dim() == 4 else range(1, tensor.dim()):
        if tensor.shape[axis] == past:
            return tuple("batch" if dim == 0 else "cache" if dim == axis else None for dim in range(tensor.dim()))
    return None


def _by_size(tensor: torch.Tensor, sizes: Mapping[str, int], *, of_mask: bool) -> AxisNames:
    """An unknown leaf whose first axis has the batch's size is batched; its second may be the sequence.

    A second axis of one entry tells nothing, except of states [batch, sequence, width] beside a mask and no text: it is theirs.
    """
    names: list[str | None] = [None] * tensor.dim()
    if tensor.dim() and tensor.shape[0] == sizes.get("batch", tensor.shape[0]):
        names[0] = "batch"
        for name in ("sequence", "decoder_sequence", "encoder_sequence"):
            least = 0 if of_mask and tensor.dim() == 3 and tensor.is_floating_point() else 1
            if tensor.dim() > 1 and sizes.get(name, 0) > least and tensor.shape[1] == sizes[name]:
                names[1] = name
                break
    return tuple(names)
