"""What an artifact keeps of its source model: config, generation config, tokenizer files, and a record for the manifest."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from ..artifact.manifest import ModelRecord

LOOSE_WEIGHTS = "loose_weights.safetensors"

# What a tokenizer, a processor or a chat template may be made of.
_TOKENIZER_FILES = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "chat_template*",
    "*processor_config.json",
    "preprocessor_config.json",
    "normalizer.json",
)


@dataclass(frozen=True)
class SourceModel:
    """The source model without its weights.

    Attributes:
        record: For the manifest.
        config: A copy of its config, or None for a plain module.
        generation_config: A copy of its generation config, or None.
        directory: The checkpoint directory that it was loaded from, if it still exists.
        tokenizer: A tokenizer or processor to save with the artifact, if the caller gave one.
        loose: Weights that the model's Python code uses between the components of a generation, by name.
    """

    record: ModelRecord
    config: Any
    generation_config: Any
    directory: Path | None
    tokenizer: Any = None
    loose: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Write config, generation config, tokenizer files and loose weights."""
        if self.loose:
            values = {name: value.detach().cpu().contiguous().clone() for name, value in self.loose.items()}
            save_file(values, directory / LOOSE_WEIGHTS)
        if self.config is not None:
            self.config.save_pretrained(directory)
        if self.generation_config is not None:
            config = copy.deepcopy(self.generation_config)
            config._from_model_config = False  # else transformers reads back only the fields that it knows
            config.save_pretrained(directory)
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(directory)
        elif self.directory is not None:
            for pattern in _TOKENIZER_FILES:
                for file in self.directory.glob(pattern):
                    if file.is_file() and not (directory / file.name).exists():
                        shutil.copyfile(file, directory / file.name)


def read_loose_weights(directory: Path) -> dict[str, torch.Tensor]:
    """The loose weights of an artifact; none in most."""
    file = directory / LOOSE_WEIGHTS
    return load_file(file) if file.is_file() else {}


def describe_source(
    model: torch.nn.Module, tokenizer: Any = None, loose: Mapping[str, torch.Tensor] | None = None
) -> SourceModel:
    """Read what an artifact keeps of a model."""
    config = getattr(model, "config", None)
    if not hasattr(config, "save_pretrained"):
        config = None
    name = str(getattr(config, "_name_or_path", "") or "")
    directory = Path(name) if name and Path(name).is_dir() else None
    record = ModelRecord(
        class_path=f"{type(model).__module__}.{type(model).__qualname__}",
        config_class=f"{type(config).__module__}.{type(config).__qualname__}" if config is not None else "",
        name=name,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        dtype=_dtype(model),
    )
    generation = getattr(model, "generation_config", None)
    can_generate = hasattr(generation, "save_pretrained")
    return SourceModel(
        record,
        copy.deepcopy(config),
        copy.deepcopy(generation) if can_generate else None,
        directory,
        tokenizer,
        dict(loose or {}),
    )


def _dtype(model: torch.nn.Module) -> str:
    floating = (p.dtype for p in model.parameters() if p.is_floating_point())
    return str(next(floating, torch.get_default_dtype())).removeprefix("torch.")
