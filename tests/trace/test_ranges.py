"""How far a graph is taken to reach, and what proving it costs."""

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


class Positions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = torch.nn.Parameter(torch.randn(1, 9, 4))

    def forward(self, steps):
        """steps float32 [b, t, 4]: a table of nine relative positions, padded for more than five steps."""
        around = max(steps.shape[1] - 5, 0)
        table = torch.nn.functional.pad(self.embeddings, [0, 0, around, around]) if around > 0 else self.embeddings
        first = max(5 - steps.shape[1], 0)
        return steps @ table[:, first : first + 2 * steps.shape[1] - 1].transpose(1, 2)


def test_an_axis_that_no_convention_names_is_tried_too():
    """`steps` is no input name that we know: the axis was said to have no end, and longer inputs came out cut."""
    model = Positions().eval()
    exported = te.DynamoExporter().export_model(
        model, {"steps": torch.randn(2, 3, 4)}, config=te.DynamoConfig(dynamic=True)
    )
    for length in (1, 2, 3, 4):
        steps = torch.randn(3, length, 4)
        torch.testing.assert_close(exported(steps=steps), model(steps))
    with pytest.raises(te.InputError, match="steps_1-5.*got steps_1=7: the model decides by it"):
        exported(steps=torch.randn(3, 7, 4))


class Chosen(torch.nn.Module):
    def forward(self, input_ids):
        """input_ids int64 [b, t]: another way to the same beyond 300 tokens, and memory that grows with their square."""
        scores = (input_ids[:, None] - input_ids[:, :, None]).float()
        return scores.sum(-1) if input_ids.shape[1] <= 300 else scores.sum(2)


def test_a_trial_that_needs_too_much_memory_proves_nothing(monkeypatch):
    inputs, ends = {"input_ids": torch.arange(14).view(2, 7)}, []
    for most in (2**30, 2**16):
        monkeypatch.setattr(ranges, "_MOST_BYTES", most)
        exported = te.DynamoExporter().export_model(Chosen(), inputs, config=te.DynamoConfig(dynamic=True))
        ends.append(exported["model"].spec.axes["sequence"].maximum)
        torch.testing.assert_close(exported(**inputs), Chosen()(**inputs))
    assert ends == [None, 300]
