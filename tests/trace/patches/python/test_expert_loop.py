from __future__ import annotations

import pytest
import torch
from transformers import DbrxConfig, SwitchTransformersConfig
from transformers.models.dbrx.modeling_dbrx import DbrxExperts
from transformers.models.switch_transformers.modeling_switch_transformers import SwitchTransformersExperts

ID = "trace.patches.python.expert_loop"


class Dbrx(torch.nn.Module):
    """Four experts, two a token."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        ffn = {"ffn_hidden_size": 12, "moe_num_experts": 4, "moe_top_k": 2, "hidden_size": 8}
        config = DbrxConfig(d_model=8, n_heads=2, n_layers=1, ffn_config=ffn)
        self.experts = DbrxExperts(config.ffn_config)
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter)

    def forward(self, hidden, chosen, weights):
        return self.experts(hidden, chosen, weights)


class Switch(torch.nn.Module):
    """The router's choice as zeros and ones, one expert a token; names of submodules are made of expert numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.experts = SwitchTransformersExperts(SwitchTransformersConfig(num_experts=4, d_model=8, d_ff=12)).eval()

    def forward(self, hidden, chosen, weights):
        hits = torch.nn.functional.one_hot(chosen[:, :1], 4)
        return self.experts(hidden[:, 0], hits, weights[:, :1])


def inputs(tokens: int) -> dict[str, torch.Tensor]:
    """Choices that leave an expert out."""
    g = torch.Generator().manual_seed(tokens)
    return {
        "hidden": torch.randn(tokens, 1, 8, generator=g),
        "chosen": torch.stack([torch.randint(0, 2, (tokens,), generator=g), torch.full((tokens,), 3)], dim=1),
        "weights": torch.rand(tokens, 2, generator=g),
    }


@pytest.mark.parametrize("module", [Dbrx, Switch])
@pytest.mark.xfail(strict=True, reason="which experts are hit is data")
def test_needed(runs_like, module):
    runs_like(module(), inputs(7), [], without=[ID, "trace.patches.python.loop_over_hits"])


@pytest.mark.parametrize("module", [Dbrx, Switch])
def test_works(runs_like, module):
    runs_like(module(), inputs(7), [inputs(5), inputs(40)])
