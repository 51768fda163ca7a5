"""Shrink a config with all its sub-configs, and keep them consistent with each other."""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from transformers import PreTrainedConfig

from . import plan as size
from .fields import field_kind
from .plan import Plan

#: Derived by the config class from the layers; given back, the old ones would contradict the new.
_DERIVED = {"stage_names", "out_features"}


def shrink(config: PreTrainedConfig, plan: Plan) -> PreTrainedConfig:
    """A new config of the same class, with every size of it and of its sub-configs shrunk after `plan`.

    Raises:
        Exception: Whatever the config class raises for a combination that it refuses.
    """
    return _Tree(config, plan).shrunk(config)


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


class _Tree:
    """What all configs of one model have to agree on: token ids, and how much fewer patches an image has."""

    def __init__(self, config: PreTrainedConfig, plan: Plan) -> None:
        self.plan = plan
        self._configs = list(configs_of(config))
        self._ids = _token_ids(self._configs)
        self._free_id = next(one for one in range(size.VOCABULARY - 1, 0, -1) if one not in self._ids.values())
        # The tower whose layers are meant by indices in a config that has no layers.
        self._vision = next((part for part in self._configs if "vi" in part.model_type and layers_of(part)), None)
        self._image_scale = next(
            (
                scale
                for part in self._configs
                if (scale := _patch_scale(field_of(part, "image_size"), _patch(part))) is not None
            ),
            1.0,
        )

    def shrunk(self, config: PreTrainedConfig) -> PreTrainedConfig:
        sizes = _Sizes(config, self.plan, self._vision)
        changed: dict[str, Any] = {}
        for name, value in _fields(config).items():
            if isinstance(value, PreTrainedConfig):
                changed[name] = self.shrunk(value)
            elif isinstance(value, dict):
                new = {key: self._field(sizes, key, inner) for key, inner in value.items() if isinstance(key, str)}
                if name != "label2id" and new and new != value:
                    changed[name] = new
            elif name not in _DERIVED:
                new = self._field(sizes, name, value)
                if new != value:
                    changed[name] = new
        if parts := _implied_sections(config):
            rope = changed.get("rope_parameters", config.rope_parameters)
            changed["rope_parameters"] = {**rope, "mrope_section": sizes.sections(parts, _rotated(config, rope))}
        return _rebuilt(config, changed)

    def _field(self, sizes: _Sizes, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._field(sizes, key, inner) for key, inner in value.items()}
        kind = field_kind(name)
        if kind == "token":
            if value is None and name in ("image_token_id", "image_token_index") and self.plan.vocabulary:
                return self._free_id  # a model that mixes pictures into text, whose checkpoints bring the token
            return self._token(value) if self.plan.vocabulary else value
        if kind == "image_tokens" and isinstance(value, int):
            return max(1, round(value * self._image_scale**2)) if self.plan.positions else value
        return sizes.field(name, kind, value)

    def _token(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._token(one) for one in value)
        return self._ids.get(value, value) if isinstance(value, int) else value


