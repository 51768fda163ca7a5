"""Images of one size only."""

import pytest
import torch

from transformers_exporters.prepare.prepare import prepare


class Windows(torch.nn.Module):
    """Adds a position to each pixel of an image; `fixed` as SAM 2 does, else as far as the image goes."""

    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.fixed = fixed
        self.register_buffer("position", torch.randn(64, 64))

    def forward(self, pixel_values, pixel_mask=None, input_ids=None):
        height, width = pixel_values.shape[-2:]
        position = self.position if self.fixed else self.position[:height, :width]
        return pixel_values + position if pixel_mask is None else (pixel_values + position) * pixel_mask[:, None]


def images(size: int = 64) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, size, size), "pixel_mask": torch.ones(2, size, size)}


def test_an_image_that_the_model_refuses_at_other_sizes():
    prepared = prepare(Windows(fixed=True), images())
    assert prepared.static == {"height", "width"}
    assert prepared.inputs["pixel_values"].shape[2:] == (64, 64)


@pytest.mark.parametrize(
    "model, inputs",
    [
        (Windows(fixed=False), images()),  # takes smaller ones
        (Windows(fixed=True), {**images(), "input_ids": torch.ones(2, 5, dtype=torch.int64)}),  # the prompt may be why
        (
            Windows(fixed=False),
            {"input_ids": torch.ones(2, 5, dtype=torch.int64), "pixel_values": torch.ones(2, 3, 4, 4)},
        ),
    ],
)
def test_images_that_may_vary(model, inputs):
    assert not prepare(model, inputs).static


def test_no_trial_where_the_caller_wants_one_size():
    assert not prepare(Windows(fixed=True), images(), resize_axes=False).static
