"""Kinds of models whose generation is unlike a plain decoder's: state in modules, inner models, images of many sizes."""

import logging

import pytest
import torch
import transformers

import transformers_exporters as te
from models import DECODER, ids, left_padded, llava, mamba

GREEDY = {"max_new_tokens": 8, "do_sample": False}
VISION = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def reloaded(model, inputs, directory, **options):
    exported = te.DynamoExporter().export_model(
        model, inputs, config=te.DynamoConfig(dynamic=True), for_generation=True, **options
    )
    exported.save_pretrained(directory)
    return te.ExportedModel.from_pretrained(directory, trust_remote_code=True)


def recurrent_gemma():
    torch.manual_seed(0)
    config = transformers.RecurrentGemmaConfig(
        vocab_size=128,
        hidden_size=32,
        lru_width=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        attention_window_size=8,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.RecurrentGemmaForCausalLM(config).eval()


def test_state_in_module_attributes_is_an_input_and_an_output(tmp_path):
    model = recurrent_gemma()
    exported = reloaded(model, {"input_ids": ids(1, 5)}, tmp_path / "artifact")
    assert any(tensor.name.startswith("module_state.") for tensor in exported["decode"].spec.inputs)
    # Two generations at a time, step by step in turns: each has its own state.
    for inputs in ({"input_ids": ids(2, 11)}, left_padded(3, 9, (4, 0, 1))):
        wanted = recurrent_gemma().generate(**inputs, **GREEDY)
        assert torch.equal(exported.generate(**inputs, **GREEDY), wanted)


def blip2():
    torch.manual_seed(0)
    config = transformers.Blip2Config(
        vision_config={**VISION, "image_size": 16, "patch_size": 8},
        qformer_config={**VISION, "vocab_size": 64, "encoder_hidden_size": 32, "cross_attention_frequency": 1},
        text_config={
            "model_type": "opt",
            "vocab_size": 128,
            "hidden_size": 32,
            "ffn_dim": 64,
            "word_embed_proj_dim": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 128,
            "pad_token_id": 1,
            "bos_token_id": 0,
            "eos_token_id": 2,
        },
        num_query_tokens=4,
        image_token_index=5,
    )
    return transformers.Blip2ForConditionalGeneration(config).eval()


def test_a_model_that_lets_an_inner_model_generate(tmp_path):
    model = blip2()

    def prompt(batch, length, seed):
        tokens = ids(batch, length, seed)
        tokens[tokens == 5] = 6
        tokens[:, 1:5] = 5
        pixels = torch.randn(batch, 3, 16, 16, generator=torch.Generator().manual_seed(seed))
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "pixel_values": pixels}

    exported = reloaded(model, prompt(1, 8, 0), tmp_path / "artifact")
    assert list(exported) == ["embed_inputs", "prefill", "decode"]
    padded = prompt(3, 11, 2)
    padded["attention_mask"][1, :1] = 0
    for inputs in (prompt(1, 8, 0), padded):
        wanted = model.generate(**inputs, **GREEDY)
        assert torch.equal(exported.generate(**inputs, **GREEDY), wanted)
        sampled = {"max_new_tokens": 5, "do_sample": True, "num_beams": 2}
        torch.manual_seed(3)
        wanted = model.generate(**inputs, **sampled)
        torch.manual_seed(3)
        assert torch.equal(exported.generate(**inputs, **sampled), wanted)


def test_any_number_of_images_in_a_prompt(tmp_path):
    """Exported with one image; runs with three of them in one prompt, and with two prompts of two and one."""
    model = llava()

    def prompt(*counts):
        rows = []
        for row, images in enumerate(counts):
            text = [*ids(1, 3, row)[0].tolist()] * max(counts)
            text = [6 if token == 5 else token for token in text]
            rows.append(text[: 3 * max(counts)] + [5] * 16 * images)
        width = max(map(len, rows))
        tokens = torch.tensor([[0] * (width - len(row)) + row for row in rows])
        pixels = torch.randn(sum(counts), 3, 8, 8, generator=torch.Generator().manual_seed(len(counts)))
        return {"input_ids": tokens, "attention_mask": (tokens != 0).long(), "pixel_values": pixels}

    exported = reloaded(model, prompt(1), tmp_path / "artifact")
    for inputs in (prompt(1), prompt(3), prompt(2, 1)):
        wanted = model.generate(**inputs, **GREEDY)
        assert torch.equal(exported.generate(**inputs, **GREEDY), wanted)


