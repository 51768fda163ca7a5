from __future__ import annotations

import pytest
import torch
from transformers.models.encodec.configuration_encodec import EncodecConfig
from transformers.models.encodec.modeling_encodec import EncodecConv1d

import transformers_exporters as te

ID = "trace.patches.series.extra_padding"


def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"hidden_states": torch.randn(batch, 3, length, generator=torch.Generator().manual_seed(length))}


def check(without: tuple[str, ...] = ()) -> None:
    torch.manual_seed(0)
    module = EncodecConv1d(EncodecConfig(pad_mode="reflect"), 3, 4, kernel_size=8, stride=4).eval()
    stride = module.stride
    config = te.DynamoConfig(dynamic=True, disabled_workarounds=without)
    exported = te.DynamoExporter().export_model(module, inputs(2, 32), config)
    assert module.stride is stride and isinstance(stride, torch.Tensor), "the caller's module is as it was"
    for sizes in ((2, 32), (3, 33), (1, 47), (2, 64)):
        torch.testing.assert_close(exported(**inputs(*sizes)), module(**inputs(*sizes)))


@pytest.mark.xfail(strict=True, reason="the padding is rounded up as a tensor")
def test_needed() -> None:
    check(without=(ID,))


def test_works() -> None:
    check()
