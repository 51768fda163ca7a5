"""Decode speed of exported graphs against eager, against `torch.compile` and against `transformers.exporters`.

usage: python benchmarks/decode.py [--models smollm2,minilm] [--formats onnx] [--tokens 48] [--rounds 11] [--threads N]
                                   [--json FILE] [--artifacts DIR]

`dynamic`, `peer` and `eager` are driven by one greedy loop: a call of the prefill component, then one call of the decode
component for each token, each package through its own component call. `loop` is the engine's loop of `examples/decode_loops`
over a cache that stays where it is (a fixed-size cache; OpenVINO's own state). `compiled` is eager with a fixed-size cache and
`torch.compile` around its forward. An encoder is called on a batch of two texts again and again. Each contestant opens, compiles
and warms up in a forked child of its own, which stays; then they take turns, seconds apart. Ratios are ours ÷ other, the medians
of those of each round: above 1 is faster. Each computes with one thread for
every core, or with `--threads`. What is exported stays in `--artifacts`, where the next run finds it.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import onnxruntime  # noqa: F401 - imported before the fork, so that no case pays for it
import onnxscript  # noqa: F401 - the same
import torch
from rich.console import Console
from rich.table import Table
from transformers import (
    GenerationConfig,
    StaticCache,
    exporters,  # noqa: F401 - the same
)

from contestants import EXPORT, Call, open_eager, open_eager_encoder, open_ours, open_peer, sample_inputs
from export import MODELS
from isolated import StandingChild, in_child, write_report
from threads import limit
from transformers_exporters import AutoExportConfig, AutoHfExporter
from transformers_exporters.prepare.checkpoint import load_checkpoint

LOOPS = {
    "dynamo": "pytorch_loop",
    "onnx": "onnxruntime_loop",
    "openvino": "openvino_loop",
    "executorch": "executorch_loop",
}
#: Positions of the fixed-size caches.
CACHE = 128

Opened = tuple[dict[str, Call], set[str], str]


@functools.cache
def prompt(checkpoint: Path) -> torch.Tensor:
    """The ids of the second sample text, which is the longer one and so has no padding."""
    ids: torch.Tensor = sample_inputs(checkpoint, generation=True)["input_ids"][1]
    return ids


def decode(opened: Opened, checkpoint: Path, tokens: int) -> list[int]:
    """Greedy tokens of the first sample text, with a plain loop over the components."""
    components, names, cache_name = opened
    ids = prompt(checkpoint)[None]
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


def open_loop(directory: Path) -> Any:
    """The step of the engine's own loop."""
    artifact = importlib.import_module("artifact")
    loop = importlib.import_module(LOOPS[json.loads((directory / "manifest.json").read_text())["format"]])
    return loop.make(artifact.Decode(directory))[0]


def decode_loop(step: Any, checkpoint: Path, tokens: int) -> list[int]:
    """Greedy tokens of the first sample text through an engine's own loop."""
    ids = prompt(checkpoint).tolist()
    found: list[int] = importlib.import_module("artifact").generate(step, ids, tokens + 1)
    return found[:tokens]


def open_compiled(checkpoint: Path) -> Any:
    """The model with a compiled forward."""
    model = open_eager(checkpoint)[0]["decode"]
    model.forward = torch.compile(model.forward, dynamic=False)
    return model


def decode_compiled(model: Any, checkpoint: Path, tokens: int) -> list[int]:
    """Greedy tokens over a fixed-size cache; the prompt goes in token by token, so that one graph is compiled."""
    ids = prompt(checkpoint).tolist()
    cache = StaticCache(config=model.config, max_cache_len=CACHE)
    made: list[int] = []
    token, position = ids[0], 0
    while len(made) < tokens:
        position_ids = torch.tensor([[position]])
        logits = model(input_ids=torch.tensor([[token]]), position_ids=position_ids, past_key_values=cache).logits
        position += 1
        if position < len(ids):
            token = ids[position]
            continue
        token = int(logits[0, -1].argmax())
        made.append(token)
    return made