class _Sizes:
    """The sizes of one config, old and new."""

    def __init__(self, config: PreTrainedConfig, plan: Plan, vision: PreTrainedConfig | None) -> None:
        self._plan = plan
        fields = _fields(config)
        kinds = {name: field_kind(name) for name in fields}
        self._patch = _patch(config)
        self._head_counts = {v for n, v in fields.items() if kinds[n] == "heads" and _is_size(v)}
        self._rope = next((v for n, v in fields.items() if kinds[n] == "rope_dim" and _is_size(v)), None)
        self._nope = next((v for n, v in fields.items() if "nope_head_dim" in n and _is_size(v)), None)
        self._divisor = plan.divisor
        self._hierarchical = any(
            _is_sizes(v) and (kinds[n] in ("layers", "heads") or (kinds[n] == "width" and len(set(v)) > 1))
            for n, v in fields.items()
        )
        if plan.divisor is None and self._hierarchical:
            self._divisor = plan.list_divisor
        self._old_head = self._head_of(config)
        self._old_layers = layers_of(config)
        # A count that says how long the lists of the stages are (`num_feat_extract_layers` of `conv_dim`).
        self._stage_counts = {len(v) for v in fields.values() if isinstance(v, list | tuple)} - {self._old_layers}
        self._kept_layers = _layers_to_keep(fields, kinds, self._old_layers)
        self._indexed = (self._old_layers, len(self._kept_layers))
        if not self._old_layers and vision is not None:
            self._indexed = (layers_of(vision), 2)

    def field(self, name: str, kind: str | None, value: Any) -> Any:
        """The new value of a field."""
        if isinstance(value, list | tuple) and self._plan.layers and 2 < self._old_layers == len(value):
            return type(value)(self.field(name, kind, value[index]) for index in self._kept_layers)
        if kind == "period" and _is_size(value) and self._plan.layers:
            return min(value, 2 if name.endswith("period") else 1)
        if name == "num_key_value_heads" and value is None and self._divisor is None and self._head_counts:
            return size.HEADS
        if kind == "per_token" and value is None:
            return 2
        if name == "vocab_size" and value is None:
            return size.VOCABULARY
        if name == "prediction_length" and value is None:
            return size.AHEAD
        if name == "head_dim" and value is None and self._divisor is None and self._head_counts:
            return size.HEAD_DIM  # the same as the width over the heads, which not every model works out itself
        if kind is None:
            return value
        if kind == "layer_index":
            return self._indices(value)
        if kind == "rotary":
            return self._rotary(name, value)
        if isinstance(value, list | tuple):
            return self._several(kind, value)
        return self._one(kind, value) if _is_size(value) else value

    def _several(self, kind: str, values: Sequence[Any]) -> Any:
        if kind == "heads" or (kind in ("width", "inner") and self._divisor is None):
            return type(values)(  # type: ignore[call-arg]
                value if kind == "heads" or not _is_size(value) else _divided(value, self._plan.list_divisor)
                for value in values
            )
        return type(values)(  # type: ignore[call-arg]
            self._several(kind, value)
            if isinstance(value, list | tuple)
            else self._one(kind, value)
            if _is_size(value)
            else value
            for value in values
        )

    def _one(self, kind: str, value: int) -> int:
        plan = self._plan
        match kind:
            case "layers":
                if not plan.layers or value in self._stage_counts:
                    return value
                return min(value, len(self._kept_layers) if value == self._old_layers else 2)
            case "positions":
                return min(value, size.POSITIONS) if plan.positions else value
            case "window":
                return self._window(value) if plan.positions else value
            case "queries":
                return min(value, size.QUERIES)
            case "image":
                return self._image(value) if plan.positions else value
            case "vocabulary":
                return min(value, size.VOCABULARY) if plan.vocabulary else value
            case "experts":
                return min(value, size.EXPERTS)
            case "per_token" | "groups":
                return min(value, 2)
            case "group_choice" | "dense_first" | "shared":
                return min(value, 1)
        return self._width(kind, value) if self._divisor is None else self._scaled(kind, value)

    def _width(self, kind: str, value: int) -> int:
        match kind:
            case "heads":
                most = max(self._head_counts)
                return value if value == 1 else size.HEADS if value == most else size.KEY_VALUE_HEADS
            case "rope_dim":
                return size.ROPE_DIM
            case "head_dim":
                if self._rope is not None and value in (self._rope, self._nope):
                    return size.ROPE_DIM
                return size.HEAD_DIM
            case "rank":
                return min(value, size.RANK)
            case "half_width":
                return size.WIDTH // 2
            case "inner":
                return min(value, size.INNER)
        return value if value <= 16 else size.WIDTH

    def _scaled(self, kind: str, value: int) -> int:
        if kind == "heads":
            return value
        return value if value <= 16 and kind != "head_dim" else _divided(value, self._divisor or 1)

    def _window(self, value: int) -> int:
        """A window in pixels stays whole patches; one in patches is never larger than the last stage of the picture."""
        if self._patch and value >= 4 * self._patch:
            return 4 * self._patch
        return min(value, 2 if self._hierarchical else size.WINDOW)

    def _image(self, value: int) -> int:
        if not self._patch:
            return min(value, size.IMAGE)
        return min(value, self._patch * _patches_a_side(self._patch))

    def _rotary(self, name: str, value: Any) -> Any:
        """Sizes that share out the rotated half of a head, or that are a part of a head."""
        if not self._old_head:
            return value
        scale = self._new_head() / self._old_head
        if _is_size(value):
            return max(2, 2 * round(value * scale / 2))
        if not isinstance(value, list | tuple) or not value:
            return value
        if name.endswith("factor"):
            return value[: max(1, round(len(value) * scale))]
        return type(value)(_shared_out(value, max(round(sum(value) * scale), len(value))))

    def _new_head(self) -> int:
        if self._divisor is not None:
            return max(self._old_head // self._divisor, 1)
        return size.HEAD_DIM if self._rope is None else size.ROPE_DIM

    def sections(self, parts: Sequence[int], rotated: float) -> list[int]:
        """`parts` as the shares of half of what is `rotated` of a new head."""
        return _shared_out(parts, max(int(self._new_head() * rotated) // 2, len(parts)))

    def _head_of(self, config: PreTrainedConfig) -> int:
        """The size of one head: given (the rotated part where heads have two parts), or the width over the heads."""
        given = self._rope or field_of(config, "head_dim")
        if _is_size(given):
            return given
        width, heads = field_of(config, "hidden_size"), field_of(config, "num_attention_heads")
        return width // heads if _is_size(width) and _is_size(heads) else 0

    def _indices(self, value: Any) -> Any:
        """Indices of layers, moved in proportion; those that fall together become one."""
        old, new = self._indexed
        if not self._plan.layers or old <= new:
            return value
        if isinstance(value, list | tuple):
            return type(value)(dict.fromkeys(self._indices(one) for one in value))
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        return max(value, -new) if value < 0 else min(value * new // old, new)


def _fields(config: PreTrainedConfig) -> dict[str, Any]:
    """The public fields; `out_indices` of a backbone, which is kept under a private name, among them."""
    named = {("out_indices" if name == "_out_indices" else name): value for name, value in vars(config).items()}
    return {name: value for name, value in named.items() if not name.startswith("_")}


def layers_of(config: PreTrainedConfig) -> int:
    """How many layers the config has; 0 where it does not say."""
    names = ("num_hidden_layers", "num_layers", "n_layer", "depth")
    return next((value for name in names if _is_size(value := field_of(config, name))), 0)


def _is_size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 1 and all(_is_size(one) for one in value)


def _divided(value: int, divisor: int) -> int:
    return max(value // divisor, 1)


def _patch(config: PreTrainedConfig) -> int:
    patch = field_of(config, "patch_size")
    if isinstance(patch, list | tuple) and patch:
        patch = patch[-1]
    return patch if isinstance(patch, int) and not isinstance(patch, bool) else 0


def _patches_a_side(patch: int) -> int:
    """Four, or as many as make a picture of 64 pixels: hierarchical models halve it several times."""
    return max(4, 2 * (size.IMAGE // 2 // patch))


def _patch_scale(image: Any, patch: int) -> float | None:
    if isinstance(image, list | tuple) and image:
        image = image[0]
    if not _is_size(image) or not patch or image < patch:
        return None
    return float(min(1.0, _patches_a_side(patch) / (image // patch)))


def _layers_to_keep(fields: dict[str, Any], kinds: dict[str, str | None], layers: int) -> list[int]:
    """Which layers stay: one of each kind, at least two, and as many as any list of layer indices names."""
    a_layer = [v for v in fields.values() if isinstance(v, list | tuple) and len(v) == layers]
    seen: dict[str, int] = {}
    for index in range(layers):
        seen.setdefault(repr([values[index] for values in a_layer]), index)
    named = [len(v) for n, v in fields.items() if kinds[n] == "layer_index" and isinstance(v, list | tuple)]
    # A short list of kinds is a pattern that repeats over the layers (`block_types`).
    named += [
        len(v)
        for n, v in fields.items()
        if n.endswith(("_types", "_pattern")) and isinstance(v, list | tuple) and len(set(map(str, v))) > 1
    ]
    wanted = min(layers, max([2, *(count for count in named if count <= 4)]))
    kept = sorted(seen.values())[:6]
    for index in range(layers):
        if len(kept) >= wanted:
            break
        if index not in kept:
            kept.append(index)
    return sorted(kept)


def _shared_out(parts: Sequence[int], total: int) -> list[int]:
    """`parts` scaled to whole numbers that add up to `total`, none below one where the part was not zero."""
    exact = [part * total / sum(parts) for part in parts]
    shares = [max(int(part), 1 if part else 0) for part in exact]
    while sum(shares) != total:
        step = 1 if sum(shares) < total else -1
        index = max(range(len(parts)), key=lambda at: step * (exact[at] - shares[at]))
        shares[index] += step
    return shares


def _token_ids(configs: Sequence[PreTrainedConfig]) -> dict[int, int]:
    """New ids inside the small vocabulary: the same for the same token in every config, different for different ones."""
    found: set[int] = set()
    for config in configs:
        for name, value in vars(config).items():
            if field_kind(name) == "token":
                values = value if isinstance(value, list | tuple) else [value]
                found.update(one for one in values if isinstance(one, int) and one >= 0)
    small = {one for one in found if one < size.VOCABULARY}
    free = [one for one in range(size.VOCABULARY - 1, -1, -1) if one not in small]
    large = sorted(one for one in found if one >= size.VOCABULARY)
    return {one: free[at % len(free)] for at, one in enumerate(large)}


def _implied_sections(config: PreTrainedConfig) -> list[int] | None:
    """The parts of a rotated head that the model's code assumes where the config leaves them out, if it does."""
    rope = field_of(config, "rope_parameters")
    if not isinstance(rope, dict) or not rope or "mrope_section" in rope:
        return None
    modeling = sys.modules.get(type(config).__module__.replace(".configuration_", ".modeling_"))
    found = re.search(r"get\(\s*.mrope_section.,\s*\[([\d, ]+)\]", inspect.getsource(modeling)) if modeling else None
    return [int(part) for part in found[1].split(",")] if found else None


def _rotated(config: PreTrainedConfig, rope: dict[str, Any]) -> float:
    factor = rope.get("partial_rotary_factor") or field_of(config, "partial_rotary_factor")
    return float(factor or 1.0)


def _rebuilt(config: PreTrainedConfig, changed: dict[str, Any]) -> PreTrainedConfig:
    """A config of the same class with `changed` fields, through the class, which derives and checks the rest anew.

    What a parent's default gave this config beside the class's own defaults (the stages that a backbone hands out) stays.
    """
    try:
        usual = _fields(type(config)())
    except (ValueError, TypeError, AttributeError):  # a class without defaults: all its fields are the parent's
        usual = {}
    kept = {
        name: value
        for name, value in _fields(config).items()
        if name not in _DERIVED and (isinstance(value, PreTrainedConfig) or name not in usual or usual[name] != value)
    }
    return type(config)(**copy.deepcopy({**kept, **changed}))
