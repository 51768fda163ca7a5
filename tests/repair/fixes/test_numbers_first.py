"""`repair.fixes.numbers_first`: a number divided by a tensor."""

import pytest
import torch

import transformers_exporters as te

FIX = "repair.fixes.numbers_first"


class Divided(torch.nn.Module):
    def forward(self, x):
        """x float32 [n, 4]."""
        return 1.0 // x, 7 // x.to(torch.int64).clamp(min=1)


def export(**fields):
    return te.OnnxExporter().export_model(Divided(), {"x": torch.rand(3, 4) * 4}, te.OnnxConfig(dynamic=True, **fields))


@pytest.mark.xfail(strict=True, raises=te.LoweringError, reason="the translation asks a number for its dtype")
def test_needed():
    export(disabled_workarounds=(FIX,))


def test_works():
    exported = export()
    for n in (1, 3, 8):
        x = torch.rand(n, 4) * 4 - 1
        for got, wanted in zip(exported(x=x), Divided()(x), strict=True):
            assert torch.equal(got, wanted)
