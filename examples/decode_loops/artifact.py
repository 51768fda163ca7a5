"""What the loops read from an artifact: one decode graph's names, shapes and state, from its `manifest.json`."""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tensor:
    """One input or output: its name in the model, the engine's name for it, its dtype and shape (a name: any size)."""

    name: str
    port: str
    dtype: str
    shape: list[int | str]


class Decode:
    """The decode graph of an artifact.

    Attributes:
        file: The graph.
        weights: The file of its weights, where the engine is told that.
        inputs: In the engine's order.
        outputs: In the engine's order.
        state: Pairs (input, output) of tensors that carry state from step to step.
        length: The cache's length, where it is fixed.
    """

    def __init__(self, directory: Path) -> None:
        manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
        component = manifest["components"]["decode"]
        self.file, *others = (directory / name for name in component["files"])
        self.weights: Path | None = others[0] if others else None
        self.inputs = [Tensor(t["name"], t["port"], t["dtype"], t["shape"]) for t in component["inputs"]]
        self.outputs = [Tensor(t["name"], t["port"], t["dtype"], t["shape"]) for t in component["outputs"]]
        by_input, by_output = {t.name: t for t in self.inputs}, {t.name: t for t in self.outputs}
        self.state = [(by_input[i], by_output[o]) for i, o in component["state"]]
        self.options: dict[str, Any] = component["options"]
        self.length: int | None = manifest["generation"]["max_cache_len"]

    def zeros(self, tensor: Tensor) -> np.ndarray:
        """An empty state tensor for a batch of one: every position of a cache of fixed size, zero."""
        sizes = {"batch": 1, "cache": self.length}
        return np.zeros([sizes[s] if isinstance(s, str) else s for s in tensor.shape], tensor.dtype)

    def feeds(self, ids: list[int], past: int) -> dict[str, np.ndarray]:
        """The inputs of one step that are no state, by port, for tokens at the positions from `past` on."""
        made = {
            "input_ids": lambda t: np.array([ids]),
            "position_ids": lambda t: np.arange(past, past + len(ids))[None],
            "attention_mask": lambda t: self._mask(t, len(ids), past),
        }
        stateful = {i.name for i, _ in self.state}
        return {t.port: made[t.name](t).astype(t.dtype) for t in self.inputs if t.name not in stateful}

    def _mask(self, tensor: Tensor, queries: int, past: int) -> np.ndarray:
        """All tokens so far; over a cache of fixed size: for each query, the positions up to its own."""
        if len(tensor.shape) == 2:
            return np.ones((1, past + queries))
        seen = np.arange(self.length)[None] <= np.arange(past, past + queries)[:, None]
        if tensor.dtype == "bool":
            return seen[None, None]
        return np.where(seen, 0.0, np.finfo(tensor.dtype).min)[None, None]


def generate(step: Callable[[list[int], int], np.ndarray], prompt: list[int], count: int) -> list[int]:
    """Greedy search: the prompt at once, then token by token. `step` takes ids and their first position, gives logits.

    A step at position 0 begins a new sequence.
    """
    ids, past, found = prompt, 0, []
    for _ in range(count):
        token = int(step(ids, past)[0, -1].argmax())
        found.append(token)
        ids, past = [token], past + len(ids)
    return found


def main(make: Callable[[Decode], tuple[Callable[[list[int], int], np.ndarray], Callable[[], int]]]) -> None:
    """Parse the command line; for each prompt, generate and print the ids and the bytes that the last step copied."""
    parser = argparse.ArgumentParser()
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--ids", action="append", help="a prompt's token ids; given again: the next prompt's")
    parser.add_argument("--max-new-tokens", type=int, default=16)
    options = parser.parse_args()
    step, copied = make(Decode(options.artifact))
    for ids in options.ids or ["1,5,9"]:
        found = generate(step, [int(i) for i in ids.split(",")], options.max_new_tokens)
        print(json.dumps({"ids": found, "bytes_per_step": copied()}))
