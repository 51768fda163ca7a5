from __future__ import annotations

import pytest
import torch
from transformers.models.qwen3_asr import modeling_qwen3_asr

ID = "trace.patches.series.audio_window_lengths"


class Windows(torch.nn.Module):
    """The window of each position behind the convolutions (how often a boundary is listed does not matter)."""

    def forward(self, chunks, lengths):
        ends = modeling_qwen3_asr.get_audio_cu_seqlens(chunks, lengths, 400, 50)
        position = torch.arange(lengths.shape[0] * 70)
        last = torch.where(ends[None, :] <= position[:, None], ends[None, :], 0).amax(1)
        return last.long(), ends[-1]


def inputs(*lengths: int) -> dict[str, torch.Tensor]:
    chunks = [min(100, n - start) for n in lengths for start in range(0, n, 100)]
    return {"chunks": torch.tensor(chunks), "lengths": torch.tensor(lengths)}


@pytest.mark.xfail(strict=True, reason="the loop over clips reads their lengths")
def test_needed(runs_like):
    runs_like(Windows(), inputs(430, 250), [inputs(90, 510)], without=[ID])


def test_works(runs_like):
    """Whole windows, cut ones, other numbers of clips."""
    runs_like(Windows(), inputs(430, 250), [inputs(90, 510), inputs(400, 800, 33), inputs(130, 399)])
