"""Tensors that a model updates in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch


class Counter(torch.nn.Module):
    """Writes `x` into a cache at a position that it keeps itself, and returns the cache too."""

    def forward(
        self, x: torch.Tensor, cache: torch.Tensor, position: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """x [1, 2, 3], cache [1, 8, 3], position int64 [1]."""
        cache.index_copy_(1, position + torch.arange(x.shape[1]), x)
        position.add_(x.shape[1])
        return torch.softmax(cache.sum(1), -1), cache


def fresh() -> dict[str, torch.Tensor]:
    return {"cache": torch.zeros(1, 8, 3), "position": torch.zeros(1, dtype=torch.int64)}


@pytest.mark.parametrize("planned", [True, False])
def test_two_generations_on_one_loaded_method_do_not_meet(export: Any, planned: bool) -> None:
    """P6: with the three flags off, the second generation used to start from the state of the first."""
    flags = dict.fromkeys(("alloc_graph_input", "alloc_graph_output", "alloc_mutable_buffers"), planned)
    exported = export(Counter(), {"x": torch.ones(1, 2, 3), **fresh()}, dynamic=False, **flags)
    for generation in (1.0, 5.0):
        ours, theirs = fresh(), fresh()
        for step in range(3):
            x = torch.randn(1, 2, 3, generator=torch.Generator().manual_seed(step)) * generation
            got, cache = exported(x=x, **ours)
            expected, _ = Counter()(x, **theirs)
            torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)
            torch.testing.assert_close(cache, theirs["cache"], atol=0, rtol=0)
            # The very tensors that were passed in are updated, as in eager.
            torch.testing.assert_close(ours["cache"], theirs["cache"], atol=0, rtol=0)
            assert ours["position"].item() == theirs["position"].item() == 2 * (step + 1)


def test_no_value_is_returned_twice(export: Any) -> None:
    exported = export(Counter(), {"x": torch.ones(1, 2, 3), **fresh()}, dynamic=False)
    plan = exported.fresh[exported.name].program.executorch_program.execution_plan[0]
    assert len(plan.outputs) == 3  # cache, position, softmax
    off = export(Counter(), {"x": torch.ones(1, 2, 3), **fresh()}, dynamic=False, alloc_graph_input=False)
    plan = off.fresh[off.name].program.executorch_program.execution_plan[0]
    assert len(plan.outputs) == 1  # what the caller's memory does not hold already
