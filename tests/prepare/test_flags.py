"""What asks for a loss is refused; a prompt whose name sounds like it is not."""

import pytest
import torch

from transformers_exporters.errors import UnsupportedModelError
from transformers_exporters.prepare.flags import refuse_losses


def test_labels_of_points_are_a_prompt():
    refuse_losses({"input_points": torch.zeros(1, 1, 2, 2), "input_labels": torch.ones(1, 1, 2)})


@pytest.mark.parametrize("name", ["labels", "mask_labels", "start_positions"])
def test_what_is_compared_with_is_refused(name):
    with pytest.raises(UnsupportedModelError, match=f"without '{name}'"):
        refuse_losses({name: torch.ones(1)})
