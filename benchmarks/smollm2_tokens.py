"""SmolLM2 on every backend: tokens of the reloaded artifact against eager, in float32, with a dynamic and a static cache.

usage: python benchmarks/smollm2_tokens.py CHECKPOINT [--formats onnx] [--caches static] [--tokens 64] [--json FILE]

CHECKPOINT is a directory with SmolLM2-135M's files, in float32. The artifact is exported from one sample text, saved and reloaded; then
it generates from a chat prompt, from three texts padded on the left, and with four beams. Each case runs in a forked child
and becomes a line of FILE; `generation.py --render` shows the last result of each.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from pathlib import Path
from typing import Any

import onnxscript  # noqa: F401 - imported before the fork, so that no case pays for it
import torch
from transformers import AutoTokenizer, GenerationConfig

from isolated import in_child
from results_file import add, finished
from transformers_exporters import AutoExportConfig, AutoHfExporter, ExportedModel
from transformers_exporters.prepare.checkpoint import load_checkpoint

FORMATS = ("dynamo", "onnx", "openvino", "executorch")
CACHES = ("dynamic", "static")
RESULTS = Path(__file__).parent / "results" / "smollm2_tokens.jsonl"
PROMPTS = {
    "one prompt": ["What is the capital of France?"],
    "three texts, left-padded": ["The quick brown fox", "Once upon a time there was a little", "1 + 1 ="],
    "four beams": ["What is the capital of France?"],
}
MAX_CACHE_LENGTH = 160


def run_case(checkpoint: Path, format: str, cache: str, tokens: int) -> dict[str, Any]:
    """Export, reload, generate and compare; for each prompt how many tokens of how many agree with eager's."""
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint, padding_side="left")
    model = load_checkpoint(str(checkpoint))
    if model.dtype != torch.float32:
        raise ValueError(f"{checkpoint} holds {model.dtype}; this comparison wants float32.")
    options: dict[str, Any] = {}
    if cache == "static":
        static = GenerationConfig(cache_implementation="static", max_cache_len=MAX_CACHE_LENGTH)
        options = {"multi_token_decode": True, "generation_config": static}
    config = AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    sample = dict(tokenizer("Hello world, this is", return_tensors="pt"))
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        exporter = AutoHfExporter.from_config(config)
        exported = exporter.export_model(model, sample, config=config, for_generation=True, **options)
        exported.save_pretrained(f"{scratch}/artifact")
        seconds = time.perf_counter() - started
        reloaded = ExportedModel.from_pretrained(f"{scratch}/artifact", trust_remote_code=True)
        equal = {}
        for name, texts in PROMPTS.items():
            prompt = tokenizer(texts, return_tensors="pt", padding=True)
            how = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False}
            how["num_beams"] = 4 if name == "four beams" else 1
            wanted, got = model.generate(**prompt, **how), reloaded.generate(**prompt, **how)
            equal[name] = f"{agreeing(wanted, got) - prompt['input_ids'].shape[1]} of {tokens}"
    return {"equal": equal, "export_seconds": round(seconds, 1)}


def agreeing(wanted: torch.Tensor, got: torch.Tensor) -> int:
    """The number of positions before the first in which a row differs."""
    length = min(wanted.shape[1], got.shape[1])
    same = (wanted[:, :length] == got[:, :length]).all(0)
    return length if bool(same.all()) else int(same.int().argmin())


def render(file: Path = RESULTS) -> list[str]:
    """The table of the last results, as lines of Markdown; none without results."""
    cases = finished(file, ("format", "cache"))
    if not cases:
        return []
    table = [
        "## SmolLM2",
        "",
        "Written from the results of `benchmarks/smollm2_tokens.py`: SmolLM2-135M in float32, tokens of the saved and reloaded",
        "artifact that equal eager's before the first that differs.",
        "",
        "| backend | cache | " + " | ".join(PROMPTS) + " | date |",
        "|---|---|" + "---|" * (len(PROMPTS) + 1),
    ]
    for (format, cache), case in sorted(cases.items(), key=lambda item: (FORMATS.index(item[0][0]), item[0][1])):
        found = case.get("equal", {})
        cells = [found.get(name, case.get("reason", "not run")) for name in PROMPTS]
        table.append(f"| {format} | {cache} | " + " | ".join(cells) + f" | {case['date'][:10]} |")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--caches", default=",".join(CACHES))
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--json", type=Path, default=RESULTS)
    given = parser.parse_args()
    for format in given.formats.split(","):
        for cache in given.caches.split(","):
            try:
                result = in_child(functools.partial(run_case, given.checkpoint, format, cache, given.tokens))
            except RuntimeError as error:
                result = {"reason": f"failed: {error}"}
            add(given.json, {"format": format, "cache": cache, **result})
            print(format, cache, result.get("equal") or result.get("reason"), flush=True)


if __name__ == "__main__":
    main()