def packed_vision(name):
    torch.manual_seed(0)
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
    text = {**DECODER, "rope_parameters": rope}
    tokens = {"image_token_id": 5, "video_token_id": 6, "vision_start_token_id": 3, "vision_end_token_id": 4}
    vision = {"depth": 2, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "intermediate_size": 64}
    if name == "qwen2_vl":
        vision |= {"embed_dim": 32, "hidden_size": 64, "num_heads": 4, "mlp_ratio": 2}
        config = transformers.Qwen2VLConfig(text_config=text, vision_config=vision, **tokens)
        return transformers.Qwen2VLForConditionalGeneration(config).eval()
    vision |= {"hidden_size": 32, "num_heads": 4, "out_hidden_size": 64}
    if name == "qwen2_5_vl":
        vision |= {"window_size": 16, "fullatt_block_indexes": [1]}
        config = transformers.Qwen2_5_VLConfig(text_config=text, vision_config=vision, **tokens)
        return transformers.Qwen2_5_VLForConditionalGeneration(config).eval()
    vision |= {"num_position_embeddings": 16, "deepstack_visual_indexes": [0]}
    text |= {"head_dim": 16, "rope_parameters": {**rope, "mrope_section": [4, 2, 2]}}
    config = transformers.Qwen3VLConfig(text_config=text, vision_config=vision, **tokens)
    return transformers.Qwen3VLForConditionalGeneration(config).eval()


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def test_images_of_other_sizes_in_one_batch(name, tmp_path):
    """Exported with one image of 8 x 8 patches; runs on images of other sizes and shapes, packed in one batch."""
    model = packed_vision(name)

    def prompt(*grids, seed=0):
        rows = []
        for number, grid in enumerate(grids):
            merged = grid[0] * grid[1] * grid[2] // 4
            rows.append([*ids(1, 3, seed + number)[0].clamp(min=7).tolist(), 3, *[5] * merged, 4, 9])
        width = max(map(len, rows))
        tokens = torch.tensor([[0] * (width - len(row)) + row for row in rows])
        patches = sum(grid[0] * grid[1] * grid[2] for grid in grids)
        pixels = torch.randn(patches, 3 * 2 * 4 * 4, generator=torch.Generator().manual_seed(seed))
        return {
            "input_ids": tokens,
            "attention_mask": (tokens != 0).long(),
            "mm_token_type_ids": (tokens == 5).long(),
            "pixel_values": pixels,
            "image_grid_thw": torch.tensor(grids),
        }

    exported = reloaded(model, prompt((1, 8, 8)), tmp_path / "artifact")
    for inputs in (prompt((1, 8, 8)), prompt((1, 8, 12), (1, 4, 4), seed=3), prompt((1, 2, 6), seed=5)):
        wanted = model.generate(**inputs, **GREEDY)
        assert torch.equal(exported.generate(**inputs, **GREEDY), wanted)


def test_a_state_that_forward_does_not_continue_takes_one_token_at_a_time(tmp_path, caplog):
    """Twelve tokens as 12, as 8 + 4 x 1, and as 8 + 3 + 1: the same logits."""
    model = mamba()
    with caplog.at_level(logging.WARNING):
        exported = reloaded(model, {"input_ids": ids(1, 5)}, tmp_path / "artifact", multi_token_decode=True)
    assert "one token at a time" in caplog.text
    tokens = ids(2, 12)
    with torch.no_grad():
        wanted = model(input_ids=tokens).logits[:, -1]
    for cuts in ((8, 9, 10, 11, 12), (8, 11, 12)):
        cache, start = None, 0
        for stop in cuts:
            step = {"input_ids": tokens[:, start:stop], "cache": cache, "use_cache": True}
            outputs = exported.generator(**step)
            cache, start = outputs.cache, stop
        torch.testing.assert_close(outputs.logits[:, -1], wanted, atol=2e-5, rtol=1e-4)
