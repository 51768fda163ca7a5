"""Export time, peak memory and artifact size, side by side with `transformers.exporters`.

usage: python benchmarks/export.py [--models smollm2,minilm] [--formats onnx] [--rounds 3] [--json FILE]

The packages take turns, each export in a forked child of its own. Ratios are ours ÷ peer: below 1 is less. Each
artifact is then reloaded, in another child, and called with the inputs that it was exported with; `difference from eager`
is the largest absolute difference of its logits (or last hidden state) from the model's own.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
from pathlib import Path
from typing import Any

import onnxscript  # noqa: F401 - imported before the fork, so that no case pays for it
import torch
from rich.console import Console
from rich.table import Table
from transformers import exporters  # noqa: F401 - the same

from contestants import EXPORT, OPEN, open_eager, open_eager_encoder, sample_inputs
from isolated import in_child, size_of, write_report
from transformers_exporters.testing.checkpoints import cache_directory, minilm, smollm2, tiny_chat_model

MODELS = {
    "smollm2": (smollm2, True),
    "minilm": (minilm, False),
    "tiny": (lambda: tiny_chat_model(cache_directory() / "tiny-chat-llama"), True),
}


def measure(who: str, checkpoint: Path, directory: Path, format: str, *, generation: bool) -> dict[str, Any]:
    """One export, in this process."""
    seconds = EXPORT[who](checkpoint, directory, format, generation=generation)
    return {"seconds": seconds, "bytes": size_of(directory)}


def difference(who: str, checkpoint: Path, directory: Path, *, generation: bool) -> dict[str, float]:
    """Largest absolute difference of the reloaded artifact from the model, at the last token of a generative model, at every token of others."""
    inputs = sample_inputs(checkpoint, generation=generation)
    eager = open_eager if generation else open_eager_encoder
    component, name = ("prefill", "logits") if generation else ("model", "last_hidden_state")
    kept = inputs["attention_mask"].bool()
    if generation:
        inputs["position_ids"] = (kept.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        components, names, _ = OPEN[who](directory)
        call = components.get(component) or next(iter(components.values()))
        given: dict[str, Any] = dict(inputs)
        if generation:
            given = {key: value for key, value in given.items() if key in names} | {"use_cache": True}
        rows = (slice(None), -1) if generation else kept  # a prefill of ours gives the last row's logits
        ours = call(**given)[name][rows]
        theirs = eager(checkpoint)[0][component](**inputs)[name][rows]
    return {"difference": float((ours - theirs).abs().max())}


def one_case(who: str, checkpoint: Path, format: str, *, generation: bool) -> dict[str, Any]:
    """Export, then compare, each in a child of its own. An artifact that does not run has no `difference`."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "artifact"
        case = in_child(functools.partial(measure, who, checkpoint, directory, format, generation=generation))
        try:
            compared = in_child(functools.partial(difference, who, checkpoint, directory, generation=generation))
        except RuntimeError:
            return {**case, "difference": float("nan")}
    return {**case, "difference": compared["difference"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="smollm2,minilm")
    parser.add_argument("--formats", default="onnx")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    cases: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    table = Table(title="export: ours, the peer, ours ÷ peer (medians)")
    for column in ("model", "format", "", "ours", "peer", "ratio"):
        table.add_column(column, justify="left" if column in ("model", "format", "") else "right")
    for model in given.models.split(","):
        make, generation = MODELS[model]
        # Made in a child too: torch's threads must not have started before a fork.
        checkpoint = Path(in_child(lambda make=make: {"path": str(make())})["path"])
        for format in given.formats.split(","):
            runs: dict[str, list[dict[str, Any]]] = {who: [] for who in EXPORT}
            for round_number in range(given.rounds):
                for who in EXPORT:
                    case = one_case(who, checkpoint, format, generation=generation)
                    runs[who].append(case)
                    cases.append({"model": model, "format": format, "who": who, "round": round_number, **case})
            for name, unit, value in (
                ("load + export + save", "s", lambda case: sum(case["seconds"].values())),
                ("export + save", "s", lambda case: case["seconds"]["export"] + case["seconds"]["save"]),
                ("CPU time of all three", "s", lambda case: case["cpu_seconds"]),
                ("peak memory", "MB", lambda case: case["peak_bytes"] / 1e6),
                ("peak memory above the imports", "MB", lambda c: (c["peak_bytes"] - c["start_bytes"]) / 1e6),
                ("artifact", "MB", lambda case: case["bytes"] / 1e6),
                ("difference from eager", "e-6", lambda case: case["difference"] * 1e6),
            ):
                ours, peer = (statistics.median(map(value, runs[who])) for who in ("ours", "peer"))
                ratios[f"{model}/{format}/{name}"] = ours / peer
                table.add_row(model, format, name, f"{ours:,.1f} {unit}", f"{peer:,.1f} {unit}", f"{ours / peer:.2f}")
            artifact = statistics.median(case["bytes"] for case in runs["ours"])
            weights = sum(file.stat().st_size for file in checkpoint.glob("*.safetensors"))
            ratios[f"{model}/{format}/our artifact ÷ the checkpoint's weights"] = artifact / weights
    Console().print(table)
    write_report(given.json, cases, ratios)


if __name__ == "__main__":
    main()
