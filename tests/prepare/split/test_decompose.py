"""`generate` runs on the model as its author wrote it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import EncodecConfig, LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.models.encodec.modeling_encodec import EncodecConv1d

import transformers_exporters as te
from models import DECODER


class Spoken(LlamaForCausalLM):
    """Encodes a waveform before its loop, as Moshi does; the padding is computed with tensors."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.codec = EncodecConv1d(EncodecConfig(use_causal_conv=True), 1, 1, 5, stride=2)

    def generate(self, input_ids: torch.Tensor, **kwargs: Any) -> Any:
        count = int(self.codec(torch.ones(1, 1, 9)).shape[-1])
        return super().generate(input_ids[:, :count], **kwargs)


def test_what_runs_before_the_loop_computes_with_its_own_buffers() -> None:
    model = Spoken(LlamaConfig(**DECODER)).eval()
    parts = te.decompose_for_generation(model, {"input_ids": torch.arange(3, 15).reshape(2, 6)})
    assert list(parts) == ["prefill", "decode"]
    assert parts["prefill"][1]["input_ids"].shape == (2, 5)
    assert "stride" in dict(model.codec.named_buffers())


class Searching(PreTrainedModel):
    """Lets an inner model write hypotheses and weighs them itself, as RAG does."""

    def __init__(self) -> None:
        super().__init__(LlamaConfig(**DECODER))
        self.writer = LlamaForCausalLM(self.config)

    def generate(self, input_ids: torch.Tensor, **kwargs: Any) -> Any:
        return self(self.writer.generate(input_ids, **kwargs))

    def forward(self, hypotheses: torch.Tensor) -> torch.Tensor:
        return hypotheses.sum(1)


def test_a_model_that_only_uses_what_another_generates_names_the_other() -> None:
    model = Searching().eval()
    with pytest.raises(te.UnsupportedModelError, match=r"generate runs in model\.writer: export that one"):
        te.decompose_for_generation(model, {"input_ids": torch.arange(3, 15).reshape(2, 6)})
