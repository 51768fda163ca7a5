from __future__ import annotations

import pytest
import torch
from transformers.models.encodec.configuration_encodec import EncodecConfig
from transformers.models.encodec.modeling_encodec import EncodecConv1d

ID = "trace.patches.extra_padding"


def convolution() -> torch.nn.Module:
    torch.manual_seed(0)
    return EncodecConv1d(EncodecConfig(pad_mode="reflect"), 3, 4, kernel_size=8, stride=4).eval()


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"hidden_states": torch.randn(batch, 3, length, generator=torch.Generator().manual_seed(length))}


@pytest.mark.xfail(strict=True, reason="the padding is data, and questions about it are answered from the sample")
def test_needed(runs_like):
    runs_like(convolution(), inputs(2, 32), [inputs(3, 33)], without=[ID])


def test_works(runs_like):
    module = convolution()
    stride = module.stride
    runs_like(module, inputs(2, 32), [inputs(3, 33), inputs(1, 47), inputs(2, 64)])
    assert module.stride is stride and isinstance(stride, torch.Tensor), "the caller's module is as it was"
