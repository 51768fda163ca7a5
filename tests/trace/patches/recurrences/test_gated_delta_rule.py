from __future__ import annotations

import pytest
import torch
from transformers.models.kimi_linear import modeling_kimi_linear
from transformers.models.qwen3_next import modeling_qwen3_next

from transformers_exporters.trace.recurrences.delta_rule import gated_delta_rule

ID = "trace.patches.recurrences.gated_delta_rule"


class Rule(torch.nn.Module):
    """One of the models' functions, called by name so that a patch of it is seen."""

    def __init__(self, module, name):
        super().__init__()
        self.module, self.name = module, name

    def forward(self, query, key, value, g, beta, state):
        return getattr(self.module, self.name)(
            query,
            key,
            value,
            g=g,
            beta=beta,
            initial_state=state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )


RULES = {
    "chunk": (modeling_qwen3_next, "torch_chunk_gated_delta_rule", False),
    "recurrent": (modeling_qwen3_next, "torch_recurrent_gated_delta_rule", False),
    "chunk of channels": (modeling_kimi_linear, "chunk_kimi_delta_attention", True),
    "recurrent of channels": (modeling_kimi_linear, "recurrent_kimi_delta_attention", True),
}


def inputs(batch: int, length: int, channels: bool) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(length)
    key_heads = 4 if channels else 2
    decay = (batch, length, 4, 8) if channels else (batch, length, 4)
    return {
        "query": torch.randn(batch, length, key_heads, 8, generator=g),
        "key": torch.randn(batch, length, key_heads, 8, generator=g),
        "value": torch.randn(batch, length, 4, 6, generator=g),
        "g": -torch.rand(decay, generator=g),
        "beta": torch.rand(batch, length, 4, generator=g),
        "state": torch.randn(batch, 4, 8, 6, generator=g),
    }


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="the loop freezes the length")
@pytest.mark.parametrize("rule", ["recurrent", "recurrent of channels"])
def test_needed(runs_like, rule):
    module, name, channels = RULES[rule]
    runs_like(Rule(module, name), inputs(2, 7, channels), [inputs(2, 100, channels)], without=[ID])


@pytest.mark.parametrize("rule", list(RULES))
def test_works(runs_like, rule):
    module, name, channels = RULES[rule]
    others = [inputs(3, length, channels) for length in (2, 33, 70)]
    runs_like(Rule(module, name), inputs(2, 7, channels), others)


@pytest.mark.parametrize("channels", [False, True])
def test_steps_and_whole_agree(channels):
    """12 tokens as 12, as 8 + 4, and as 8 + 3 + 1."""
    whole = inputs(2, 12, channels)
    state = whole.pop("state")
    want, final = gated_delta_rule(*whole.values(), state, normalize=True)
    for cuts in ([8, 4], [8, 3, 1]):
        parts, current, at = [], state, 0
        for size in cuts:
            part = [x[:, at : at + size] for x in whole.values()]
            out, current = gated_delta_rule(*part, current, normalize=True)
            parts.append(out)
            at += size
        torch.testing.assert_close(torch.cat(parts, 1), want, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(current, final, atol=1e-5, rtol=1e-5)
