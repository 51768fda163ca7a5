"""Checkpoints that are adapters (LoRA and its kin) on another checkpoint: merged into its weights."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from ..errors import InputError


def adapter_config(checkpoint: Path | str) -> dict[str, Any] | None:
    """The `adapter_config.json` of a checkpoint that peft wrote, or None for any other."""
    from transformers.utils.peft_utils import find_adapter_config_file

    try:
        file = find_adapter_config_file(str(checkpoint))
    except (OSError, ValueError):
        return None
    if file is None:
        return None
    config: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
    return config


def base_of(checkpoint: Path | str, adapter: dict[str, Any]) -> str:
    """Where the model lies that an adapter changes.

    Raises:
        InputError: If the adapter does not say.
    """
    base = adapter.get("base_model_name_or_path")
    if not base:
        raise InputError(f"{checkpoint} is an adapter that names no base model: merge it, and export the merged model.")
    return str(base)


def merge(model: Any, checkpoint: Path | str) -> Any:
    """`model` with the adapter's weights merged into its own.

    Raises:
        InputError: If peft is not installed.
    """
    try:
        peft = importlib.import_module("peft")
    except ImportError as error:
        raise InputError(
            f"{checkpoint} is an adapter (PEFT): install peft to have it merged (pip install peft)."
        ) from error
    merged = peft.PeftModel.from_pretrained(model, str(checkpoint)).merge_and_unload()
    merged.config.name_or_path = str(checkpoint)
    return merged
