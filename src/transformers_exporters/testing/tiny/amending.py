"""Other values for single fields of a shrunk config, after what the model said about the ones that it refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from transformers import PreTrainedConfig

from . import plan as size
from .complaint import Complaint
from .config import Path, shrunk_fields
from .fields import field_kind
from .plan import Plan
from .tree import is_size
from .usual import usual

#: A plain rotary embedding, for a kind of layers that has none.
_ROTARY = {"rope_type": "default", "rope_theta": 10000.0}


class TooLargeError(ValueError):
    """The model is not tiny.

    Attributes:
        sizes: The sizes of the axes of its largest parameters.
    """

    def __init__(self, parameters: int, sizes: tuple[int, ...]) -> None:
        """Say how many million parameters there are."""
        super().__init__(f"it still has {parameters / 1e6:.0f} million parameters after shrinking")
        self.sizes = sizes


def amended(
    config: PreTrainedConfig, plan: Plan, fixed: dict[Path, Any], problem: Exception, complaint: Complaint
) -> Iterator[dict[Path, Any]]:
    """More fixed fields, the likeliest first; each answers the complaint in one way.

    Args:
        config: The one that is shrunk.
        plan: The plan after which it is shrunk.
        fixed: What was fixed when the model complained.
        problem: The complaint as it was raised.
        complaint: The same, read.
    """
    fields = shrunk_fields(config, plan, fixed)
    if isinstance(problem, TooLargeError):
        yield from ({**fixed, **change} for change in _smaller(fields, problem.sizes))
        return
    for change in (
        *_demanded(fields, complaint),
        *_given(config, fields, complaint),
        *_agreeing(fields, complaint),
        *_taken_back(fields, complaint),
        *_pointing(fields),
    ):
        yield {**fixed, **change}


def demanded(message: str) -> dict[str, int]:
    """Field and value of every "field must be 0" and "requires field=1" in the message."""
    pattern = r"`?(\w+)`? must be (\d+|False|True)\b|requires `?(\w+)`? ?==? ?(\d+)\b"
    found = re.findall(pattern, message)
    words = {"False": False, "True": True}
    return {one or other: words[value] if value in words else int(value or same) for one, value, other, same in found}


def _demanded(fields: dict[Path, tuple[Any, Any]], complaint: Complaint) -> Iterator[dict[Path, Any]]:
    for name, value in demanded(complaint.message).items():
        change = {path: value for path, (_, now) in fields.items() if path[-1] == name and now != value}
        if change:
            yield change


def _given(
    config: PreTrainedConfig, fields: dict[Path, tuple[Any, Any]], complaint: Complaint
) -> Iterator[dict[Path, Any]]:
    """With a value for a field that has none: all that are None in the lines that raised, then one after the other."""
    parts = dict(_places(config))
    if lacking := re.search(r"'(\w+)' object has no attribute '(\w+)'", complaint.message):
        places = [at for at, part in parts.items() if type(part).__name__ == lacking[1]]
        if places:
            yield {(*at, lacking[2]): usual(lacking[2], parts[at], complaint) for at in places}
    kinds = {at: part.layer_types for at, part in parts.items() if getattr(part, "layer_types", None)}
    if rotary := {
        (*at, "rope_parameters"): {kind: dict(_ROTARY) for kind in layers}
        for at, layers in kinds.items()
        if "rope_parameters" in complaint.names and complaint.message.strip("'") in layers
    }:
        yield rotary
    empty = {path for path, (_, now) in fields.items() if now is None}
    # The code may ask for a field under the name that the config maps to it.
    names = {
        path: {path[-1], *(name for name, field in type(parts[path[:-1]]).attribute_map.items() if field == path[-1])}
        for path in empty
    }
    named = [
        name
        for name in dict.fromkeys((*complaint.nothing, *complaint.names))
        if any(name in known for known in names.values())
    ]
    together = (
        [name for name in named if name in complaint.nothing],
        [name for name in named if re.search(rf"\b{name}\b", complaint.message)],
    )
    for group in [*(group for group in together if len(group) > 1), *([name] for name in named)]:
        yield {path: usual(path[-1], parts[path[:-1]], complaint) for path in empty if names[path] & set(group)}


def _agreeing(fields: dict[Path, tuple[Any, Any]], complaint: Complaint) -> Iterator[dict[Path, Any]]:
    """With one field of the size that was wanted made the size that was found, and the other way round."""
    for found, wanted in complaint.pairs:
        for one, other in ((wanted, found), (found, wanted)):
            paths = [path for path, (_, now) in fields.items() if now == one and is_size(now) and one > 2]
            for path in sorted(paths, key=lambda path: path[-1] not in complaint.names):
                yield {path: other}


def _taken_back(fields: dict[Path, tuple[Any, Any]], complaint: Complaint) -> Iterator[dict[Path, Any]]:
    """With the default of the fields that the complaint names: of all of them, then of each."""
    changed = {
        path: before
        for path, (before, now) in fields.items()
        if before is not None and not isinstance(before, PreTrainedConfig) and before != now
    }
    named = [
        path
        for path in changed
        if path[-1] in complaint.names and (path[-1] in complaint.message or field_kind(path[-1]) != "layers")
    ]
    if len(named) > 1:
        yield {path: changed[path] for path in named}
    for path in sorted(named, key=lambda path: complaint.names.index(path[-1])):
        yield {path: changed[path]}


def _pointing(fields: dict[Path, tuple[Any, Any]]) -> Iterator[dict[Path, Any]]:
    """With the first layer as the one that is special, where the config may name such layers and names none."""
    empty = [path for path, (_, now) in fields.items() if now is None and field_kind(path[-1]) == "layer_index"]
    if empty:
        yield {path: [0] for path in empty}


def _smaller(fields: dict[Path, tuple[Any, Any]], sizes: tuple[int, ...]) -> Iterator[dict[Path, Any]]:
    """With fields that are the size of an axis of the largest parameters, or a part or a multiple of it, an eighth."""
    for factors in ((1,), (1, 2, 3, 4, 8)):
        large = {one * factor for one in sizes for factor in factors}
        large |= {one // factor for one in sizes for factor in factors if one % factor == 0}
        change: dict[Path, Any] = {}
        for path, (_, now) in fields.items():
            values = now if isinstance(now, list | tuple) else [now]
            if field_kind(path[-1]) in ("vocabulary", "positions", "image", "token", "layer_index", "layers"):
                continue
            if any(is_size(one) and one > size.WIDTH and one in large for one in values):
                smaller = [max(one // 8, 1) if is_size(one) and one > size.WIDTH else one for one in values]
                change[path] = type(now)(smaller) if isinstance(now, list | tuple) else smaller[0]
        if change:
            yield change


def _places(config: PreTrainedConfig, at: Path = ()) -> Iterator[tuple[Path, PreTrainedConfig]]:
    yield at, config
    for name, value in vars(config).items():
        if isinstance(value, PreTrainedConfig):
            yield from _places(value, (*at, name))
