"""Which layers of a config stay, and where indices of layers move to."""

from __future__ import annotations

from typing import Any


def layers_to_keep(fields: dict[str, Any], kinds: dict[str, str | None], layers: int) -> list[int]:
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
