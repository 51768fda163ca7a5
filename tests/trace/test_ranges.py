"""What proving ranges costs."""

import pytest
import torch
from transformers import NemotronHConfig, NemotronHForCausalLM

import transformers_exporters as te
from transformers_exporters.trace import ranges


def _trials(layers: int, monkeypatch: pytest.MonkeyPatch) -> int:
    torch.manual_seed(0)
    config = NemotronHConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        layers_block_type=["mamba"] * layers + ["attention"],
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        ssm_state_size=8,
        mamba_num_heads=4,
        mamba_head_dim=8,
        n_groups=1,
        pad_token_id=0,
    )
    model = NemotronHForCausalLM(config).eval()
    decode, kwargs = te.decompose_for_generation(model, {"input_ids": torch.randint(3, 64, (2, 5))})["decode"]
    tried = []
    agrees = ranges.Trial.agrees
    monkeypatch.setattr(ranges.Trial, "agrees", lambda self, inputs: tried.append(agrees(self, inputs)) or tried[-1])
    te.DynamoExporter().export(decode, kwargs, config=te.DynamoConfig(dynamic=True))
    assert False not in tried
    return len(tried)


def test_more_layers_are_no_more_trials(monkeypatch):
    """The states of all layers change together: a trial for each layer took most of a hybrid model's export."""
    few = _trials(2, monkeypatch)
    assert 0 < few == _trials(4, monkeypatch)