def ready(
    open_it: Callable[[], Any], loop: Callable[..., list[int]], checkpoint: Path, count: int, threads: int
) -> Callable[[], dict[str, Any]]:
    """Open one contestant and warm it up; what is returned measures its steps a second."""
    limit(threads)
    opened = open_it()

    def measure(steps: int = count) -> dict[str, Any]:
        with torch.no_grad():
            start = time.perf_counter()
            made = loop(opened, checkpoint, steps)
            seconds = time.perf_counter() - start
        return {"per_second": steps / seconds, "made": made}

    measure(max(2, count // 8))
    return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="smollm2,minilm")
    parser.add_argument("--formats", default="onnx")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json")
    parser.add_argument("--artifacts", type=Path)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "decode_loops"))
    cases: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    table = Table(title="steps a second (medians)")
    for column in ("model", "format", "who", "steps a second", "same output as eager"):
        table.add_column(column)
    for model in given.models.split(","):
        make, generation = MODELS[model]
        checkpoint = Path(in_child(lambda make=make: {"path": str(make())})["path"])
        for format in given.formats.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                artifacts = (given.artifacts or Path(scratch)) / model / format
                runs = _race(checkpoint, artifacts, format, given, generation=generation)
            speed = {who: statistics.median(c["per_second"] for c in runs if c["who"] == who) for who in _names(runs)}
            eager = next(case["made"] for case in runs if case["who"] == "eager")
            for case in runs:
                case["same"] = case.pop("made") == eager
            cases += [{"model": model, "format": format, **case} for case in runs]
            for who, value in speed.items():
                same = all(case["same"] for case in runs if case["who"] == who)
                table.add_row(model, format, who, f"{value:.1f}", str(same))
            ratios.update({f"{model}/{format}/{pair}": ratio for pair, ratio in _ratios(runs).items()})
            write_report(given.json, cases, ratios, threads=given.threads)
    Console().print(table)


def _ratios(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Medians of the ratios within a round: a machine that slows down between two rounds slows all contestants of one."""
    speed = {(case["who"], case["round"]): case["per_second"] for case in runs}
    pairs = [(ours, other) for ours in ("dynamic", "loop") for other in ("peer", "eager", "compiled")]
    found: dict[str, float] = {}
    for ours, other in [*pairs, ("loop", "dynamic")]:
        rounds = [r for who, r in speed if who == ours and (other, r) in speed]
        if rounds:
            found[f"{ours} ÷ {other}"] = statistics.median(speed[ours, r] / speed[other, r] for r in rounds)
    return found


def _names(runs: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(case["who"] for case in runs))


def _export_static(checkpoint: Path, directory: Path, format: str) -> dict[str, Any]:
    """One decode graph over a cache that the engine writes in place."""
    fields: dict[str, Any] = {"export_format": format, "dynamic": True}
    generation_config = GenerationConfig(cache_implementation="static", max_cache_len=CACHE)
    if format == "openvino":
        fields["stateful"], generation_config = True, None
    if format == "executorch":
        fields["alloc_graph_input"] = False  # the cache is the caller's memory, which the graph writes into
    config = AutoExportConfig.from_dict(fields)
    AutoHfExporter.from_config(config).export_model(
        load_checkpoint(str(checkpoint)),
        sample_inputs(checkpoint, generation=True),
        config,
        for_generation=True,
        multi_token_decode=True,
        generation_config=generation_config,
    ).save_pretrained(directory)
    return {}


def _export(checkpoint: Path, artifacts: Path, format: str, *, generation: bool) -> None:
    """The artifacts that are not there yet."""
    exports = {who: functools.partial(export, generation=generation) for who, export in EXPORT.items()}
    if generation:
        exports["static"] = _export_static
    for who, export in exports.items():
        if not (artifacts / f"{who}.complete").exists():
            in_child(functools.partial(export, checkpoint, artifacts / who, format))
            (artifacts / f"{who}.complete").touch()


def _race(
    checkpoint: Path, artifacts: Path, format: str, given: argparse.Namespace, *, generation: bool
) -> list[dict[str, Any]]:
    _export(checkpoint, artifacts, format, generation=generation)
    eager = open_eager if generation else open_eager_encoder
    loop = decode if generation else encode
    contestants: dict[str, tuple[Callable[[], Any], Callable[..., list[int]]]] = {
        "dynamic": (functools.partial(open_ours, artifacts / "ours"), loop),
        "peer": (functools.partial(open_peer, artifacts / "peer"), loop),
        "eager": (functools.partial(eager, checkpoint), loop),
    }
    if generation:
        contestants["loop"] = (functools.partial(open_loop, artifacts / "static"), decode_loop)
        contestants["compiled"] = (functools.partial(open_compiled, checkpoint), decode_compiled)
    count = given.tokens if generation else 4 * given.tokens
    runs: list[dict[str, Any]] = []
    with ExitStack() as ended:
        standing = {}
        for who, (open_it, drive) in contestants.items():
            child = StandingChild(functools.partial(ready, open_it, drive, checkpoint, count, given.threads))
            ended.callback(child.end)
            try:
                child.wait()
            except RuntimeError:
                if who != "peer":
                    raise
                continue
            standing[who] = child
        for number in range(given.rounds):
            runs += [{"who": who, "round": number, **child.run()} for who, child in standing.items()]
    return runs


if __name__ == "__main__":
    main()
