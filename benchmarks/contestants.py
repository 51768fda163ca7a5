"""The two packages that are measured, behind one interface: export a checkpoint, save it, open it, call a component.

This is the only place of the repository that imports the peer, `transformers.exporters`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer, DynamicCache

from transformers_exporters import AutoExportConfig, AutoHfExporter, ExportedModel
from transformers_exporters.prepare.checkpoint import load_checkpoint

_TEXTS = ["The capital of France is", "Once upon a time there was a small model that"]
Call = Callable[..., Any]


def sample_inputs(checkpoint: Path, *, generation: bool) -> dict[str, torch.Tensor]:
    """A left-padded batch of two for both packages: the peer freezes a batch of one."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    tokenizer.padding_side = "left" if generation else "right"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return dict(tokenizer(_TEXTS, padding=True, return_tensors="pt"))


class Phases:
    """Wall seconds of named phases."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def export_ours(checkpoint: Path, directory: Path, format: str, *, generation: bool) -> dict[str, float]:
    """Export with this package; weights stay in the checkpoint. Returns seconds by phase."""
    phase = Phases()
    with phase("load"):
        model = load_checkpoint(str(checkpoint))
        inputs = sample_inputs(checkpoint, generation=generation)
    with phase("export"):
        config = AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
        exporter = AutoHfExporter.from_config(config)
        exported = exporter.export_model(model, inputs, config, for_generation=generation)
    with phase("save"):
        exported.save_pretrained(directory)
    return phase.seconds


def export_peer(checkpoint: Path, directory: Path, format: str, *, generation: bool) -> dict[str, float]:
    """Export with `transformers.exporters`. Returns seconds by phase."""
    from transformers import exporters
    from transformers.exporters.utils import decompose_for_generation

    phase = Phases()
    with phase("load"):
        model = _eager(checkpoint, generation=generation)
        inputs = sample_inputs(checkpoint, generation=generation)
    with phase("export"):
        config = exporters.AutoExportConfig.from_dict({"export_format": format, "dynamic": True})
        exporter = exporters.AutoHfExporter.from_config(config)
        export = exporter.export_for_generation if generation else exporter.export
        exported = export(model, inputs, config=config)
    with phase("save"):
        exported.save_pretrained(directory)
    if generation:
        _, decode = decompose_for_generation(model, inputs)["decode"]
        cache = next(name for name, value in decode.items() if hasattr(value, "get_seq_length"))
        (directory / "decode-kwargs.json").write_text(json.dumps({"names": list(decode), "cache": cache}))
    return phase.seconds


EXPORT: Mapping[str, Callable[..., dict[str, float]]] = {"ours": export_ours, "peer": export_peer}


def open_ours(directory: Path) -> tuple[dict[str, Call], set[str], str]:
    """Components by name, the kwargs of `decode`, and which of them is the cache."""
    exported = ExportedModel.from_pretrained(directory, trust_remote_code=True)
    if "decode" not in exported:
        return dict(exported.components), set(), ""
    spec = exported["decode"].spec
    return (
        dict(exported.components),
        {t.name.partition(".")[0] for t in spec.inputs},
        spec.state[0][0].partition(".")[0],
    )


def open_peer(directory: Path) -> tuple[dict[str, Call], set[str], str]:
    """The same of the peer."""
    from transformers import exporters

    exported = exporters.ExportedModel.from_pretrained(directory, trust_remote_code=True)
    recorded = directory / "decode-kwargs.json"
    if not recorded.exists():
        return dict(exported.runners), set(), ""
    kwargs = json.loads(recorded.read_text())
    config = AutoConfig.from_pretrained(directory) if (directory / "config.json").exists() else None
    cache = kwargs["cache"]

    def forgiving(runner: Call) -> Call:
        """Some of its formats take no flags, and a prefill the empty cache that the model would have made."""

        def call(**given: Any) -> Any:
            try:
                return runner(**given)
            except (KeyError, ValueError):
                given = {name: value for name, value in given.items() if name != "use_cache"}
                return runner(**{cache: DynamicCache(config=config), **given})

        return call

    return {name: forgiving(runner) for name, runner in exported.runners.items()}, set(kwargs["names"]), cache


OPEN: Mapping[str, Callable[[Path], tuple[dict[str, Call], set[str], str]]] = {"ours": open_ours, "peer": open_peer}


def open_eager(checkpoint: Path) -> tuple[dict[str, Call], set[str], str]:
    """The same of the model itself."""
    model = _eager(checkpoint, generation=True)
    return {"prefill": model, "decode": model}, {"input_ids", "attention_mask", "cache", "use_cache"}, "cache"


def open_eager_encoder(checkpoint: Path) -> tuple[dict[str, Call], set[str], str]:
    """The same of a model that does not generate."""
    return {"model": _eager(checkpoint, generation=False)}, set(), ""


def _eager(checkpoint: Path, *, generation: bool) -> torch.nn.Module:
    auto = AutoModelForCausalLM if generation else AutoModel
    return auto.from_pretrained(checkpoint, dtype=torch.float32).eval()
