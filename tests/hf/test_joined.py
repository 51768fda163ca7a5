"""What encoders return, in the form in which the step before the language model takes it."""

import torch

from transformers_exporters.hf.joined import joined, stacks


def test_the_items_of_a_tensor_become_one_item() -> None:
    videos, images = torch.randn(3, 8, 4), torch.randn(2, 5)
    given = {"encoded": {"video": videos, "image": images}}
    assert [path for path, _ in stacks(given)] == ["encoded.video"]
    changed = joined(given, ["encoded.video"])
    assert torch.equal(changed["encoded"]["video"], videos.reshape(1, 24, 4))
    assert changed["encoded"]["image"] is images
    assert given["encoded"]["video"] is videos
