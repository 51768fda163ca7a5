"""Shrink a config with all its sub-configs, and keep them consistent with each other."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from transformers import PreTrainedConfig

from . import plan as size
from .fields import field_kind
from .plan import Plan
from .rotary import implied_sections, rotated_part
from .sizes import Sizes
from .tree import configs_of, field_of, fields_of, layers_of, patch_of, patch_scale

#: Derived by the config class from the layers; given back, the old ones would contradict the new.
_DERIVED = {"stage_names", "out_features"}


#: From the outermost config to a field: `("vision_config", "hidden_size")`.
Path = tuple[str, ...]


def shrink(config: PreTrainedConfig, plan: Plan, fixed: Mapping[Path, Any] = MappingProxyType({})) -> PreTrainedConfig:
    """A new config of the same class, with every size of it and of its sub-configs shrunk after `plan`.

    Args:
        config: The one to shrink; is left as it is.
        plan: How much.
        fixed: Values that these fields get whatever the plan says.

    Raises:
        Exception: Whatever the config class raises for a combination that it refuses.
    """
    return _Tree(config, plan, fixed).shrunk(config)


def shrunk_fields(config: PreTrainedConfig, plan: Plan, fixed: Mapping[Path, Any]) -> dict[Path, tuple[Any, Any]]:
    """Every field with its value before and after `shrink`, also where the config classes refuse the result."""
    tree = _Tree(config, plan, fixed)
    with contextlib.suppress(Exception):  # the classes' objections are known already: they are why this is asked
        tree.shrunk(config)
    return tree.fields


class _Tree:
    """What all configs of one model have to agree on: token ids, and how much fewer patches an image has."""

    def __init__(self, config: PreTrainedConfig, plan: Plan, fixed: Mapping[Path, Any]) -> None:
        self.plan = plan
        self._fixed = fixed
        #: Before and after, of every field.
        self.fields: dict[Path, tuple[Any, Any]] = {}
        self._configs = list(configs_of(config))
        self._ids = _token_ids(self._configs)
        self._free_id = next(one for one in range(size.VOCABULARY - 1, 0, -1) if one not in self._ids.values())
        # The tower whose layers are meant by indices in a config that has no layers.
        self._vision = next((part for part in self._configs if "vi" in part.model_type and layers_of(part)), None)
        self._image_scale = next(
            (
                scale
                for part in self._configs
                if (scale := patch_scale(field_of(part, "image_size"), patch_of(part))) is not None
            ),
            1.0,
        )

    def shrunk(self, config: PreTrainedConfig, at: Path = ()) -> PreTrainedConfig:
        sizes = Sizes(config, self.plan, self._vision)
        changed: dict[str, Any] = {}
        for name, value in fields_of(config).items():
            if isinstance(value, PreTrainedConfig):
                changed[name] = self.shrunk(value, (*at, name))
            elif isinstance(value, dict):
                new = {key: self._field(sizes, key, inner) for key, inner in value.items() if isinstance(key, str)}
                if name != "label2id" and new and new != value:
                    changed[name] = new
            elif name not in _DERIVED:
                new = self._field(sizes, name, value)
                if new != value:
                    changed[name] = new
        if parts := implied_sections(config):
            rope = changed.get("rope_parameters", config.rope_parameters)
            changed["rope_parameters"] = {**rope, "mrope_section": sizes.sections(parts, rotated_part(config, rope))}
        changed |= {path[-1]: value for path, value in self._fixed.items() if path[:-1] == at}
        before = fields_of(config)
        self.fields |= {
            (*at, name): (before.get(name), changed.get(name, before.get(name))) for name in {**before, **changed}
        }
        return _rebuilt(config, changed)

    def _field(self, sizes: Sizes, name: str, value: Any) -> Any:
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


def _rebuilt(config: PreTrainedConfig, changed: dict[str, Any]) -> PreTrainedConfig:
    """A config of the same class with `changed` fields, through the class, which derives and checks the rest anew.

    What a parent's default gave this config beside the class's own defaults (the stages that a backbone hands out) stays.
    """
    try:
        usual = fields_of(type(config)())
    except Exception:  # noqa: BLE001 -- a class without a default says so in many ways; all its fields are given
        usual = {}
    kept = {
        name: value
        for name, value in fields_of(config).items()
        if name not in _DERIVED and (isinstance(value, PreTrainedConfig) or name not in usual or usual[name] != value)
    }
    return type(config)(**copy.deepcopy({**kept, **changed}))
