from __future__ import annotations

import pytest
import torch

ID = "trace.patches.images.no_keypoints"


class Matcher(torch.nn.Module):
    """Matches the first keypoints of two images, as many as there are marks; SuperGlue's question in small."""

    def forward(self, points, mask, marks):
        """points float [batch, 2, most, 2], mask int [batch, 2, most], marks bool [n]."""
        count = marks.sum().item()
        torch._check(count >= 0)
        torch._check(count <= points.shape[2])
        return self._match_image_pair(points[:, :, :count], mask[:, :, :count])

    def _match_image_pair(self, keypoints, mask=None, output_attentions=None, output_hidden_states=None):
        if keypoints.shape[2] == 0:
            shape = keypoints.shape[:-1]
            return keypoints.new_full(shape, -1, dtype=torch.int), keypoints.new_zeros(shape), None
        near = (keypoints[:, 0, :, None] - keypoints[:, 1, None]).square().sum(-1).neg().exp() * mask[:, 0, :, None]
        best = [near.max(2), near.max(1)]
        matches = torch.stack([found.indices for found in best], dim=1)
        return matches.int(), torch.stack([found.values for found in best], dim=1), None


def inputs(marks: int, most: int = 6, batch: int = 2) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(marks)
    given = torch.arange(8) < marks
    points, mask = torch.randn(batch, 2, most, 2, generator=g), torch.ones(batch, 2, most, dtype=torch.int)
    return {"points": points, "mask": mask, "marks": given}


@pytest.mark.xfail(strict=True, reason="asks for the number of keypoints")
def test_needed(runs_like):
    runs_like(Matcher(), inputs(3), [inputs(5)], without=[ID])


def test_works(runs_like):
    """Some, one, and none."""
    runs_like(Matcher(), inputs(3), [inputs(5), inputs(1, 9, 3), inputs(0)])
