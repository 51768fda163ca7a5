"""The rewrites of the converted graph: each fires where it should, not where it must not, and changes no number."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from transformers_exporters.backends.onnx.graph_fixes import GRAPH_FIXES

_HEADER = '<ir_version: 10, opset_import: ["": 20]>\n'

# rewrite -> (graph, places that it changes, ops that are left)
CASES = {
    "grouped_heads": (
        """agraph (float[b, 6, s, 4] q, float[b, 2, k, 4] keys, float[b, 2, k, 4] values) => (float[b, 6, s, 4] y)
        <int64[1] two = {2}, int64[5] spread = {1, 2, 3, 1, 1}, int64[4] flat = {0, 6, -1, 4}, float[b, 6, s, k] scores,
         float[b, 2, 1, k, 4] k1, float[b, 2, 3, k, 4] k2, float[b, 6, k, 4] k3, float[b, 6, 4, k] kt,
         float[b, 2, 1, k, 4] v1, float[b, 2, 3, k, 4] v2, float[b, 6, k, 4] v3> {
            k1 = Unsqueeze(keys, two)
            k2 = Expand(k1, spread)
            k3 = Reshape(k2, flat)
            kt = Transpose<perm = [0, 1, 3, 2]>(k3)
            scores = MatMul(q, kt)
            v1 = Unsqueeze(values, two)
            v2 = Expand(v1, spread)
            v3 = Reshape(v2, flat)
            y = MatMul(scores, v3)
        }""",
        2,
        [
            *["Constant"] * 2,
            "Reshape",
            "Transpose",
            "MatMul",
            "Reshape",
            *["Constant"] * 2,
            "Reshape",
            "MatMul",
            "Reshape",
        ],
    ),
    "norm_division": (
        """agraph (float[b, 4] x, float[b, 1] v) => (float[b, 4] y, float[b, 1] z, float[b, 4] w) {
            root = Sqrt(v)
            inverse = Reciprocal(root)
            y = Mul(x, inverse)
            other = Sqrt(v)
            z = Reciprocal(other)
            w = Mul(x, z)
        }""",
        1,
        ["Sqrt", "Div", "Sqrt", "Reciprocal", "Mul"],
    ),
    "signed_sine": (
        """agraph (float[b, 6] x, float[b, 6] sine) => (float[b, 6] y)
        <int64[1] zero = {0}, int64[1] half = {3}, int64[1] end = {9}, int64[1] axis = {1},
         float[b, 3] left, float[b, 3] right, float[b, 3] minus, float[b, 6] turned> {
            left = Slice(x, zero, half, axis)
            right = Slice(x, half, end, axis)
            minus = Neg(right)
            turned = Concat<axis = -1>(minus, left)
            y = Mul(turned, sine)
        }""",
        1,
        ["Slice", "Slice", "Constant", "Mul", "Concat", "Mul"],
    ),
    "shared_shapes": (
        """agraph (float[b, s, 4] x, float[b, s, 4] y, float[n, s, 4] z) => (int64[3] a, int64[1] c, int64[3] d)
        <float[b, s, 4] u, float[b, s, 4] v, int64[3] first, int64[3] second, int64[1] third, int64[3] other> {
            u = Neg(x)
            v = Neg(y)
            first = Shape(u)
            second = Shape(v)
            third = Shape<start = 2>(v)
            other = Shape(z)
            a = Add(first, second)
            c = Add(third, third)
            d = Add(other, first)
        }""",
        2,
        ["Neg", "Shape", "Constant", "Shape", "Add", "Add", "Add"],
    ),
    "no_ops": (
        """agraph (float[b, s, 4] x) => (float[b, s, 4] y, float[b, r, 4] kept, float[1, b, s, 4] more)
        <int64[1] zero = {0}, int64[1] all = {9223372036854775807}, int64[1] few = {1}, int64[1] axis = {1},
         float one = {1.0}, float nought = {0.0}, float[1, 1, 1, 1] wide = {1.0}, float[b, s, 4] a, float[b, s, 4] b2,
         float[b, s, 4] c, float[b, s, 4] d> {
            a = Slice(x, zero, all, axis)
            b2 = Mul(one, a)
            c = Add(b2, nought)
            d = Cast<to = 1>(c)
            y = Neg(d)
            cut = Slice(x, few, all, axis)
            minus = Sub(nought, cut)
            pads = Concat<axis = 1>(minus, x)
            kept = Slice(pads, few, all, axis)
            more = Mul(x, wide)
        }""",
        4,
        ["Neg", "Slice", "Sub", "Concat", "Slice", "Mul"],
    ),
}


def _run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def _feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    make, sizes = np.random.default_rng(0), {"b": 2, "s": 3, "k": 5, "n": 2}
    feeds = {}
    for value in model.graph.input:
        shape = [axis.dim_value or sizes[axis.dim_param] for axis in value.type.tensor_type.shape.dim]
        feeds[value.name] = make.random(shape, np.float32) + 0.5
    return feeds


@pytest.mark.parametrize("name", CASES)
def test_a_rewrite_fires_and_changes_no_number(name: str) -> None:
    text, places, left = CASES[name]
    before = onnx.parser.parse_model(_HEADER + text)
    model = ir.serde.deserialize_model(before)
    assert GRAPH_FIXES[name](model.graph) == places
    RemoveUnusedNodesPass()(model)
    assert [node.op_type for node in model.graph] == left
    feeds = _feeds(before)
    for got, wanted in zip(_run(ir.serde.serialize_model(model), feeds), _run(before, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-6)
    assert GRAPH_FIXES[name](model.graph) == 0


def test_every_rewrite_has_a_case() -> None:
    assert set(CASES) == set(GRAPH_FIXES)
