"""Counts of places: as many as there are fit into the planned memory."""

from __future__ import annotations

from typing import Any

import torch


class Chosen(torch.nn.Module):
    def forward(self, input_features: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """input_features float32 [batch, frames, 4], mask bool [batch, frames]."""
        return input_features[mask] + 1, torch.where(mask)[1] * 2, torch.masked_select(input_features[..., 0], mask)


def case(batch: int, frames: int) -> dict[str, torch.Tensor]:
    values = torch.arange(4.0 * batch * frames).reshape(batch, frames, 4)
    return {"input_features": values, "mask": torch.ones(batch, frames, dtype=torch.bool)}


def test_every_place_can_be_chosen(export: Any) -> None:
    exported = export(Chosen(), case(2, 5))
    for batch, frames in ((2, 5), (3, 7), (4, 700)):
        assert exported.error(**case(batch, frames)) == 0


class Best(torch.nn.Module):
    def forward(self, input_features: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """input_features float32 [batch, frames, 4], mask bool [batch, frames]: the frames of each row that are let through."""
        most = mask.sum(1).amax().item()
        torch._check(most >= 1)
        torch._check(most <= mask.shape[1])
        order = torch.topk(mask.to(torch.int64) * 1000 - torch.arange(mask.shape[1]), most, dim=1).indices
        return torch.gather(input_features, 1, order.unsqueeze(-1).expand(-1, -1, 4)) + 1


def test_all_can_be_taken_from_the_top(export: Any) -> None:
    exported = export(Best(), case(2, 5))
    for batch, frames in ((2, 5), (3, 7), (4, 700)):
        assert exported.error(**case(batch, frames)) == 0


class Third(torch.nn.Module):
    def forward(self, input_features: torch.Tensor) -> torch.Tensor:
        """input_features float32 [frames]: twice the place of the third that is not zero."""
        places = torch.nonzero(input_features).squeeze(1)
        return places[2] * 2


def test_one_of_a_number_that_is_data(export: Any) -> None:
    exported = export(Third(), {"input_features": torch.tensor([0.0, 1, 1, 0, 1])})
    assert exported.error(input_features=torch.tensor([0.0, 1, 1, 0, 0, 0, 1, 1])) == 0
