from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers.models.hunyuan_vl.modeling_hunyuan_vl import HunYuanVLModel
from transformers.models.hy_v4_vl.modeling_hy_v4_vl import HYV4VLModel
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import Qwen2_5OmniPreTrainedModelForConditionalGeneration
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLModel
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import (
    Qwen3OmniMoePreTrainedModelForConditionalGeneration,
)
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLModel

ID = "trace.patches.images.rope_index"


class Positions(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, types, mask, images, videos=None):
        vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=2)
        owner = SimpleNamespace(
            config=SimpleNamespace(
                vision_config=vision, text_config=SimpleNamespace(rope_parameters={"mrope_section": [1] * 4})
            ),
            get_vision_position_ids=lambda *args, **kwargs: self.model.get_vision_position_ids(None, *args, **kwargs),
        )
        return self.model.get_rope_index(
            owner, input_ids, types, image_grid_thw=images, video_grid_thw=videos, attention_mask=mask
        )


def inputs(*rows: str, images, videos=None) -> dict[str, torch.Tensor | None]:
    """One character a token: `t` text, `i` image, `v` video, `.` padding."""
    types = torch.tensor([["t.iv".index(c) for c in row] for row in rows])
    types = torch.where(types > 1, types - 1, 0)
    mask = torch.tensor([[int(c != ".") for c in row] for row in rows])
    grids = {"images": torch.tensor(images), "videos": None if videos is None else torch.tensor(videos)}
    return {"input_ids": torch.zeros_like(types), "types": types, "mask": mask, **grids}


TRACED = inputs("ttiiiiiitt", "..tiiiittt", images=[(1, 4, 6), (1, 4, 4)])
OTHERS = [
    inputs("tiiit........", "iiiitiitttiii", images=[(1, 2, 6), (1, 4, 4), (1, 2, 4), (1, 6, 2)]),
    inputs("tttt" + "i" * 12 + "t", images=[(2, 4, 6)]),
]


@pytest.mark.xfail(strict=True, reason="the loops over rows, runs and images read data")
def test_needed(runs_like):
    runs_like(Positions(Qwen2VLModel), TRACED, OTHERS, without=[ID])


@pytest.mark.parametrize("model", [Qwen2VLModel, Qwen2_5_VLModel, Qwen3VLModel])
def test_works(runs_like, model):
    """Padding on either side, several images in a row, an image of two frames."""
    runs_like(Positions(model), TRACED, OTHERS)


@pytest.mark.parametrize("model", [Qwen2VLModel, Qwen2_5_VLModel])
def test_videos(runs_like, model):
    """Frames of a video are spaced out in time where the model does so."""
    traced = inputs("tiitvvvvt", "tvvvvvvtt", images=[(1, 2, 4)], videos=[(2, 2, 4), (3, 2, 4)])
    runs_like(Positions(model), traced, [inputs("vvvvtiitt", images=[(1, 4, 2)], videos=[(4, 2, 2)])])


def test_images_on_grids_of_their_own(runs_like):
    """HunYuan-VL: rows end with a separator; some images have a token before and one behind their grid."""
    traced = inputs("tt" + "i" * 8 + "t", "..." + "i" * 6 + "tt", images=[(1, 4, 4), (1, 4, 4)])
    others = [
        inputs("i" * 5 + "t" + "i" * 14, "t" * 12 + "." * 8, images=[(1, 2, 4), (1, 6, 6)]),
        inputs("i" * 3 + "t" + "i" * 14, "i" * 6 + "t" * 12, images=[(1, 2, 4), (1, 6, 6), (1, 4, 4)]),
    ]
    runs_like(Positions(HunYuanVLModel), traced, others)


def test_rows_that_end_with_a_separator(runs_like):
    """HY-V4: every frame of an image or a video starts behind the larger side of the one before it."""
    traced = inputs(
        "tt" + "i" * 6 + "tvvvt", "...." + "i" * 6 + "ttt", images=[(1, 4, 4), (1, 4, 4)], videos=[(1, 2, 4)]
    )
    others = [
        inputs("iiit" + "i" * 12 + "tt", "v" * 12 + "t" * 6, images=[(1, 2, 4), (2, 4, 4)], videos=[(3, 4, 2)]),
    ]
    runs_like(Positions(HYV4VLModel), traced, others)


class TimedPositions(torch.nn.Module):
    """Qwen-Omni's; one character a token: `t` text, `a` audio, `i` image, `v` video, `.` padding, and `<`, `[`, `>` around them."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, mask, images, videos=None, audio=None, seconds=None):
        ids = {name: "taiv<[>".index(c) for name, c in zip(self.NAMES, "aiv<[", strict=True)}
        owner = SimpleNamespace(
            spatial_merge_size=2,
            config=SimpleNamespace(
                **{f"{name}_token_id": number for name, number in ids.items()},
                position_id_per_seconds=13,
                seconds_per_chunk=2,
                audio_config=SimpleNamespace(n_window=50),
            ),
            get_llm_pos_ids_for_vision=lambda *args: self.model.get_llm_pos_ids_for_vision(None, *args),
        )
        return self.model.get_rope_index(owner, input_ids, images, videos, mask, False, audio, seconds)

    NAMES = ("audio", "image", "video", "vision_start", "audio_start")


def spoken(*rows, images, videos=None, audio=None, seconds=None):
    given = {"images": images, "videos": videos, "audio": audio, "seconds": seconds}
    ids = torch.tensor([[max("taiv<[>".find(c), 0) for c in row] for row in rows])
    mask = torch.tensor([[int(c != ".") for c in row] for row in rows])
    return {"input_ids": ids, "mask": mask, **{k: None if v is None else torch.tensor(v) for k, v in given.items()}}


@pytest.mark.parametrize(
    "model", [Qwen2_5OmniPreTrainedModelForConditionalGeneration, Qwen3OmniMoePreTrainedModelForConditionalGeneration]
)
def test_images_beside_audio(runs_like, model):
    """Frames are seconds apart; whole numbers in Qwen2.5-Omni, fractions in Qwen3-Omni."""
    traced = spoken("tt[a>t<iiiiii>tt", "..t<iiii>tt[a>tt", images=[(1, 4, 6), (1, 4, 4)], audio=[4, 4])
    others = [
        spoken("t<iii>tt..........", "<iiii>tt<iii>t[a>t", images=[(1, 2, 6), (1, 4, 4), (1, 2, 6)], audio=[4]),
        spoken("tttt<" + "i" * 12 + ">t", images=[(2, 4, 6)], audio=[4]),
    ]
    runs_like(TimedPositions(model), traced, others)
    video = spoken(
        "t<iiii>t<vvvv>tt",
        "tt[a>t<" + "v" * 6 + ">tt",
        images=[(1, 4, 4)],
        videos=[(2, 2, 4), (3, 2, 4)],
        audio=[4],
        seconds=[0.3, 1.7],
    )
    other = spoken("<vv>t<vvvv>t", images=[(1, 2, 2)], videos=[(2, 2, 2), (4, 2, 2)], audio=[4], seconds=[0.5, 0.07])
    runs_like(TimedPositions(model), video, [other])
