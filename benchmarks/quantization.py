"""What quantization costs and brings: bytes, speed and accuracy of every recipe on real weights.

usage: python benchmarks/quantization.py [--formats onnx,openvino,executorch,dynamo] [--recipes int8,int4] [--models smollm2]
                                         [--tokens 48] [--rounds 3] [--threads 1] [--json FILE] [--again]
       python benchmarks/quantization.py --render [--json FILE]

SmolLM2 is exported for generation and reloaded. Against the float32 model, on `data/alice.txt` (the beginning of Alice's
Adventures in Wonderland, Lewis Carroll, 1865; public domain), in windows of 256 tokens: perplexity, how often the most
likely next token is the same, and the mean Kullback-Leibler divergence KL(float32 ‖ quantized) of the next token's distribution
in nats. Speed is decoded tokens a second, one sequence; the recipes of a format take turns. MiniLM: the smallest cosine
similarity of the mean-pooled embeddings of the text's paragraphs, for every quantizer that each format has. `float32` is the
export without a quantizer; what a recipe is compared with is of the same run. A row that FILE holds is measured again only
with `--again`.
`--render` writes docs/quantization-results.md from FILE.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxscript  # noqa: F401 - imported before the fork, so that no case pays for it
import torch
from rich.console import Console
from transformers import AutoTokenizer

from contestants import open_eager, open_eager_encoder, open_ours, sample_inputs
from decode import decode
from isolated import in_child, size_of, write_report
from transformers_exporters import AutoExportConfig, AutoHfExporter
from transformers_exporters.prepare.checkpoint import load_checkpoint
from transformers_exporters.quantize.recipes import find_quantizer
from transformers_exporters.quantize.recipes import recipe as find_recipe
from transformers_exporters.testing.checkpoints import minilm, smollm2

MODELS = {"smollm2": (smollm2, True), "minilm": (minilm, False)}
TEXT = Path(__file__).parent / "data" / "alice.txt"
RESULTS = Path(__file__).parent / "results" / "quantization.json"
TABLE = Path(__file__).parent.parent / "docs" / "quantization-results.md"
WINDOW = 256
BASELINE = "float32"
#: Beside the recipes: the other quantizers of each format, and the options that the recipes do not take.
OTHERS = {
    "onnx": (
        "OnnxRuntimeQuantizer mode=dynamic",
        "NNCFOnnxQuantizer mode=int8",
        "NNCFOnnxQuantizer mode=int4",
        "NNCFOnnxQuantizer mode=static",
        "NNCFTorchFXQuantizer",
        "PT2EQuantizer",
    ),
    "openvino": ("NNCFTorchFXQuantizer", "PT2EQuantizer"),
    "dynamo": ("NNCFTorchFXQuantizer",),
    "executorch": ("TorchaoQuantizer scheme=8da8w",),
}


def windows(checkpoint: Path) -> list[torch.Tensor]:
    """The text's tokens, int64 [1, WINDOW] each."""
    ids = AutoTokenizer.from_pretrained(checkpoint)(TEXT.read_text(), return_tensors="pt").input_ids
    return [ids[:, start : start + WINDOW] for start in range(0, ids.shape[1] - WINDOW + 1, WINDOW)]


def paragraphs(checkpoint: Path) -> list[dict[str, torch.Tensor]]:
    """Two paragraphs a batch, padded."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    texts = [text for text in TEXT.read_text().split("\n\n") if text.strip()]
    return [
        dict(tokenizer(texts[i : i + 2], padding=True, truncation=True, max_length=WINDOW, return_tensors="pt"))
        for i in range(0, len(texts), 2)
    ]


def calibration(checkpoint: Path, *, generation: bool) -> list[dict[str, Any]]:
    """Other words than the ones that are measured on: int64 [2, length], short ones and long ones."""
    sentences = (Path(__file__).parent / "data" / "calibration.txt").read_text().splitlines()
    texts = [*sentences, " ".join(sentences), " ".join(reversed(sentences))]
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    tokenizer.padding_side = "left" if generation else "right"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    options = {"padding": True, "truncation": True, "max_length": WINDOW, "return_tensors": "pt"}
    return [dict(tokenizer([a, b], **options)) for a, b in zip(texts[::2], texts[1::2], strict=True)]


def make_quantizer(recipe: str, format: str) -> Any:
    """Of a recipe's name, or of `Quantizer option=value ...`."""
    name, *options = recipe.split()
    if name[0].islower():
        return find_recipe(name, format)
    return find_quantizer(name)(**dict(option.split("=") for option in options))


