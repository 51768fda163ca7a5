"""How the rotated part of a head is shared out: sections of rotary embeddings."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedConfig

from .tree import field_of


def implied_sections(config: PreTrainedConfig) -> list[int] | None:
    """The parts of a rotated head that the model's code assumes where the config leaves them out, if it does."""
    rope = field_of(config, "rope_parameters")
    if not isinstance(rope, dict) or not rope or "mrope_section" in rope:
        return None
    modeling = sys.modules.get(type(config).__module__.replace(".configuration_", ".modeling_"))
    found = re.search(r"get\(\s*.mrope_section.,\s*\[([\d, ]+)\]", inspect.getsource(modeling)) if modeling else None
    return [int(part) for part in found[1].split(",")] if found else None


def rotated_part(config: PreTrainedConfig, rope: dict[str, Any]) -> float:
    """How much of a head is rotated, 0 to 1."""
    factor = rope.get("partial_rotary_factor") or field_of(config, "partial_rotary_factor")
    return float(factor or 1.0)


def shared_out(parts: Sequence[int], total: int) -> list[int]:
    """`parts` scaled to whole numbers that add up to `total`, none below one where the part was not zero."""
    exact = [part * total / sum(parts) for part in parts]
    shares = [max(int(part), 1 if part else 0) for part in exact]
    while sum(shares) != total:
        step = 1 if sum(shares) < total else -1
        index = max(range(len(parts)), key=lambda at: step * (exact[at] - shares[at]))
        shares[index] += step
    return shares
