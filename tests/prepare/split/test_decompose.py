"""`generate` runs on the model as its author wrote it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import EncodecConfig, GenerationMixin, LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.cache_utils import Cache
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.encodec.modeling_encodec import EncodecConv1d

import transformers_exporters as te
from models import DECODER, decoder, ids


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


def test_a_part_of_generate_that_is_in_no_graph_is_named() -> None:
    model = Spoken(LlamaConfig(**DECODER)).eval()
    given = {"input_ids": ids(2, 6)}
    exported = te.DynamoExporter().export_model(model, given, te.DynamoConfig(dynamic=True), for_generation=True)
    line = r"test_decompose.py:\d+: count = int\(self.codec"
    with pytest.raises(te.UnsupportedModelError, match=rf"prefill, decode, and generate needs .* \({line}"):
        exported.generate(**given, max_new_tokens=2)


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


class Latents(Cache):
    """Keeps one tensor [batch, tokens, width] instead of keys and values."""

    def __init__(self) -> None:
        self.layers: list[Any] = []
        self.latents: list[torch.Tensor] = []

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.latents[0].shape[1] if self.latents else 0


class Remembering(PreTrainedModel, GenerationMixin):
    """Attends to all latents; the mask hides padding."""

    config_class = LlamaConfig

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.tokens = torch.nn.Embedding(config.vocab_size, 12)
        self.head = torch.nn.Linear(12, config.vocab_size)
        torch.nn.init.normal_(self.head.weight, generator=torch.Generator().manual_seed(0))

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Latents | None = None,
        **kwargs: Any,
    ) -> CausalLMOutputWithPast:
        hidden = self.tokens(input_ids)
        past_key_values = past_key_values if past_key_values is not None else Latents()
        earlier = past_key_values.get_seq_length()
        latents = torch.cat([*past_key_values.latents, hidden], dim=1)
        past_key_values.latents = [latents]
        ahead = torch.arange(latents.shape[1])[None] > torch.arange(earlier, latents.shape[1])[:, None]
        scores = (hidden @ latents.mT).masked_fill(ahead, -1e4)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None] == 0, -1e4)
        hidden = hidden + scores.softmax(-1) @ latents
        return CausalLMOutputWithPast(logits=self.head(hidden), past_key_values=past_key_values)

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **kwargs: Any) -> dict[str, Any]:
        past = kwargs.get("cache") or kwargs.get("past_key_values")
        ids = input_ids if past is None else input_ids[:, -1:]
        return {"input_ids": ids, "attention_mask": kwargs.get("attention_mask"), "past_key_values": past}


def test_a_cache_of_a_models_own_grows() -> None:
    model = Remembering(LlamaConfig(**DECODER)).eval()
    given = {"input_ids": torch.arange(3, 15).reshape(2, 6), "attention_mask": torch.ones(2, 6, dtype=torch.int64)}
    given["attention_mask"][0, :2] = 0
    config = te.DynamoConfig(dynamic=True)
    exported = te.DynamoExporter().export_model(model, given, config, for_generation=True)
    ids = torch.arange(3, 30).reshape(3, 9)
    other = {"input_ids": ids, "attention_mask": (torch.arange(9) >= torch.tensor([[0], [3], [7]])).long()}
    settings = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}
    for inputs in (given, other):
        assert torch.equal(exported.generate(**inputs, **settings), model.generate(**inputs, **settings))


def test_a_generate_that_fails_is_named(monkeypatch):
    model = decoder("llama")

    def fail(**_):
        raise RuntimeError("shape '[2, 4, -1]' is invalid for input of size 12")

    monkeypatch.setattr(model, "forward", fail)
    with pytest.raises(
        te.UnsupportedModelError, match=r"LlamaForCausalLM\.generate fails .* 2 tokens.*input of size 12\."
    ):
        te.decompose_for_generation(model, {"input_ids": ids(1, 5)})


def test_a_generate_that_counts_no_tokens_is_refused(monkeypatch):
    model = decoder("llama")
    monkeypatch.setattr(model, "generate", lambda past_values: past_values)
    with pytest.raises(te.UnsupportedModelError, match="takes no max_new_tokens"):
        te.decompose_for_generation(model, {"past_values": torch.ones(1, 5)})


class Twice(LlamaForCausalLM):
    """Runs its prompt twice, as MusicGen does: once for nothing."""

    def generate(self, input_ids, **options):
        self(input_ids=input_ids, use_cache=True)
        return super().generate(input_ids=input_ids, **options)


def test_a_prompt_that_runs_twice_is_no_step() -> None:
    """The second run was taken for a step: it had no cache, and its tokens were wrong in silence."""
    parts = te.decompose_for_generation(Twice(LlamaConfig(**DECODER)).eval(), {"input_ids": ids(2, 5)})
    _, step = parts["decode"]
    assert step["input_ids"].shape == (2, 1)
    assert step["cache"].get_seq_length() == 5
