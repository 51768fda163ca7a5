"""What a sentence-transformers model returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers.utils import ModelOutput


@dataclass
class SentenceOutput(ModelOutput):
    """Vectors of the tokens and of the whole texts.

    Attributes:
        last_hidden_state: float [batch, sequence, width].
        sentence_embedding: float [batch, width of the embedding].
    """

    last_hidden_state: torch.Tensor | None = None
    sentence_embedding: torch.Tensor | None = None