def export(checkpoint: Path, directory: Path, format: str, recipe: str, *, generation: bool) -> dict[str, Any]:
    """Export in this process; bytes of the artifact."""
    config = AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
    if recipe != BASELINE:
        config.quantizer = make_quantizer(recipe, format)
        if config.quantizer.calibrates:
            config.quantizer.calibration_dataset = calibration(checkpoint, generation=generation)
    options: dict[str, Any] = {"for_generation": True, "logits_to_keep": 0} if generation else {}
    model = load_checkpoint(str(checkpoint))
    inputs = sample_inputs(checkpoint, generation=generation)
    start = time.perf_counter()
    AutoHfExporter.from_config(config).export_model(model, inputs, config, **options).save_pretrained(directory)
    return {"seconds": time.perf_counter() - start, "bytes": size_of(directory)}


def next_token_logits(opened: Any, checkpoint: Path) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """(token ids, logits float32 [WINDOW, vocabulary]) of every window."""
    components, names, _ = opened
    for ids in windows(checkpoint):
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": True}
        given["position_ids"] = torch.arange(ids.shape[1])[None]
        kwargs = {k: v for k, v in given.items() if k in names or k == "use_cache"}
        yield ids[0], components["prefill"](**kwargs)["logits"][0].float()


def save_reference(checkpoint: Path, file: Path, *, generation: bool) -> dict[str, Any]:
    """What the float32 model says, into a file."""
    with torch.no_grad():
        if generation:
            rows = [logits for _, logits in next_token_logits(open_eager(checkpoint), checkpoint)]
            np.save(file, torch.stack(rows).numpy())
        else:
            np.savez(file, *embeddings(open_eager_encoder(checkpoint), checkpoint))
    return {}


def embeddings(opened: Any, checkpoint: Path) -> list[Any]:
    """Mean-pooled embeddings float32 [2, hidden] of each batch of paragraphs."""
    (call,) = opened[0].values()
    found = []
    for inputs in paragraphs(checkpoint):
        hidden, mask = call(**inputs)["last_hidden_state"].float(), inputs["attention_mask"][..., None]
        found.append(((hidden * mask).sum(1) / mask.sum(1)).numpy())
    return found


def accuracy(checkpoint: Path, directory: Path, reference: Path, *, generation: bool) -> dict[str, Any]:
    """Measures of the module's docstring for a saved artifact."""
    with torch.no_grad():
        if not generation:
            wanted = list(np.load(reference).values())
            got = embeddings(open_ours(directory), checkpoint)
            pairs = [
                torch.cosine_similarity(torch.tensor(a), torch.tensor(b)) for a, b in zip(wanted, got, strict=True)
            ]
            return {"cosine": float(torch.cat(pairs).min())}
        stored = np.load(reference, mmap_mode="r")
        losses, reference_losses, same, divergence = [], [], [], []
        for index, (ids, logits) in enumerate(next_token_logits(open_ours(directory), checkpoint)):
            wanted_log = torch.tensor(stored[index]).log_softmax(-1)[:-1]
            got_log = logits.log_softmax(-1)[:-1]
            losses.append(torch.nn.functional.nll_loss(got_log, ids[1:]))
            reference_losses.append(torch.nn.functional.nll_loss(wanted_log, ids[1:]))
            same.append((wanted_log.argmax(-1) == got_log.argmax(-1)).float().mean())
            divergence.append((wanted_log.exp() * (wanted_log - got_log)).sum(-1).mean())
    perplexity = float(torch.stack(losses).mean().exp())
    return {
        "perplexity": perplexity,
        "perplexity_ratio": perplexity / float(torch.stack(reference_losses).mean().exp()),
        "top1": float(torch.stack(same).mean()),
        "kl": float(torch.stack(divergence).mean()),
    }


def speed(checkpoint: Path, directory: Path, tokens: int, threads: int) -> dict[str, Any]:
    """Decoded tokens a second; opening and a warm-up are not counted."""
    torch.set_num_threads(threads)
    with torch.no_grad():
        opened = open_ours(directory)
        decode(opened, checkpoint, 4)
        start = time.perf_counter()
        decode(opened, checkpoint, tokens)
        return {"per_second": tokens / (time.perf_counter() - start)}


