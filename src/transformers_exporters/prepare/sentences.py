"""Checkpoints of sentence-transformers: a text model, and in `modules.json` what makes one vector of its tokens' vectors."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..hf.sentences import SentenceOutput

#: (old name of the switch, its name as `pooling_mode`), in the order in which several are joined.
_MODES = (
    ("pooling_mode_cls_token", "cls"),
    ("pooling_mode_max_tokens", "max"),
    ("pooling_mode_mean_tokens", "mean"),
    ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"),
    ("pooling_mode_weightedmean_tokens", "weightedmean"),
    ("pooling_mode_lasttoken", "lasttoken"),
)


@dataclass(frozen=True)
class Sentences:
    """What follows the text model.

    Attributes:
        modes: How tokens are pooled, one after the other.
        steps: `"normalize"`, or a dense layer.
    """

    modes: tuple[str, ...]
    steps: tuple[str | torch.nn.Module, ...]


def read_sentences(checkpoint: Path | str) -> Sentences | None:
    """What follows the text model, or None: the checkpoint is none of sentence-transformers, or has parts unknown here (warned)."""
    file = _file(checkpoint, "modules.json")
    if file is None:
        return None
    modes: tuple[str, ...] = ()
    steps: list[str | torch.nn.Module] = []
    for module in json.loads(file.read_text(encoding="utf-8")):
        kind = module["type"].rpartition(".")[2]
        if kind == "Pooling":
            modes = _pooling(checkpoint, module["path"])
        elif kind == "Normalize":
            steps.append("normalize")
        elif kind == "Dense":
            steps.append(_dense(checkpoint, module["path"]))
        elif kind != "Transformer" or module["path"]:
            modes = ()
        if kind != "Transformer" and not modes:
            warnings.warn(
                f"{checkpoint} is a sentence-transformers model whose {kind} is not known here: the text model alone is taken, "
                "without what makes one vector of a text.",
                stacklevel=2,
            )
            return None
    return Sentences(modes, tuple(steps)) if modes else None


def text_class(config: Any) -> Any:
    """The class that sentence-transformers puts under its pooling: no head, and of an encoder-decoder the encoder."""
    import transformers

    mapping = transformers.AutoModelForTextEncoding._model_mapping if config.is_encoder_decoder else {}
    return mapping[type(config)] if type(config) in mapping else transformers.MODEL_MAPPING[type(config)]


def with_sentence_embedding(model: Any, sentences: Sentences) -> Any:
    """Let the model return a `SentenceOutput`; its class keeps its name, since only `forward` is another."""
    layers = torch.nn.ModuleList(step for step in sentences.steps if isinstance(step, torch.nn.Module))
    if layers:
        model.sentence_layers = layers.to(model.dtype)
    model.__class__ = _class_of(type(model), sentences)
    return model


def _class_of(source: Any, sentences: Sentences) -> type:
    @functools.wraps(source.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        ids = kwargs.get("input_ids", args[0] if args else None)
        tokens = source.forward(self, *args, **kwargs).last_hidden_state
        mask = kwargs.get("attention_mask")
        mask = torch.ones_like(ids if ids is not None else tokens[..., 0]) if mask is None else mask
        value = torch.cat(
            [_POOLED[mode](tokens, mask.unsqueeze(-1).to(tokens.dtype)) for mode in sentences.modes], dim=1
        )
        layers = iter(getattr(self, "sentence_layers", ()))
        for step in sentences.steps:
            value = torch.nn.functional.normalize(value, dim=1) if step == "normalize" else next(layers)(value)
        return SentenceOutput(last_hidden_state=tokens, sentence_embedding=value)

    members = {"forward": forward, "__module__": source.__module__, "__qualname__": source.__qualname__}
    return type(source.__name__, (source,), {**members, "__doc__": source.__doc__})


def _mean(tokens: Tensor, mask: Tensor) -> Tensor:
    return (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


def _weighted_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    weights = mask * torch.arange(1, tokens.shape[1] + 1, device=tokens.device).view(1, -1, 1)
    return (tokens * weights).sum(1) / weights.sum(1).clamp(min=1e-9)


def _last(tokens: Tensor, mask: Tensor) -> Tensor:
    places = torch.arange(tokens.shape[1], device=tokens.device).view(1, -1, 1)
    last = (places * (mask > 0)).amax(1, keepdim=True)
    return tokens.gather(1, last.expand(-1, -1, tokens.shape[2])).squeeze(1) * mask.amax(1)


#: By mode, from tokens [batch, sequence, width] and a mask of zeros and ones [batch, sequence, 1] to [batch, width].
_POOLED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": lambda tokens, mask: tokens[:, 0],
    "max": lambda tokens, mask: tokens.masked_fill(mask == 0, torch.finfo(tokens.dtype).min).amax(1),
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda tokens, mask: (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9).sqrt(),
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}


def _pooling(checkpoint: Path | str, path: str) -> tuple[str, ...]:
    settings = _config(checkpoint, path)
    named = settings.get("pooling_mode")
    chosen = {named} if isinstance(named, str) else set(named or ())
    chosen |= {mode for old, mode in _MODES if settings.get(old)}
    return tuple(mode for _, mode in _MODES if mode in chosen) if chosen <= _POOLED.keys() else ()


def _dense(checkpoint: Path | str, path: str) -> torch.nn.Module:
    settings = _config(checkpoint, path)
    linear = torch.nn.Linear(settings["in_features"], settings["out_features"], bias=settings.get("bias", True))
    file = _file(checkpoint, f"{path}/model.safetensors")
    if file is not None:
        from safetensors.torch import load_file

        weights = load_file(file)
    else:
        weights = torch.load(_existing(checkpoint, f"{path}/pytorch_model.bin"), weights_only=True, map_location="cpu")
    linear.load_state_dict({name.removeprefix("linear."): value for name, value in weights.items()})
    activation = getattr(torch.nn, settings.get("activation_function", "torch.nn.Tanh").rpartition(".")[2])()
    return torch.nn.Sequential(linear, activation).eval()


def _config(checkpoint: Path | str, path: str) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(_existing(checkpoint, f"{path}/config.json").read_text(encoding="utf-8"))
    return settings


def _existing(checkpoint: Path | str, name: str) -> Path:
    from transformers.utils import cached_file

    return Path(cached_file(checkpoint, name))


def _file(checkpoint: Path | str, name: str) -> Path | None:
    from transformers.utils import cached_file

    found = cached_file(
        checkpoint,
        name,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if found is None else Path(found)
