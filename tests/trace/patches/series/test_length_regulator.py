from __future__ import annotations

import pytest
import torch
from transformers.models.fastspeech2_conformer import modeling_fastspeech2_conformer as modeling
from transformers.models.fastspeech2_conformer.configuration_fastspeech2_conformer import FastSpeech2ConformerConfig

ID = "trace.patches.series.length_regulator"


class Repeated(torch.nn.Module):
    def __init__(self, speed: float = 1.0) -> None:
        super().__init__()
        self.speed = speed
        config = FastSpeech2ConformerConfig(hidden_size=4)
        self.positions = modeling.FastSpeech2ConformerRelPositionalEncoding(config, config.decoder_config)

    def forward(self, embeddings, durations):
        durations = durations.clone()
        frames = modeling.length_regulator(embeddings, durations, self.speed)
        return *self.positions(frames), durations


def inputs(*durations: list[int]) -> dict[str, torch.Tensor]:
    return {"embeddings": torch.randn(len(durations), len(durations[0]), 4), "durations": torch.tensor(durations)}


OTHERS = [inputs([1, 2], [0, 0], [3, 5]), inputs([0, 0, 0], [0, 0, 0]), inputs([7, 0, 1, 1])]


@pytest.mark.xfail(strict=True, reason="the loop over the batch reads durations")
def test_needed(runs_like):
    runs_like(Repeated(), inputs([2, 0, 3], [1, 1, 4]), OTHERS, without=[ID])


@pytest.mark.parametrize("speed", [1.0, 1.5])
def test_works(runs_like, speed):
    """Rows of different lengths, a row without speech, and a batch without any."""
    runs_like(Repeated(speed), inputs([2, 0, 3], [1, 1, 4]), OTHERS[: 3 if speed == 1.0 else 1])
