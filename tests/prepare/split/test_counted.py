"""A number that `generate` counts up is refused: a graph would hold the first one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import transformers_exporters as te
from models import DECODER

INPUTS = {"input_ids": torch.arange(3, 15).reshape(2, 6)}


class Stepped(LlamaForCausalLM):
    """Counts its steps, or gives every one of them the same number, as Qwen3-Omni's code predictor counts its heads."""

    stride = 1

    def forward(self, *args: Any, generation_steps: int | None = None, **kwargs: Any) -> Any:
        outputs = super().forward(*args, **kwargs)
        outputs.logits = outputs.logits * (generation_steps or 1)
        return outputs

    def _update_model_kwargs_for_generation(self, outputs: Any, model_kwargs: Any, *args: Any, **kwargs: Any) -> Any:
        model_kwargs = super()._update_model_kwargs_for_generation(outputs, model_kwargs, *args, **kwargs)
        return {**model_kwargs, "generation_steps": model_kwargs.get("generation_steps", 1) + self.stride}


@pytest.mark.parametrize("several", [False, True])
def test_a_number_that_is_counted_up_is_refused(several: bool) -> None:
    model = Stepped(LlamaConfig(**DECODER)).eval()
    with pytest.raises(te.UnsupportedModelError, match=r"another number \(generation_steps=2, then 3\)"):
        te.decompose_for_generation(model, INPUTS, multi_token_decode=several)


def test_a_number_that_stays_the_same_is_kept() -> None:
    model = Stepped(LlamaConfig(**DECODER)).eval()
    model.stride = 0
    assert te.decompose_for_generation(model, INPUTS)["decode"][1]["generation_steps"] == 1
