"""Decode speed of exported graphs against eager and against `transformers.exporters`.

usage: python benchmarks/decode.py [--models smollm2,minilm] [--formats onnx] [--tokens 48] [--rounds 3] [--json FILE]

One greedy loop drives all contestants: a call of the prefill component, then one call of the decode component for each
token, each package through its own component call. An encoder is called on a batch of two texts again and again. The
contestants take turns, each in a forked child of its own; opening and one warm-up are not counted. Ratios are
ours ÷ other: above 1 is faster.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime  # noqa: F401 - imported before the fork, so that no case pays for it
import onnxscript  # noqa: F401 - the same
import torch
from rich.console import Console
from rich.table import Table
from transformers import exporters  # noqa: F401 - the same

from contestants import EXPORT, Call, open_eager, open_eager_encoder, open_ours, open_peer, sample_inputs
from export import MODELS
from isolated import in_child, write_report

Opened = tuple[dict[str, Call], set[str], str]


def decode(opened: Opened, checkpoint: Path, tokens: int) -> list[int]:
    """Greedy tokens of the first sample text, with a plain loop over the components."""
    components, names, cache_name = opened
    ids = sample_inputs(checkpoint, generation=True)["input_ids"][1:]
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": True}
    given["position_ids"] = torch.arange(ids.shape[1])[None]
    outputs = components["prefill"](**{k: v for k, v in given.items() if k in names or k == "use_cache"})
    made: list[int] = []
    length = ids.shape[1]
    for _ in range(tokens):
        token = outputs["logits"][:, -1:].argmax(-1)
        made.append(int(token))
        length += 1
        step = {
            "input_ids": token,
            "attention_mask": torch.ones(1, length, dtype=torch.int64),
            "position_ids": torch.tensor([[length - 1]]),
            "use_cache": True,
            cache_name: outputs[cache_name] if cache_name in outputs else outputs["past_key_values"],
        }
        outputs = components["decode"](**{k: v for k, v in step.items() if k in names or k == "use_cache"})
    return made


def encode(opened: Opened, checkpoint: Path, times: int) -> list[int]:
    """Call an encoder `times` times; returns a few numbers of the last output, rounded."""
    (call,) = opened[0].values()
    inputs = sample_inputs(checkpoint, generation=False)
    for _ in range(times):
        outputs = call(**inputs)
    return [round(float(value) * 1000) for value in outputs["last_hidden_state"][0, 0, :4]]


def measure(
    open_it: Callable[[], Opened], loop: Callable[..., list[int]], checkpoint: Path, count: int
) -> dict[str, Any]:
    """Steps a second of one contestant."""
    with torch.no_grad():
        opened = open_it()
        loop(opened, checkpoint, max(2, count // 8))
        start = time.perf_counter()
        made = loop(opened, checkpoint, count)
        seconds = time.perf_counter() - start
    return {"per_second": count / seconds, "made": made}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="smollm2,minilm")
    parser.add_argument("--formats", default="onnx")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    given = parser.parse_args()
    cases: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    table = Table(title="steps a second (medians)")
    for column in ("model", "format", "ours", "peer", "eager", "ours ÷ peer", "ours ÷ eager"):
        table.add_column(column, justify="left" if column in ("model", "format") else "right")
    for model in given.models.split(","):
        make, generation = MODELS[model]
        checkpoint = Path(in_child(lambda make=make: {"path": str(make())})["path"])
        for format in given.formats.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                runs = _race(checkpoint, Path(scratch), format, given, generation=generation)
            cases += [{"model": model, "format": format, **case} for case in runs]
            speed = {
                who: statistics.median(case["per_second"] for case in runs if case["who"] == who)
                for who in ("ours", "peer", "eager")
            }
            to_peer, to_eager = speed["ours"] / speed["peer"], speed["ours"] / speed["eager"]
            ratios |= {f"{model}/{format}/ours÷peer": to_peer, f"{model}/{format}/ours÷eager": to_eager}
            table.add_row(model, format, *(f"{s:.1f}" for s in speed.values()), f"{to_peer:.2f}", f"{to_eager:.2f}")
            same = len({tuple(case["made"]) for case in runs}) == 1
            table.caption = "all made the same" if same else "the outputs differ: see the JSON"
    Console().print(table)
    write_report(given.json, cases, ratios)


def _race(
    checkpoint: Path, scratch: Path, format: str, given: argparse.Namespace, *, generation: bool
) -> list[dict[str, Any]]:
    for who, export in EXPORT.items():
        in_child(lambda who=who, export=export: export(checkpoint, scratch / who, format, generation=generation))
    eager = open_eager if generation else open_eager_encoder
    contestants: dict[str, Callable[[], Opened]] = {
        "ours": functools.partial(open_ours, scratch / "ours"),
        "peer": functools.partial(open_peer, scratch / "peer"),
        "eager": functools.partial(eager, checkpoint),
    }
    loop = decode if generation else encode
    count = given.tokens if generation else 4 * given.tokens
    return [
        {"who": who, "round": number, **in_child(functools.partial(measure, open_it, loop, checkpoint, count))}
        for number in range(given.rounds)
        for who, open_it in contestants.items()
    ]


if __name__ == "__main__":
    main()
