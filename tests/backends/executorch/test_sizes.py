"""Size arithmetic for which the runtime has no operator, and inputs in an unusual order."""

from __future__ import annotations

from typing import Any

import torch


class Side(torch.nn.Module):
    """Counts along the side of a square of patches, as Idefics3's connector finds it."""

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """float32 [batch, length, 8] -> [batch, int(sqrt(length))]."""
        side = int(patches.shape[1] ** 0.5)
        return patches.sum((1, 2))[:, None] * torch.arange(side)


def test_the_side_of_a_square(export: Any) -> None:
    exported = export(Side(), {"patches": torch.randn(2, 9, 8)})
    for batch, length in ((1, 9), (3, 25), (2, 256), (2, 255)):
        assert exported.error(patches=torch.randn(batch, length, 8)) < 1e-3


class NoneFirst(torch.nn.Module):
    """Takes an argument that is None before its tensors, and holds a constant: Whisper's encoder."""

    def forward(self, flag: bool | None = None, values: torch.Tensor | None = None) -> torch.Tensor:
        assert values is not None
        return values * torch.tensor([1.0, 2.0, 3.0])


def test_a_constant_behind_an_argument_that_is_no_tensor(export: Any) -> None:
    exported = export(NoneFirst(), {"flag": None, "values": torch.randn(2, 3)})
    assert exported.error(values=torch.randn(4, 3)) == 0


def test_components_that_are_open_share_one_program(export: Any) -> None:
    from transformers_exporters import ExportedModel

    exported = export(Side(), {"patches": torch.randn(2, 9, 8)})
    other = ExportedModel.from_pretrained(exported.directory)
    session: Any = exported.loaded["model"].session
    assert session._program is other["model"].session._program


def test_a_recurrent_layer_of_a_fixed_number_of_steps(export: Any) -> None:
    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 6, batch_first=True, bidirectional=True)

        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            return self.lstm(hidden_states)[0]

    exported = export(Recurrent(), {"hidden_states": torch.randn(2, 7, 4)})
    assert exported.error(hidden_states=torch.randn(3, 7, 4)) < 1e-5


def test_a_sample_that_is_a_transposed_view(export: Any) -> None:
    class Window(torch.nn.Module):
        def forward(self, state: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            """float32 [batch, 4, 3] and [batch, 4, 1] -> [batch, 4, 4]."""
            return torch.cat([state, values * 2], -1)

    exported = export(Window(), {"state": torch.randn(2, 3, 4).transpose(1, 2), "values": torch.randn(2, 4, 1)})
    for batch in (2, 3):
        state = torch.randn(batch, 3, 4).transpose(1, 2)
        assert exported.error(state=state, values=torch.randn(batch, 4, 1)) == 0
