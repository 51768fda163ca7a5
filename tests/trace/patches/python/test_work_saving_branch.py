from __future__ import annotations

import pytest
import torch

from transformers_exporters import DynamoConfig, DynamoExporter

ID = "trace.patches.python.work_saving_branch"


class Experts(torch.nn.Module):
    """A loop over experts of which some get no token."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(4))

    def forward(self, hidden: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(hidden)
        mask = torch.nn.functional.one_hot(chosen, 4).permute(2, 1, 0)
        for expert, layer in enumerate(self.layers):
            slot, token = torch.where(mask[expert])
            if token.shape[0] == 0:
                continue
            out.index_add_(0, token, layer(hidden[token]) * (slot + 1).unsqueeze(1))
        return out


class Counted(Experts):
    """The tokens of each expert are counted before the loop, as in DeepSeek's own code."""

    def forward(self, hidden: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(hidden)
        counts = torch.bincount(chosen.flatten(), minlength=4).tolist()
        for i in range(4):
            if counts[i] == 0:
                continue
            token, slot = torch.where(chosen == i)
            out[token] += self.layers[i](hidden[token]) * (slot[:, None] + 1)
        return out


class Padded(torch.nn.Module):
    def forward(self, hidden: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        padding = (chosen == 3).any(-1)
        if padding.any():
            hidden[padding] = 0.0
        return hidden * 2


def inputs(tokens: int, experts: int) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(tokens)
    return {
        "hidden": torch.randn(tokens, 8, generator=g),
        "chosen": torch.randint(0, experts, (tokens, 2), generator=g),
    }


@pytest.mark.parametrize("module", [Experts, Padded])
@pytest.mark.xfail(strict=True, reason="whether there is a place is data")
def test_needed(runs_like, module):
    runs_like(module(), inputs(7, 4), [], without=[ID])


@pytest.mark.parametrize("module", [Experts, Padded])
def test_works(runs_like, module):
    """All experts with a token, one alone, no padding."""
    runs_like(module(), inputs(17, 4), [inputs(5, 1), inputs(3, 2), inputs(40, 4)])


@pytest.mark.parametrize("disabled", [[], pytest.param([ID], marks=pytest.mark.xfail(strict=True, reason="as above"))])
def test_counted_before_the_loop(disabled):
    """How many counts there are is asked too, and asserted."""
    program = DynamoExporter().export(
        Counted(), inputs(17, 4), DynamoConfig(dynamic=True, disabled_workarounds=disabled)
    )
    for given in (inputs(5, 1), inputs(3, 2), inputs(40, 4)):
        torch.testing.assert_close(program.module()(**given), Counted()(**given))
