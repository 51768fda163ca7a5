"""Trace a small model under the patches, and hold it to eager at sizes that were not traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch.export import Dim, ExportedProgram

from transformers_exporters.workarounds import Patching, collect

RunsLike = Callable[..., ExportedProgram]


@pytest.fixture
def runs_like() -> RunsLike:
    """Export a module with every axis free, run it on other inputs, compare every output with eager."""

    def check(
        module: torch.nn.Module,
        traced: Mapping[str, Any],
        others: Sequence[Mapping[str, Any]],
        without: Sequence[str] = (),
        tolerance: float = 1e-4,
    ) -> ExportedProgram:
        module.eval()
        axes = pytree.tree_map(
            lambda t: dict.fromkeys(range(t.dim()), Dim.AUTO) if torch.is_tensor(t) else None, dict(traced)
        )
        patches = collect("transformers_exporters.trace.patches")
        assert set(without) <= {patch.id for patch in patches}
        with torch.no_grad(), Patching(patches, model=module, disabled=without):
            program = torch.export.export(module, (), dict(traced), dynamic_shapes=axes, strict=False)
        exported = program.module(check_guards=False)
        for inputs in [traced, *others]:
            with torch.no_grad():
                want = [leaf for leaf in pytree.tree_leaves(module(**inputs)) if torch.is_tensor(leaf)]
                got = [leaf for leaf in pytree.tree_leaves(exported(**inputs)) if torch.is_tensor(leaf)]
            assert len(got) == len(want)
            for a, b in zip(got, want, strict=True):
                torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)
        return program

    return check
