"""One tensor for one parameter of a forward, by the parameter's name and the sizes in the config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from .fields import field_kind
from .tree import configs_of, field_of

# Odd lengths that no config is likely to hold, so that no axis looks like a constant of the model.
TEXT, DECODER, PADDING = 11, 7, 3
#: A multiple of the usual hops of audio models (320, 480, 640, 960, 1920).
_SAMPLES = 9600
#: Patches a side of the picture in models that take patches with a grid.
GRID = 4


@dataclass(frozen=True)
class Layout:
    """How ambiguous inputs are laid out.

    Attributes:
        image: `"pair"` [batch, 2, channels, height, width]; `"picture"` [batch, channels, height, width]; `"stacked"` with an axis of pictures or frames after batch;
            `"patches"` [batch, patches, pixels of a patch]; `"flat"` the same without a batch axis;
            `"tiles"` [patches, channels, side of a patch, side of a patch].
        audio: `"plain"` [batch, bins, frames] or [batch, samples]; `"time_first"` [batch, frames, bins];
            `"channel"` [batch, 1, samples].
        batch: Number of rows.
        padded: Whether the last row is left-padded.
    """

    image: str = "picture"
    audio: str = "plain"
    batch: int = 2
    padded: bool = True


def setting(model: PreTrainedModel, *names: str, default: Any = None) -> Any:
    """The first of `names` that the config or a sub-config has with a value, outermost config first."""
    for name in names:
        for config in configs_of(model.config):
            if (value := field_of(config, name)) is not None:
                return value
    return default


def special_tokens(model: PreTrainedModel) -> set[int]:
    """Every token id that the config or a sub-config names."""
    found: set[int] = set()
    for config in configs_of(model.config):
        for name, value in vars(config).items():
            if field_kind(name) == "token":
                values = value if isinstance(value, list | tuple) else [value]
                found.update(one for one in values if isinstance(one, int))
    return found


def ids(model: PreTrainedModel, batch: int, length: int) -> torch.Tensor:
    """Random ids [batch, length], int64, that are no special tokens."""
    vocabulary = setting(model, "vocab_size", "text_vocab_size", "num_tokens", default=100)
    special = special_tokens(model)
    usable = [one for one in range(min(4, vocabulary - 1), min(vocabulary, 5000)) if one not in special]
    choices = torch.tensor(usable or [0])
    return choices[torch.randint(len(choices), (batch, length))]


def named_tensor(name: str, model: PreTrainedModel, layout: Layout) -> Any:
    """A value for the parameter `name`; None if nothing is known about parameters of that name."""
    batch = layout.batch
    maker = _MAKERS.get(name)
    if maker is not None:
        return maker(model, layout)
    width = setting(model, "hidden_size", "d_model", "n_embd", "dim", "embed_dim", default=64)
    if isinstance(width, list | tuple):
        width = width[-1]
    if name.endswith("_mask"):
        return torch.ones(batch, TEXT, dtype=torch.int64)
    if name.endswith("position_ids"):
        return torch.arange(TEXT).expand(batch, TEXT).clone()
    if name.endswith(("_ids", "_codes", "input", "tokens")):
        return ids(model, batch, DECODER if name.startswith("decoder") else TEXT)
    if name.endswith(("embeds", "embeddings", "hidden_states", "features", "hidden_state", "states")):
        return torch.randn(batch, TEXT, width)
    if name.startswith(("return_", "output_", "use_", "is_")):
        return False
    return None


def _mask(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    mask = torch.ones(layout.batch, TEXT, dtype=torch.int64)
    if layout.padded:
        mask[-1, :PADDING] = 0
    return mask


def picture_size(model: PreTrainedModel) -> tuple[int, int]:
    """Height and width of the picture that the model's config names, else 64 x 64."""
    size = setting(model, "image_size", "img_size", default=64)
    if isinstance(size, dict):
        size = (size.get("height", 64), size.get("width", 64))
    height, width = size[-2:] if isinstance(size, list | tuple) and len(size) > 1 else (size, size)
    if isinstance(height, list | tuple):
        height = width = height[-1]
    return int(height), int(width)


