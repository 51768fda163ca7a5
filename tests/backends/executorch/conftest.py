"""What the tests of this folder share: small modules through the whole pipeline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("executorch")

from transformers_exporters import ExecutorchConfig, ExecutorchExporter, ExportedModel


class Exported:
    """A module, and the same reloaded from a saved artifact."""

    def __init__(self, module: torch.nn.Module, inputs: dict[str, Any], directory: Path, config: ExecutorchConfig):
        self.module = module.eval()
        torch.manual_seed(0)
        self.fresh = ExecutorchExporter().export_model(module, inputs, config=config)
        self.fresh.save_pretrained(directory)
        self.directory = directory
        self.loaded = ExportedModel.from_pretrained(directory)
        (self.name,) = self.loaded.components
        self.notes = self.fresh.manifest.notes[self.name]

    def __call__(self, **inputs: Any) -> Any:
        return self.loaded[self.name](**inputs)

    def error(self, **inputs: torch.Tensor) -> float:
        """The largest difference to eager over all outputs."""
        with torch.no_grad():
            expected = self.module(**{name: value.clone() for name, value in inputs.items()})
        got = self(**inputs)
        pairs = zip(_tensors(got), _tensors(expected), strict=True)
        errors = []
        for ours, theirs in pairs:
            assert ours.shape == theirs.shape
            assert ours.dtype == theirs.dtype
            errors.append((ours.double() - theirs.double()).abs().max().item())
        return max(errors)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


@pytest.fixture
def export(tmp_path: Path) -> Any:
    """`export(module, inputs, **config)` -> `Exported`."""
    torch.set_num_threads(1)

    def run(module: torch.nn.Module, inputs: dict[str, Any], **config: Any) -> Exported:
        count = len(list(tmp_path.iterdir()))
        return Exported(module, inputs, tmp_path / f"artifact{count}", ExecutorchConfig(**{"dynamic": True, **config}))

    return run
