"""Generation on every backend: 16 greedy tokens of the reloaded artifact against eager, model by model.

usage: python benchmarks/generation.py MODELS [--formats onnx] [--only NAME ...] [--json FILE] [--limit SECONDS]
       python benchmarks/generation.py --render [--json FILE]

MODELS is a directory as `zoo.py` describes it. Each case exports, saves, reloads and generates in a forked child. The
prompts are of a batch size and a length that the example did not have, without padding and, where the model takes a
mask, padded on the left (on the right before an encoder). A case passes if all tokens are equal and every step's scores
are. Results are lines of JSON: a case that FILE holds already is not run again. `--render` writes the table of FILE.
"""

from __future__ import annotations

import argparse
import copy
import functools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnxscript  # noqa: F401 - imported before the fork, so that no case pays for it
import torch
from transformers import LogitsProcessor, PreTrainedModel  # noqa: F401 - the model classes, imported before the fork

import smollm2_tokens
from generation_cases import KINDS, ONE_ROW, skip_reason
from isolated import in_children
from results_file import add, finished, first_line
from transformers_exporters import AutoExportConfig, AutoHfExporter, ExportedModel
from zoo import load_inputs, load_model

FORMATS = ("dynamo", "onnx", "openvino", "executorch")
TOKENS = 16
# Scores may differ by this much of the largest score of their step.
TOLERANCE = 1e-3
MOST_BYTES = 16 << 30
RESULTS = Path(__file__).parent / "results" / "generation.jsonl"
TABLE = Path(__file__).parent.parent / "docs" / "generation-coverage.md"
_KEYS = ("model", "format")


class Scores(LogitsProcessor):
    """Keeps every step's scores: float [batch, vocabulary]; takes special tokens out, which stand for images and ends."""

    def __init__(self, special: set[int]) -> None:
        self.special = special
        self.steps: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.steps.append(scores.float().clone())
        scores[:, [token for token in self.special if 0 <= token < scores.shape[1]]] = -torch.inf
        return scores


