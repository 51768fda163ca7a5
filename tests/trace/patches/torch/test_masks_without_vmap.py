from __future__ import annotations

import io

import pytest
import torch
from transformers import masking_utils

ID = "trace.patches.torch.masks_without_vmap"


class Mask(torch.nn.Module):
    """The mask of a prompt in which the tokens of one group see each other."""

    def forward(self, groups: torch.Tensor) -> torch.Tensor:
        def same_group(batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
            return (groups[batch, query] == groups[batch, key]) & (groups[batch, query] >= 0)

        function = masking_utils.or_masks(masking_utils.causal_mask_function, same_group)
        return masking_utils.sdpa_mask(
            groups.shape[0],
            groups.shape[1],
            groups.shape[1],
            mask_function=function,
            use_vmap=True,
            allow_is_causal_skip=False,
        )


def groups(batch: int, length: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)
    return {"groups": torch.randint(-1, 3, (batch, length), generator=g)}


def saved(program: torch.export.ExportedProgram) -> None:
    torch.export.save(program, io.BytesIO())


@pytest.mark.xfail(strict=True, reason="the program cannot be saved")
def test_needed(runs_like):
    saved(runs_like(Mask(), groups(2, 7), [], without=[ID]))


def test_works(runs_like):
    saved(runs_like(Mask(), groups(2, 7), [groups(3, 5), groups(2, 12)]))