def run_format(
    checkpoint: Path, model: str, format: str, recipes: list[str], given: argparse.Namespace, reference: Path
) -> list[Any]:
    """These recipes of one format; a recipe that fails gives a row with its error."""
    generation = MODELS[model][1]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for recipe in recipes:
            row: dict[str, Any] = {"model": model, "format": format, "recipe": recipe, "per_second": []}
            directory = Path(scratch) / recipe
            try:
                row |= in_child(functools.partial(export, checkpoint, directory, format, recipe, generation=generation))
                row |= in_child(functools.partial(accuracy, checkpoint, directory, reference, generation=generation))
            except RuntimeError as error:
                row["failed"] = str(error)
            rows.append(row)
            Console().print(row)
        working = [row for row in rows if "failed" not in row]
        for _ in range(given.rounds if generation else 0):
            for row in working:
                directory = Path(scratch) / row["recipe"]
                measured = in_child(functools.partial(speed, checkpoint, directory, given.tokens, given.threads))
                row["per_second"].append(measured["per_second"])
        base = next((row for row in working if row["recipe"] == BASELINE), None)
        for row in working:
            row["bytes_ratio"] = row["bytes"] / base["bytes"] if base else None
            if row["per_second"] and base:
                row["speed_ratio"] = statistics.median(
                    a / b for a, b in zip(row["per_second"], base["per_second"], strict=True)
                )
            Console().print({key: value for key, value in row.items() if key != "per_second"})
    return rows


def render(report: dict[str, Any]) -> str:
    """The results as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    lines = [
        "# Quantization results",
        "",
        f"Written by `benchmarks/quantization.py --render` from its results of {report['date']}, {report['machine']['cores']}"
        f" cores, {report['machine']['system']}; {versions}. The script's docstring says what each column is.",
        "",
        "## SmolLM2-135M-Instruct",
        "",
        "These weights come from a GGUF file with 4 bits, in blocks of 32 with a scale and a float offset, which groups of the same",
        "kind (ExecuTorch's and PyTorch's `int4`) reproduce almost exactly: a checkpoint that never had 4 bits loses more.",
        "",
        *_table(
            [row for row in report["cases"] if row["model"] == "smollm2"],
            {
                "bytes ÷ float32": lambda row: f"{row['bytes_ratio']:.3f}",
                "perplexity ÷ float32": lambda row: f"{row['perplexity_ratio']:.3f}",
                "same top token": lambda row: f"{row['top1']:.1%}",
                "KL, nats": lambda row: f"{abs(row['kl']):.4f}",
                "tokens a second ÷ float32": lambda row: f"{row.get('speed_ratio', float('nan')):.2f}",
            },
        ),
        "",
        "## all-MiniLM-L6-v2",
        "",
        *_table(
            [row for row in report["cases"] if row["model"] == "minilm"],
            {
                "bytes ÷ float32": lambda row: f"{row['bytes_ratio']:.3f}",
                "smallest cosine": lambda row: f"{row['cosine']:.5f}",
            },
        ),
    ]
    return "\n".join(lines) + "\n"


def _table(rows: list[dict[str, Any]], columns: dict[str, Callable[[dict[str, Any]], str]]) -> Iterator[str]:
    """A line for each row; one that failed says so."""
    yield f"| format | recipe | {' | '.join(columns)} |"
    yield "|---|---|" + "---:|" * len(columns)
    order = list(dict.fromkeys(row["format"] for row in rows))
    for row in sorted(rows, key=lambda row: order.index(row["format"])):
        cells = (
            [cell(row) for cell in columns.values()] if "failed" not in row else ["failed", *[""] * (len(columns) - 1)]
        )
        yield f"| {row['format']} | {row['recipe']} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="smollm2,minilm")
    parser.add_argument("--formats", default="onnx,openvino,executorch,dynamo")
    parser.add_argument("--recipes", default="int8,int4,static-int8")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", default=str(RESULTS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--render", action="store_true")
    given = parser.parse_args()
    if given.render:
        TABLE.write_text(render(json.loads(Path(given.json).read_text())))
        return
    torch.set_num_threads(given.threads)
    held = json.loads(Path(given.json).read_text())["cases"] if Path(given.json).exists() else []
    for model in given.models.split(","):
        make, generation = MODELS[model]
        checkpoint = Path(in_child(lambda make=make: {"path": str(make())})["path"])
        with tempfile.TemporaryDirectory() as scratch:
            reference = Path(scratch) / ("reference.npy" if generation else "reference.npz")
            in_child(functools.partial(save_reference, checkpoint, reference, generation=generation))
            for format in given.formats.split(","):
                wanted = [BASELINE, *given.recipes.split(","), *(() if generation else OTHERS[format])]
                missing = [r for r in wanted if given.again or (model, format, r) not in map(_key, held)]
                if not missing:
                    continue
                recipes = [BASELINE, *(recipe for recipe in missing if recipe != BASELINE)]
                rows = run_format(checkpoint, model, format, recipes, given, reference)
                measured = {_key(row): row for row in rows if row["recipe"] in missing}
                held = [measured.pop(_key(row), row) for row in held] + list(measured.values())
                write_report(given.json, held, {})


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["model"], row["format"], row["recipe"]


if __name__ == "__main__":
    main()
