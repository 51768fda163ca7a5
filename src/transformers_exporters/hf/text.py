"""Text to tensors and back, with the tokenizer that an artifact carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, TextStreamer

from ..errors import ArtifactError

__all__ = ["decode", "encode", "load_tokenizer", "seeded", "streamer"]


def load_tokenizer(directory: Path | str, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer saved in an artifact or a checkpoint, set to pad on the left as generation needs.

    Raises:
        ArtifactError: If the directory holds no tokenizer that transformers can load.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, trust_remote_code=trust_remote_code)
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(f"{directory} holds no tokenizer; give the inputs as arrays instead.") from error
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def encode(tokenizer: Any, texts: Sequence[str], *, chat: bool | None = None) -> dict[str, torch.Tensor]:
    """Tokenize a batch.

    Args:
        tokenizer: From `load_tokenizer`.
        texts: One text a row.
        chat: Wrap each text as a user's message in the chat template; None: if the tokenizer has one.

    Returns:
        `input_ids: int64 [batch, sequence]`, `attention_mask: int64 [batch, sequence]` and what else the tokenizer gives.
    """
    if chat is None:
        chat = bool(tokenizer.chat_template)
    if chat:
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
            )
            for text in texts
        ]
    # A chat template writes the special tokens itself.
    encoded = tokenizer(list(texts), padding=len(texts) > 1, return_tensors="pt", add_special_tokens=not chat)
    return dict(encoded)


def decode(tokenizer: Any, tokens: torch.Tensor) -> list[str]:
    """Texts of `tokens: int64 [batch, sequence]`, without special tokens."""
    return list(tokenizer.batch_decode(tokens, skip_special_tokens=True))


def streamer(tokenizer: Any) -> Any:
    """A streamer for `generate` that prints each word as soon as it is complete."""
    return TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Torch's random numbers start at `seed` inside, and go on as before outside."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
