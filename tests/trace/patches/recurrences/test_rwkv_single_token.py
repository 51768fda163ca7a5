from __future__ import annotations

import torch
from transformers import RwkvConfig, RwkvForCausalLM

from transformers_exporters.workarounds import Patching, collect

ID = "trace.patches.recurrences.rwkv_single_token"


def step(disabled: tuple[str, ...] = ()) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of one token after a prompt: for two rows at once, and for each row alone."""
    torch.manual_seed(0)
    config = RwkvConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=2, attention_hidden_size=16, intermediate_size=32
    )
    model = RwkvForCausalLM(config).eval()
    ids = torch.randint(1, 64, (2, 6), generator=torch.Generator().manual_seed(0))

    def last(rows: torch.Tensor) -> torch.Tensor:
        state = model(input_ids=rows[:, :5], use_cache=True).state
        return model(input_ids=rows[:, 5:], state=state, use_cache=True).logits[:, -1]

    with torch.no_grad(), Patching(collect("transformers_exporters.trace.patches"), model, disabled):
        return last(ids), torch.cat([last(ids[:1]), last(ids[1:])])


def test_needed():
    together, alone = step(disabled=(ID,))
    assert not torch.allclose(together, alone, atol=1e-4)


def test_works():
    together, alone = step()
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)