def _patch(model: PreTrainedModel) -> int:
    patch = setting(model, "patch_size", default=16)
    return int(patch[-1] if isinstance(patch, list | tuple) else patch)


def _channels(model: PreTrainedModel) -> int:
    channels = setting(model, "num_channels", "in_channels", "in_chans", "num_input_channels", default=3)
    return channels if isinstance(channels, int) else 3


def _has(model: PreTrainedModel, parameter: str) -> bool:
    import inspect

    return parameter in inspect.signature(type(model).forward).parameters


def _pixels_of_a_patch(model: PreTrainedModel) -> int:
    """What the layer that embeds flat patches takes; from the config where no layer says so."""
    for name, module in model.named_modules():
        if "patch_embed" in name and isinstance(module, torch.nn.Linear | torch.nn.Conv2d | torch.nn.Conv3d):
            return int(module.weight[0].numel())
    frames = int(setting(model, "temporal_patch_size", default=1))
    return _channels(model) * frames * _patch(model) ** 2


def _pixels(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    batch, channels = layout.batch, _channels(model)
    height, width = picture_size(model)
    rows = [_has(model, name) for name in ("image_grid_thw", "grid_thw", "image_grid_hws")]
    if layout.image == "tiles":
        return torch.randn(batch * GRID * GRID, channels, _patch(model), _patch(model))
    if any(rows) or layout.image == "flat":
        return torch.randn(batch * GRID * GRID, _pixels_of_a_patch(model))
    if _has(model, "spatial_shapes") or layout.image == "patches":
        return torch.randn(batch, GRID * GRID, _pixels_of_a_patch(model))
    if layout.image == "pair":
        return torch.randn(batch, 2, channels, height, width)
    if layout.image == "stacked":
        return torch.randn(
            batch, int(setting(model, "num_frames", "max_num_tiles", default=1)), channels, height, width
        )
    return torch.randn(batch, channels, height, width)


def _video(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    height, width = picture_size(model)
    frames = int(setting(model, "num_frames", "frames_per_clip", default=8))
    return torch.randn(layout.batch, min(frames, 16), _channels(model), height, width)


def _pixel_mask(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    if _has(model, "spatial_shapes"):
        return torch.ones(layout.batch, GRID * GRID, dtype=torch.int64)
    pictures = (1,) if layout.image == "stacked" else ()
    return torch.ones(layout.batch, *pictures, *picture_size(model), dtype=torch.bool)


def _mel(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    bins = setting(model, "num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim", "mel_bins")
    bins = bins or (80 if layout.audio == "plain" else 128)
    bins = setting(model, "feature_projection_input_dim", default=bins)
    positions = setting(model, "max_source_positions", default=None)
    frames = 2 * positions if positions and positions <= 1500 and layout.audio == "plain" else 100
    shape = (bins, frames) if layout.audio == "plain" else (frames, bins)
    return torch.randn(layout.batch, *((1,) if layout.audio == "channel" else ()), *shape)


def _feature_mask(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    frames = _mel(model, layout).shape[-1 if layout.audio == "plain" else -2]
    return torch.ones(layout.batch, frames, dtype=torch.bool)


def _waveform(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    bins = setting(model, "num_mel_bins", default=80)
    if layout.audio == "time_first":
        return torch.randn(layout.batch, int(setting(model, "max_length", default=100) or 100), bins)
    return torch.randn(layout.batch, *((1,) if layout.audio == "channel" else ()), _SAMPLES)


def _flattened(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    """Patches, each led by its row and column (from one)."""
    patch = _patch(model)
    places = torch.cartesian_prod(torch.arange(1, GRID + 1), torch.arange(1, GRID + 1)).float()
    pixels = torch.randn(layout.batch, GRID * GRID, _channels(model) * patch * patch)
    return torch.cat([places.expand(layout.batch, -1, -1), pixels], dim=-1)


def _places(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    places = torch.cartesian_prod(torch.arange(GRID), torch.arange(GRID))
    return places.expand(layout.batch, -1, -1).clone()


def _grid(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    return torch.tensor([[1, GRID, GRID]] * layout.batch)


def _boxes(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    """Boxes [batch, length, 4]: left, top, right, bottom, in order."""
    corners = torch.randint(0, 60, (layout.batch, TEXT, 2))
    return torch.cat([corners, corners + torch.randint(1, 40, (layout.batch, TEXT, 2))], dim=-1)


def _decoder_ids(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    """Ids for the decoder; a decoder of audio codes takes one row for each codebook."""
    codebooks = field_of(getattr(model.config, "decoder", model.config), "num_codebooks")
    return ids(model, layout.batch * (codebooks or 1), DECODER)


def _patches(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    """What a vision tower calls `hidden_states`, where it comes with a grid: flat patches; else embeddings."""
    if _has(model, "grid_thw"):
        return _pixels(model, layout)
    width = setting(model, "hidden_size", "d_model", "embed_dim", default=64)
    return torch.randn(layout.batch, TEXT, width)


def _visual(kind: str) -> Any:
    def make(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
        return torch.rand(layout.batch, 5, int(setting(model, f"visual_{kind}_dim", default=4)))

    return make


def _series(model: PreTrainedModel, layout: Layout) -> torch.Tensor:
    length = int(setting(model, "context_length", default=32) or 32)
    lags = setting(model, "lags_sequence", default=None)
    channels = setting(model, "num_input_channels", default=None)
    if channels:
        return torch.randn(layout.batch, length, channels)
    return torch.rand(layout.batch, length + (max(lags) if lags else 0))


_MAKERS: dict[str, Any] = {
    "input_ids": lambda model, layout: ids(model, layout.batch, TEXT),
    "attention_mask": _mask,
    "decoder_input_ids": _decoder_ids,
    "bbox": _boxes,
    "pixel_values": _pixels,
    "prompt_pixel_values": _pixels,
    "prompt_masks": _pixels,
    "pixel_values_videos": _video,
    "flattened_patches": _flattened,
    "hidden_states": _patches,
    "pixel_attention_mask": _pixel_mask,
    "pixel_mask": _pixel_mask,
    "image_grid_thw": _grid,
    "grid_thw": _grid,
    "image_grid_hws": lambda model, layout: _grid(model, layout)[:, 1:],
    "spatial_shapes": lambda model, layout: _grid(model, layout)[:, 1:],
    "image_position_ids": _places,
    "pixel_position_ids": _places,
    "image_sizes": lambda model, layout: torch.tensor([list(picture_size(model))] * layout.batch),
    "aspect_ratio_ids": lambda model, layout: torch.ones(layout.batch, 1, dtype=torch.int64),
    "aspect_ratio_mask": lambda model, layout: torch.ones(
        layout.batch, 1, int(setting(model, "max_num_tiles", default=1)), dtype=torch.int64
    ),
    "cross_attention_mask": lambda model, layout: torch.ones(
        layout.batch, TEXT, 1, int(setting(model, "max_num_tiles", default=1)), dtype=torch.int64
    ),
    "merge_sizes": lambda model, layout: torch.ones(layout.batch, dtype=torch.int64),
    "image_merge_sizes": lambda model, layout: torch.ones(layout.batch, dtype=torch.int64),
    "image_attention_mask": lambda model, layout: torch.ones(layout.batch, TEXT, 1, dtype=torch.int64),
    "task_inputs": lambda model, layout: ids(model, layout.batch, int(setting(model, "task_seq_len", default=TEXT))),
    "input_features": _mel,
    "input_features_mask": _feature_mask,
    "feature_attention_mask": _feature_mask,
    "padding_mask": lambda model, layout: torch.ones_like(_waveform(model, layout), dtype=torch.bool),
    "input_values": _waveform,
    "audio_values": _waveform,
    "inputs": _waveform,
    "visual_feats": _visual("feat"),
    "visual_pos": _visual("pos"),
    "past_values": _series,
    "past_observed_mask": lambda model, layout: torch.ones_like(_series(model, layout)),
    "past_time_features": lambda model, layout: torch.rand(
        *_series(model, layout).shape[:2], int(setting(model, "num_time_features", default=1))
    ),
}
