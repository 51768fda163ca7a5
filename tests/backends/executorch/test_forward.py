"""A model through export, disk and ExecuTorch's own runtime."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from transformers_exporters.errors import InputError


def bert() -> BertForMaskedLM:
    torch.manual_seed(0)
    return BertForMaskedLM(
        BertConfig(
            vocab_size=120,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=48,
            max_position_embeddings=64,
        )
    ).eval()


def text(batch: int, length: int, padded: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(batch * 100 + length)
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[0, :padded] = 0
    return {"input_ids": torch.randint(0, 120, (batch, length), generator=generator), "attention_mask": mask}


def test_an_encoder_runs_at_sizes_that_were_never_traced(export: Any) -> None:
    exported = export(bert(), text(1, 7))
    for batch, length in ((1, 7), (3, 7), (1, 1), (2, 2), (2, 64)):
        assert exported.error(**text(batch, length)) < 1e-5
    assert exported.error(**text(2, 9, padded=3)) < 1e-5


def test_most_operators_are_delegated_and_the_notes_say_so(export: Any) -> None:
    exported = export(bert(), text(2, 7))
    notes = exported.notes
    assert notes["delegated"] > 4 * notes["undelegated"]
    # Two parts a layer: the views that split heads lie between them.
    assert notes["parts"] <= 10
    # The attention scores live in XNNPACK's workspace: planned at their bound they alone would take 16 MB.
    assert notes["arena_bytes"] < 8e6


def test_an_input_past_a_bound_is_refused_by_name(export: Any) -> None:
    exported = export(bert(), text(2, 7))
    axes = exported.loaded[exported.name].spec.axes
    assert axes["sequence"].maximum == 64
    with pytest.raises(InputError, match=r"input_ids.*64|64.*input_ids"):
        exported(**text(2, 65))
    with pytest.raises(InputError, match="batch"):
        exported(**text(axes["batch"].maximum + 1, 7))


def test_explicit_bounds_are_kept_and_run_at_both_ends(export: Any) -> None:
    from torch.export import Dim

    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=120,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            use_cache=False,
        )
    ).eval()
    batch, sequence = Dim("batch", min=1, max=3), Dim("sequence", min=2, max=40)
    shapes = {"input_ids": {0: batch, 1: sequence}, "attention_mask": {0: batch, 1: sequence}}
    exported = export(model, text(2, 7), dynamic_shapes=shapes, prefer_deferred_runtime_asserts_over_guards=True)
    for rows, length in ((1, 2), (3, 2), (1, 40), (3, 40)):
        assert exported.error(**text(rows, length)) < 1e-5
    with pytest.raises(InputError, match=r"sequence.*40|40.*sequence"):
        exported(**text(2, 41))
    with pytest.raises(InputError, match="sequence"):
        exported(**text(2, 1))
    with pytest.raises(InputError, match="batch"):
        exported(**text(4, 7))
    stated = {name: (axis.minimum, axis.maximum) for name, axis in exported.loaded[exported.name].spec.axes.items()}
    assert stated == {"batch": (1, 3), "sequence": (2, 40)}


def test_a_tied_embedding_is_stored_once(export: Any) -> None:
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=8000,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=1,
            num_attention_heads=4,
            tie_word_embeddings=True,
            use_cache=False,
        )
    ).eval()
    exported = export(model, text(2, 7))
    weights = sum(parameter.numel() * 4 for parameter in model.parameters())
    size = (exported.directory / "model.pte").stat().st_size
    assert size < 1.03 * weights
    # The same bytes serve both of its users.
    assert exported.error(**text(3, 5)) < 1e-5
    # What `exporter.export` returns is the same program, complete in itself.
    assert len(exported.fresh[exported.name].program.buffer) == size


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 5e-3), (torch.bfloat16, 5e-2)])
def test_sixteen_bit_models_run_and_stay_sixteen_bit(export: Any, dtype: torch.dtype, tolerance: float) -> None:
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=4000,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=2,
            tie_word_embeddings=True,
            use_cache=False,
        )
    )
    exported = export(model.to(dtype).eval(), text(2, 7))
    assert exported.error(**text(3, 5)) < tolerance
    assert exported.notes["delegated"] > 0
    weights = sum(parameter.numel() * 2 for parameter in model.parameters())
    assert (exported.directory / "model.pte").stat().st_size < 1.5 * weights + 100_000


def test_the_maximum_along_an_axis_of_any_size(export: Any) -> None:
    """executorch makes it a pooling over a window of the size that was traced, if it can."""

    class Largest(torch.nn.Module):
        def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            x = pixel_values * 2
            return x.max(dim=-1, keepdim=True).values + 1, x.max(dim=2).values * 3, x.amax(3)

    exported = export(Largest(), {"pixel_values": torch.randn(2, 3, 9, 7)})
    for height, width in ((9, 7), (4, 11), (15, 3)):
        assert exported.error(pixel_values=torch.randn(3, 3, height, width)) < 1e-6
