"""Read a directory of tiny models: one folder a model, with its config, its sample inputs and where its classes live.

A folder holds `meta.json` (`module`, `model_class`, `config_module`, `config_class`, `generate_uses_own_config`),
`config.json` (and `generate_config.json`), and inputs as `<task>_inputs.json` (the nesting) with
`<task>_inputs.safetensors` (the tensors). The weights are random: seed 0.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

_CONSTRUCTORS = {"list": list, "tuple": tuple, "set": set}


def load_model(folder: Path, task: str) -> Any:
    """The model in eval mode. Constant weights (norms, zero biases) get noise, so that no part hides from the outputs."""
    meta = json.loads((folder / "meta.json").read_text())
    own = task == "generate" and meta.get("generate_uses_own_config")
    config_class = getattr(importlib.import_module(meta["config_module"]), meta["config_class"])
    # transformers' own reader: its files spell infinities in a way of their own.
    fields = config_class._dict_from_json_file(folder / ("generate_config.json" if own else "config.json"))
    for name in ("config_class", "transformers_version"):
        fields.pop(name, None)
    model_class = getattr(importlib.import_module(meta["module"]), meta["model_class"])
    torch.manual_seed(0)
    model = model_class(config_class.from_dict(fields)).eval()
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point() and weight.numel() > 1 and bool((weight == weight.flatten()[0]).all()):
                weight.add_(torch.randn(weight.shape, generator=noise).to(weight.dtype) * 0.1)
    return model


def load_inputs(folder: Path, task: str) -> dict[str, Any]:
    """The kwargs of `forward` or `generate`. Without generate kwargs: the forward's, less what generation makes itself."""
    if task == "generate" and not (folder / "generate_inputs.json").is_file():
        forward = load_inputs(folder, "forward")
        return {name: value for name, value in forward.items() if not name.startswith("decoder_")}
    tree = json.loads((folder / f"{task}_inputs.json").read_text())["inputs"]
    tensors = load_file(folder / f"{task}_inputs.safetensors")
    return {name: _decoded(node, tensors) for name, node in tree.items()}


def _decoded(node: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> Any:
    kind = node["type"]
    if kind == "tensor":
        value = tensors[node["key"]]
        return value.numpy() if node.get("container") == "numpy" else value
    if kind in ("bool", "int", "str", "float"):
        return float(node["value"]) if kind == "float" else node["value"]
    if kind == "none":
        return None
    if kind == "dict":
        return {name: _decoded(item, tensors) for name, item in node["items"].items()}
    if kind in _CONSTRUCTORS:
        return _CONSTRUCTORS[kind](node["plain"] if "plain" in node else (_decoded(i, tensors) for i in node["items"]))
    raise ValueError(f"an input of the kind {kind!r} cannot be read back")
