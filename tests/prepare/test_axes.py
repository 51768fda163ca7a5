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
