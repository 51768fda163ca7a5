"""The caller's model after an export, where its own forward changes it."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import RwkvConfig, RwkvForCausalLM

import transformers_exporters as te
from transformers_exporters.prepare.untouched import kept_weights


def test_written_weights_are_put_back_also_through_a_view_and_after_an_error() -> None:
    model = torch.nn.Linear(3, 4)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="boom"), kept_weights(model), torch.no_grad():
        model.weight.mul_(2)
        model.weight[0].add_(1)
        model.bias[1:].zero_()
        raise ValueError("boom")
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_what_is_not_written_is_not_copied() -> None:
    model = torch.nn.Linear(3, 4)
    addresses = [parameter.data_ptr() for parameter in model.parameters()]
    with kept_weights(model):
        model(torch.ones(1, 3))
    assert [parameter.data_ptr() for parameter in model.parameters()] == addresses


@pytest.mark.parametrize("for_generation", [False, True])
def test_a_model_that_divides_its_weights_in_the_first_forward(for_generation: bool) -> None:
    """RWKV with more layers than `rescale_every`: every eager run of the export divided them again."""
    torch.manual_seed(0)
    config = RwkvConfig(
        vocab_size=50,
        hidden_size=16,
        attention_hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=4,
        rescale_every=2,
    )
    model = RwkvForCausalLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    before = copy.deepcopy(model.state_dict())
    inputs = {"input_ids": torch.randint(0, 50, (1, 6)), "attention_mask": torch.ones(1, 6, dtype=torch.int64)}
    exported = te.DynamoExporter().export_model(
        model, inputs, te.DynamoConfig(dynamic=True), for_generation=for_generation
    )
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model.rwkv.layers_are_rescaled
    component = exported["prefill" if for_generation else "model"]
    expected = copy.deepcopy(model)(**inputs).logits[:, -1]  # the program shares the model's weights until it is saved
    for _ in range(2):  # a program that divides its own weights is right once
        torch.testing.assert_close(component(**inputs).logits[:, -1], expected, rtol=1e-3, atol=1e-4)
