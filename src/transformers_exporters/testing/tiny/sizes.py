"""The sizes of one config: what each field becomes after a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedConfig

from . import plan as size
from .fields import field_kind
from .layers import layers_to_keep
from .plan import Plan
from .rotary import shared_out
from .tree import field_of, fields_of, is_size, is_sizes, layers_of, patch_of, patches_a_side


class Sizes:
    """The sizes of one config, old and new."""

    def __init__(self, config: PreTrainedConfig, plan: Plan, vision: PreTrainedConfig | None) -> None:
        self._plan = plan
        fields = fields_of(config)
        kinds = {name: field_kind(name) for name in fields}
        self._patch = patch_of(config)
        self._widths = {v for n, v in fields.items() if kinds[n] == "width" and is_size(v)}
        self._head_counts = {v for n, v in fields.items() if kinds[n] == "heads" and is_size(v)}
        self._rope = next((v for n, v in fields.items() if kinds[n] == "rope_dim" and is_size(v)), None)
        self._nope = next((v for n, v in fields.items() if "nope_head_dim" in n and is_size(v)), None)
        self._divisor = plan.divisor
        self._hierarchical = any(
            is_sizes(v) and (kinds[n] in ("layers", "heads") or (kinds[n] == "width" and len(set(v)) > 1))
            for n, v in fields.items()
        )
        if plan.divisor is None and self._hierarchical:
            self._divisor = plan.list_divisor
        self._old_head = self._head_of(config)
        self._old_layers = layers_of(config)
        # A count that says how long the lists of the stages are (`num_feat_extract_layers` of `conv_dim`).
        self._stage_counts = {len(v) for v in fields.values() if isinstance(v, list | tuple)} - {self._old_layers}
        self._kept_layers = layers_to_keep(fields, kinds, self._old_layers)
        self._indexed = (self._old_layers, len(self._kept_layers))
        if not self._old_layers and vision is not None:
            self._indexed = (layers_of(vision), 2)

    def field(self, name: str, kind: str | None, value: Any) -> Any:
        """The new value of a field."""
        if isinstance(value, list | tuple) and self._plan.layers and 2 < self._old_layers == len(value):
            if "source" in name:
                return type(value)(self._sources(value))
            return type(value)(self.field(name, kind, value[index]) for index in self._kept_layers)
        if kind == "period" and is_size(value) and self._plan.layers:
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
            return (
                size.HEAD_DIM * self._plan.scale
            )  # the same as the width over the heads, which not every model works out itself
        if kind is None and name.endswith("groups") and is_size(value) and value > 16 and value in self._widths:
            kind = "width"  # a convolution of each channel by itself
        if kind is None:
            return value
        if kind == "layer_index":
            return self._indices(value)
        if kind == "rotary":
            return self._rotary(name, value)
        if isinstance(value, list | tuple):
            return self._several(kind, value)
        return self._one(kind, value) if is_size(value) else value

    def _sources(self, value: Sequence[Any]) -> list[Any]:
        """For each layer that stays the layer that it reads from; itself where that one is gone."""
        kept = self._kept_layers
        return [kept.index(value[index] if value[index] in kept else index) for index in kept]

    def _several(self, kind: str, values: Sequence[Any]) -> Any:
        if kind == "heads" or (kind in ("width", "inner") and self._divisor is None):
            return type(values)(  # type: ignore[call-arg]
                value if kind == "heads" or not is_size(value) else _divided(value, self._plan.list_divisor)
                for value in values
            )
        return type(values)(  # type: ignore[call-arg]
            self._several(kind, value)
            if isinstance(value, list | tuple)
            else self._one(kind, value)
            if is_size(value)
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
        scale = self._plan.scale
        match kind:
            case "heads":
                most = max(self._head_counts)
                return value if value == 1 else size.HEADS if value == most else size.KEY_VALUE_HEADS
            case "rope_dim":
                return size.ROPE_DIM * scale
            case "head_dim":
                rotated = self._rope is not None and value in (self._rope, self._nope)
                return (size.ROPE_DIM if rotated else size.HEAD_DIM) * scale
            case "rank":
                return min(value, size.RANK)
            case "half_width":
                return size.WIDTH * scale // 2
            case "inner":
                return min(value, size.INNER * scale)
        return value if value <= 16 else size.WIDTH * scale

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
        return min(value, self._patch * patches_a_side(self._patch))

    def _rotary(self, name: str, value: Any) -> Any:
        """Sizes that share out the rotated half of a head, or that are a part of a head."""
        if not self._old_head:
            return value
        scale = self._new_head() / self._old_head
        if is_size(value):
            return max(2, 2 * round(value * scale / 2))
        if not isinstance(value, list | tuple) or not value:
            return value
        if name.endswith("factor"):
            return value[: max(1, round(len(value) * scale))]
        return type(value)(shared_out(value, max(round(sum(value) * scale), len(value))))

    def _new_head(self) -> int:
        if self._divisor is not None:
            return max(self._old_head // self._divisor, 1)
        return (size.HEAD_DIM if self._rope is None else size.ROPE_DIM) * self._plan.scale

    def sections(self, parts: Sequence[int], rotated: float) -> list[int]:
        """`parts` as the shares of half of what is `rotated` of a new head."""
        return shared_out(parts, max(int(self._new_head() * rotated) // 2, len(parts)))

    def _head_of(self, config: PreTrainedConfig) -> int:
        """The size of one head: given (the rotated part where heads have two parts), or the width over the heads."""
        given = self._rope or field_of(config, "head_dim")
        if is_size(given):
            return given
        width, heads = field_of(config, "hidden_size"), field_of(config, "num_attention_heads")
        return width // heads if is_size(width) and is_size(heads) else 0

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


def _divided(value: int, divisor: int) -> int:
    return max(value // divisor, 1)
