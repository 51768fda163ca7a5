from __future__ import annotations

import pytest
import torch
from transformers import SuperPointConfig, SuperPointForKeypointDetection

ID = "trace.patches.images.keypoints_of_batch"


def model(**fields) -> SuperPointForKeypointDetection:
    torch.manual_seed(0)
    config = SuperPointConfig(
        encoder_hidden_sizes=[8, 8, 8, 8],
        decoder_hidden_size=8,
        descriptor_decoder_dim=8,
        border_removal_distance=2,
        keypoint_threshold=0.0156,
        nms_radius=2,
        **fields,
    )
    superpoint = SuperPointForKeypointDetection(config).eval()
    for weight in superpoint.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.15)  # so that scores differ
    return superpoint


def images(number: int, height: int = 48, width: int = 64) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(number, 3, height, width, generator=torch.Generator().manual_seed(number))}


@pytest.mark.xfail(strict=True, reason="the loop over images fixes their number")
def test_needed(runs_like):
    runs_like(model(), images(2), [images(3)], without=[ID])


def test_works(runs_like):
    """Other numbers of images, of other sizes, with as many keypoints as there are."""
    superpoint = model()
    assert superpoint(**images(2)).keypoints.shape[1] > 3
    runs_like(superpoint, images(2), [images(3), images(1, 40, 96)])


def test_the_best_of_them(runs_like):
    superpoint = model(max_keypoints=9)
    assert superpoint(**images(2)).keypoints.shape[1] == 9
    runs_like(superpoint, images(2), [images(3), images(1, 40, 96)])


def test_no_keypoints(runs_like):
    runs_like(model(), images(2), [{"pixel_values": torch.zeros(2, 3, 16, 16)}])
