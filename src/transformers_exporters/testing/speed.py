"""Tokens per second of an exported language model against eager, in turns in one process.

`python -m transformers_exporters.testing.speed CHECKPOINT ARTIFACT [--tokens N] [--rounds N] [--batch N]` prints JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from ..hf.exported import ExportedModel
from ..hf.text import encode, load_tokenizer

_PROMPT = "Explain in a few sentences why the sky is blue."


def in_turns(contestants: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each call. Every round calls each contestant once, after one warm-up of each that is not counted.

    Taking turns spreads what the machine does besides over all of them.
    """
    for contestant in contestants.values():
        contestant()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            contestant()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def compare(checkpoint: str, artifact: str, *, tokens: int, rounds: int, batch: int = 1) -> dict[str, Any]:
    """Greedy generation of exactly `tokens` tokens by both; medians over the rounds, the prompt's pass included."""
    tokenizer = load_tokenizer(checkpoint)
    inputs = encode(tokenizer, [_PROMPT] * batch)
    exported = ExportedModel.from_pretrained(artifact, trust_remote_code=True)
    eager = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    settings = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False}
    seconds = in_turns(
        {
            "exported": lambda: exported.generate(**inputs, **settings),
            "eager": lambda: eager.generate(**inputs, **settings),
        },
        rounds,
    )
    speed = {name: batch * tokens / statistics.median(taken) for name, taken in seconds.items()}
    return {**speed, "ratio": speed["exported"] / speed["eager"], "tokens": tokens, "rounds": rounds, "batch": batch}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("artifact")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1)
    given = parser.parse_args()
    print(
        json.dumps(
            compare(given.checkpoint, given.artifact, tokens=given.tokens, rounds=given.rounds, batch=given.batch)
        )
    )
