"""The sizes to trace at."""

import torch

from transformers_exporters.prepare.axes import name_axes
from transformers_exporters.prepare.prepare import prepare
from transformers_exporters.prepare.resize import resize
from transformers_exporters.prepare.sizes import choose_sizes

IMAGE = 7


class Illustrated(torch.nn.Module):
    """Takes one image token for each image feature, as models with images in their prompts do."""

    def forward(self, input_ids, attention_mask, image_features):
        if (input_ids == IMAGE).sum() != image_features.shape[0]:
            raise ValueError("Image features and image tokens do not match.")
        return input_ids * attention_mask


def prompt():
    ids = torch.tensor([[7, 7, 3, 4], [1, 7, 7, 2]])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "image_features": torch.randn(4, 5)}


def test_a_longer_prompt_has_the_images_of_the_given_one():
    """Repeating the prompt would ask for more images; its last token is text."""
    ids = prepare(Illustrated(), prompt()).inputs["input_ids"]
    assert ids.shape == (2, 37)
    assert (ids == IMAGE).sum() == 4
    torch.testing.assert_close(ids[:, :4], prompt()["input_ids"])


def test_held_entries():
    given = prompt()
    longer = resize(given, name_axes(given), {"sequence": 6}, hold=True)
    assert longer["input_ids"].tolist() == [[7, 7, 3, 4, 4, 4], [1, 7, 7, 2, 2, 2]]
    shorter = resize(given, name_axes(given), {"sequence": 3}, hold=True)
    assert shorter["input_ids"].tolist() == [[7, 7, 3], [1, 7, 7]]


class Squeezing(torch.nn.Module):
    """Drops the axis of a single token, as the joint network of Nemotron's RNN-T does."""

    def forward(self, decoder_input_ids, features):
        return (features[:, :, None] + decoder_input_ids[:, None, :, None]).squeeze(2)


def test_a_single_token_whose_axis_the_model_drops():
    given = {"decoder_input_ids": torch.ones(2, 1, dtype=torch.long), "features": torch.randn(2, 5, 3)}
    prepared = prepare(Squeezing(), given)
    assert prepared.inputs["decoder_input_ids"].shape == (2, 1)
    assert Squeezing()(**prepared.inputs).dim() == 3
    longer = {**given, "decoder_input_ids": torch.ones(2, 3, dtype=torch.long)}
    assert prepare(Squeezing(), longer).inputs["decoder_input_ids"].shape[1] > 3


class Crossing(torch.nn.Module):
    """Attends from one token to its own cache and to what an encoder left."""

    def forward(self, decoder_input_ids, past_keys, encoder_keys):
        return decoder_input_ids[:, :, None] * torch.cat([past_keys, encoder_keys], dim=1).mean(1, keepdim=True)


def test_an_encoder_that_gave_one_place():
    """An image of one patch: a constant axis of 1 would refuse every larger image."""
    axes = {
        "decoder_input_ids": ("batch", "decoder_sequence"),
        "past_keys": ("batch", "cache", None),
        "encoder_keys": ("batch", "encoder_sequence", None),
    }
    given = {
        "decoder_input_ids": torch.ones(2, 1, dtype=torch.long),
        "past_keys": torch.randn(2, 4, 3),
        "encoder_keys": torch.randn(2, 1, 3),
    }
    chosen = choose_sizes(Crossing(), given, axes)
    assert chosen["encoder_keys"].shape == (2, 3, 3)
    assert chosen["past_keys"].shape == (2, 4, 3)
