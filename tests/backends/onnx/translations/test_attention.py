"""`scaled_dot_product_attention`: eager's numbers for every kind of mask, and none that is not finite."""

import pytest
import torch

pytest.importorskip("onnxruntime")

from torch.nn.functional import scaled_dot_product_attention as attention

from transformers_exporters import OnnxConfig, OnnxExporter


class Cases(torch.nn.Module):
    def forward(self, q, k, v, seen, bias, few_k, few_v):
        return {
            "plain": attention(q, k, v),
            "scaled": attention(q, k, v, scale=0.7),
            "causal": attention(q, k, v, is_causal=True),
            "bool": attention(q, k, v, attn_mask=seen),
            "float": attention(q, k, v, attn_mask=bias),
            "grouped": attention(q, few_k, few_v, attn_mask=seen, enable_gqa=True),
            "repeated": attention(q, few_k.repeat_interleave(2, 1), few_v.repeat_interleave(2, 1), attn_mask=seen),
            "expanded": attention(q, _expanded(few_k), _expanded(few_v), attn_mask=seen),
        }


def _expanded(x):
    batch, heads, length, width = x.shape
    return x[:, :, None, :, :].expand(batch, heads, 2, length, width).reshape(batch, heads * 2, length, width)


def _inputs(batch, queries, keys, dtype):
    make = torch.Generator().manual_seed(batch)
    q, k, v = (torch.randn(batch, 4, n, 8, generator=make).to(dtype) for n in (queries, keys, keys))
    few = [torch.randn(batch, 2, keys, 8, generator=make).to(dtype) for _ in range(2)]
    seen = torch.rand(batch, 1, queries, keys, generator=make) > 0.3
    seen[0, :, 1] = False  # a query that may see nothing
    bias = torch.where(seen, torch.randn(batch, 1, queries, keys, generator=make), float("-inf")).to(dtype)
    return {"q": q, "k": k, "v": v, "seen": seen, "bias": bias, "few_k": few[0], "few_v": few[1]}


def _shapes():
    batch, queries, keys = (torch.export.Dim(name, min=2, max=64) for name in ("batch", "queries", "keys"))
    q, k, mask = {0: batch, 2: queries}, {0: batch, 2: keys}, {0: batch, 2: queries, 3: keys}
    return {"q": q, "k": k, "v": k, "seen": mask, "bias": mask, "few_k": k, "few_v": k}


def _check(exported, dtype, tolerance):
    for sizes in ((3, 5, 9), (2, 4, 13)):
        inputs = _inputs(*sizes, dtype)
        got = exported(**inputs)
        for name, wanted in Cases()(**inputs).items():
            assert torch.isfinite(got[name]).all(), name
            torch.testing.assert_close(
                got[name], wanted, atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
            )
        assert not got["bool"][0, :, 1].any()
        assert not got["float"][0, :, 1].any()
    return [node.op_type for node in exported.components["model"].program.model.graph]


def test_every_axis_free():
    inputs = _inputs(3, 5, 9, torch.float32)
    exported = OnnxExporter().export_model(Cases().eval(), inputs, config=OnnxConfig(dynamic=True))
    assert "IsNaN" not in _check(exported, torch.float32, 1e-5)


def test_float16_and_known_heads_share_keys_without_copies():
    inputs = _inputs(3, 5, 9, torch.float16)
    exported = OnnxExporter().export_model(Cases().eval(), inputs, config=OnnxConfig(dynamic_shapes=_shapes()))
    kinds = _check(exported, torch.float16, 3e-3)
    assert exported.manifest.notes["model"]["graph_fixes"]["grouped_heads"] >= 4
    assert kinds.count("Softmax") == 7  # "grouped" and "expanded" became the same nodes
