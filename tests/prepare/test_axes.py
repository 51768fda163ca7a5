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
