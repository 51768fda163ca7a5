"""`index_copy` and `index_put` of whole rows: ScatterElements along the axis, without a transpose."""

import pytest
import torch

pytest.importorskip("onnxruntime")

from transformers_exporters import OnnxConfig, OnnxExporter


class Cases(torch.nn.Module):
    def forward(self, cache, rows, values, scale):
        indexed = cache.clone()
        indexed[:, :, rows] = values
        added = torch.ops.aten.index_put(cache, [None, None, rows], values, True)
        spread = cache.clone()
        spread[:, :, rows] = scale
        return {
            "copied": cache.index_copy(2, rows, values),
            "negative": cache.transpose(2, 3).index_copy(-1, rows, values.transpose(2, 3)),
            "indexed": indexed,
            "added": added,
            "spread": spread,
        }


def _inputs(batch, length, count):
    make = torch.Generator().manual_seed(count)
    return {
        "cache": torch.randn(batch, 3, length, 4, generator=make),
        "rows": torch.randperm(length, generator=make)[:count],
        "values": torch.randn(batch, 3, count, 4, generator=make),
        "scale": torch.randn(1, generator=make),
    }


def test_works():
    exported = OnnxExporter().export_model(Cases().eval(), _inputs(2, 9, 5), config=OnnxConfig(dynamic=True))
    for sizes in ((2, 9, 5), (3, 17, 1)):
        inputs = _inputs(*sizes)
        got = exported(**inputs)
        for name, wanted in Cases()(**inputs).items():
            torch.testing.assert_close(got[name], wanted, atol=0, rtol=0)
    kinds = [node.op_type for node in exported.components["model"].program.model.graph]
    assert kinds.count("ScatterElements") >= 2
    assert "ScatterND" in kinds  # the sum and the broadcast value keep the converter's own form
