"""Names of axes by the names of the inputs."""

from __future__ import annotations

import torch

from transformers_exporters.prepare.axes import name_axes


def test_what_comes_once_for_each_packed_image_has_their_axis() -> None:
    named = name_axes(
        {
            "pixel_values": torch.ones(24, 12),
            "image_grid_thw": torch.ones(2, 3, dtype=torch.long),
            "image_merge_sizes": torch.ones(2, dtype=torch.long),
        }
    )
    assert named == {
        "pixel_values": ("patches", None),
        "image_grid_thw": ("images", None),
        "image_merge_sizes": ("images",),
    }


def test_pictures_in_tiles() -> None:
    named = name_axes(
        {
            "input_ids": torch.ones(2, 5, dtype=torch.long),
            "pixel_values": torch.ones(2, 1, 4, 3, 30, 28),
            "aspect_ratio_mask": torch.ones(2, 1, 4),
            "cross_attention_mask": torch.ones(2, 5, 1, 4),
        }
    )
    assert named["pixel_values"] == ("batch", "images", "tiles", None, "height", "width")
    assert named["aspect_ratio_mask"] == ("batch", "images", "tiles")
    assert named["cross_attention_mask"] == ("batch", "sequence", "images", "tiles")


def test_what_grows_in_a_cache_of_a_models_own() -> None:
    """By its size: as many as the mask has and the tokens have not."""
    step = {
        "input_ids": torch.ones(2, 1, dtype=torch.long),
        "attention_mask": torch.ones(2, 8, dtype=torch.long),
        "past_key_values": {
            "latent": [torch.ones(2, 7, 12)],
            "pairs": [torch.ones(2, 7, 7, 4)],
            "conv": [torch.ones(2, 5, 3)],
        },
    }
    assert name_axes(step) == {
        "input_ids": ("batch", "sequence"),
        "attention_mask": ("batch", "total_sequence"),
        "past_key_values.latent.0": ("batch", "cache", None),
        "past_key_values.pairs.0": ("batch", None, "cache", None),
        "past_key_values.conv.0": ("batch", None, None),
    }


def test_states_beside_a_mask_alone_share_its_axis_though_it_has_one_entry() -> None:
    """One patch an image (a connector of Idefics2): the mask alone became longer, which an all-true mask lets happen."""
    states, mask = torch.ones(4, 1, 8), torch.ones(4, 1, dtype=torch.bool)
    named = name_axes({"image_hidden_states": states, "attention_mask": mask})
    assert named["image_hidden_states"] == ("batch", "sequence", None)
    beside_text = name_axes({"input_ids": mask.long(), "image_hidden_states": states, "attention_mask": mask})
    assert beside_text["image_hidden_states"] == ("batch", None, None)


def test_several_images_in_a_row_have_an_axis_of_their_own() -> None:
    """Their number froze the batch of one prompt with two images without a word."""
    inputs = {
        "pixel_values": torch.ones(2, 3, 8, 8),
        "image_sizes": torch.ones(2, 2, dtype=torch.long),
        "input_ids": torch.ones(1, 5, dtype=torch.long),
    }
    named = name_axes(inputs)
    assert named["pixel_values"] == ("images", None, "height", "width")
    assert named["image_sizes"] == ("images", None)
    assert named["input_ids"] == ("batch", "sequence")
    inputs["input_ids"] = torch.ones(2, 5, dtype=torch.long)
    assert name_axes(inputs)["pixel_values"] == ("batch", None, "height", "width")


def test_the_mask_of_a_decoder_covers_its_cache() -> None:
    inputs = {
        "decoder_input_ids": torch.ones(2, 1, dtype=torch.long),
        "decoder_attention_mask": torch.ones(2, 5, dtype=torch.long),
        "cache": {"keys": torch.zeros(2, 2, 4, 3)},
    }
    assert name_axes(inputs)["decoder_attention_mask"] == ("batch", "total_sequence")