def prompts(model: Any, inputs: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The example, then prompts of another batch size and another length."""
    if type(model).__name__ not in ONE_ROW:
        yield "as traced", inputs
    tensors = [value for value in inputs.values() if isinstance(value, torch.Tensor) and value.dim()]
    batch = tensors[0].shape[0]
    if any(value.shape[0] != batch for value in tensors):
        return
    rows = torch.arange(batch + 1) % batch
    if type(model).__name__ in ONE_ROW:
        rows = rows[:1]
    wider = {k: v[rows] if isinstance(v, torch.Tensor) and v.dim() else v for k, v in inputs.items()}
    ids = wider.get("input_ids")
    if ids is None:
        yield "batch", wider
        return
    right = bool(model.config.is_encoder_decoder)
    yield "longer", longer(model, wider, ids, padded=False, right=right)
    if "attention_mask" in wider:
        yield "padded", longer(model, wider, ids, padded=True, right=right)


def longer(model: Any, inputs: dict[str, Any], ids: torch.Tensor, *, padded: bool, right: bool) -> dict[str, Any]:
    """Add five text tokens to each prompt; with `padded`, padding to every row but the first."""
    count, (batch, length) = 5, ids.shape
    known = set(token_ids(model.config.to_dict()))
    size = int(model.config.get_text_config().vocab_size)
    usable = torch.tensor([token for token in range(4, min(90, size - 4)) if token not in known])
    text = usable[torch.randint(len(usable), (batch, count), generator=torch.Generator().manual_seed(1))]
    pad = model.config.get_text_config().pad_token_id
    changed: dict[str, Any] = {}
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.shape[:2] != (batch, length):
            changed[name] = value
            continue
        edge = value[:, -1:] if right else value[:, :1]
        extra = edge.expand(batch, count, *value.shape[2:]).clone() if value.dim() > 2 else torch.zeros_like(text)
        if name == "input_ids":
            extra = text.clone()
            if padded:
                extra[1:] = pad if isinstance(pad, int) else 0
        elif name == "attention_mask":
            extra = torch.ones_like(text)
            if padded:
                extra[1:] = 0
        extra = extra.to(value.dtype)
        changed[name] = torch.cat([value, extra] if right else [extra, value], dim=1)
    return changed


def token_ids(fields: dict[str, Any]) -> Iterator[int]:
    """Every number of a config and its sub-configs that may be a special token."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from token_ids(value)
        elif "token" in str(name) and isinstance(value, int):
            yield value


def generated(model: Any, inputs: dict[str, Any]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Greedy tokens int64 [batch, ...], and the scores of every step."""
    scores = Scores(set(token_ids(model.config.to_dict())))
    torch.manual_seed(0)
    tokens = model.generate(
        **copy.deepcopy(inputs),
        max_new_tokens=TOKENS,
        min_new_tokens=TOKENS,
        do_sample=False,
        logits_processor=[scores],
    )
    return tokens, scores.steps


def difference(wanted: tuple[Any, Any], got: tuple[Any, Any]) -> str | None:
    """What differs, in a phrase; None if nothing does."""
    if len(wanted[1]) != len(got[1]):
        return f"{len(got[1])} steps instead of {len(wanted[1])}"
    for step, (a, b) in enumerate(zip(wanted[1], got[1], strict=True)):
        finite = torch.isfinite(a)
        scale = max(1e-5, float(a[finite].abs().max())) if bool(finite.any()) else 1.0
        error = float((a - b)[finite].abs().max()) / scale
        if not error <= TOLERANCE:
            return f"scores differ by {error:.1e} at step {step}"
    return None if torch.equal(wanted[0], got[0]) else "tokens differ"


def run_case(folder: Path, format: str) -> dict[str, Any]:
    """Export, reload, generate and compare; in a process of its own."""
    stage, start, failed = "load", time.perf_counter(), None
    passed: list[str] = []
    refused: dict[str, str] = {}
    try:
        model, inputs = load_model(folder, "generate"), load_inputs(folder, "generate")
        with tempfile.TemporaryDirectory() as scratch:
            stage = "export"
            config = AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
            exporter = AutoHfExporter.from_config(config)
            exporter.export_model(model, inputs, for_generation=True, config=config).save_pretrained(f"{scratch}/a")
            reloaded = ExportedModel.from_pretrained(f"{scratch}/a", trust_remote_code=True)
            for name, prompt in prompts(model, inputs):
                stage = f"eager {name}"
                try:
                    # A fresh model: some keep state from one call to the next.
                    wanted = generated(load_model(folder, "generate"), prompt)
                except Exception as error:  # noqa: BLE001 - whatever the model raises: it takes no such prompt
                    refused[name] = first_line(error)
                    continue
                stage = name
                different = difference(wanted, generated(reloaded, prompt))
                passed += [] if different else [name]
                failed = failed or (different and f"{name}: {different}")
            if not passed and not failed:
                failed = f"eager refuses the example: {refused}"
    except Exception as error:  # noqa: BLE001 - the table says what went wrong
        failed = f"{stage}: {first_line(error)}"
    return {
        "status": "fail" if failed else "pass",
        "reason": failed,
        "passed": passed,
        "refused by eager": refused,
        "seconds": round(time.perf_counter() - start),
    }


def run(models: Path, formats: list[str], names: list[str], file: Path, limit: int) -> None:
    """Run the cases that the file does not hold yet, each for at most `limit` seconds of computing."""
    done = finished(file, _KEYS)
    for format in formats:
        for kind, known in KINDS.items():
            for name in known:
                if (names and name not in names) or (not names and (name, format) in done):
                    continue
                reason = skip_reason(format, name)
                result: dict[str, Any] | str = {"status": "skip", "reason": reason}
                if reason is None:
                    work = functools.partial(run_case, models / name, format)
                    [(_, result)] = in_children([(name, work)], 1, limit, MOST_BYTES)
                if isinstance(result, str):
                    result = {"status": "fail", "reason": result}
                add(file, {"model": name, "kind": kind, "format": format, **result})
                print(format, name, result["status"], result.get("reason") or result.get("passed"), flush=True)


def render(file: Path) -> str:
    """The table of the results, in Markdown."""
    cases = finished(file, _KEYS)
    if not cases:
        raise SystemExit(f"{file} holds no results: run the cases first.")
    last = max(cases.values(), key=lambda case: case["date"])
    about = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    lines = [
        "# Generation coverage",
        "",
        f"Written by `benchmarks/generation.py --render` from its results; last case {last['date']}; {about}.",
        "",
        f"`pass`: {TOKENS} greedy tokens of the saved and reloaded artifact equal eager's, and every step's scores do, for",
        "the traced prompt, for one of another batch size and length, and for a padded one where the model takes a mask.",
        "Models are tiny and have random weights.",
        "",
        "| model | kind | " + " | ".join(FORMATS) + " |",
        "|---|---|" + "---|" * len(FORMATS),
    ]
    for kind, names in KINDS.items():
        for name in names:
            cells = [cell(cases.get((name, format))) for format in FORMATS]
            lines.append(f"| {name} | {kind} | " + " | ".join(cells) + " |")
    totals = [[case for case in cases.values() if case["format"] == format] for format in FORMATS]
    counts = [f"{sum(case['status'] == 'pass' for case in one)} of {len(one)}" for one in totals]
    total = "| **passed** | | " + " | ".join(counts) + " |"
    return "\n".join([*lines, total, "", *smollm2_tokens.render()]).rstrip() + "\n"


def cell(case: dict[str, Any] | None) -> str:
    if case is None:
        return "not run"
    reason = (case.get("reason") or "").replace("|", "/")
    return "pass" if case["status"] == "pass" else f"{case['status']}: {reason[:160]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", type=Path)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json", type=Path, default=RESULTS)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--render", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.models is not None:
        run(given.models, given.formats.split(","), given.only, given.json, given.limit)
    if given.render:
        TABLE.write_text(render(given.json))


if __name__ == "__main__":
    main()
