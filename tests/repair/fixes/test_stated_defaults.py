"""`repair.fixes.stated_defaults`: spreads, means and limits whose arguments are absent."""

import pytest
import torch

from transformers_exporters import (
    AutoHfExporter,
    LoweringError,
    OnnxConfig,
    OnnxExporter,
    OpenVINOConfig,
    OpenVINOExporter,
)

FIX = "repair.fixes.stated_defaults"


class Spread(torch.nn.Module):
    def forward(self, x):
        """x float32 [n, 4] -> four results."""
        return torch.ops.aten.var.correction(x, [1]), torch.std_mean(x, 1), torch.ops.aten.std.correction(x)


class Average(torch.nn.Module):
    def forward(self, i):
        """i int64 [n, 4] -> float32 [n], float32 []."""
        return i.mean(1, dtype=torch.float32), i.mean(dtype=torch.float32)


class Positions(torch.nn.Module):
    def forward(self, p):
        """p bool [n, 4] -> int64 [n, 4] and [n]."""
        return p.cumsum(1) * p - 1, p.sum(1) * p[:, 0]


class Limits(torch.nn.Module):
    def forward(self, x):
        """x float32 [n, 4] -> float32 [], [1, 1], and [] of a tensor without axes."""
        return torch.amax(x), torch.ops.aten.amin.default(x, [], True), torch.amax(x.sum())


def error(exporter, config, module, make, **fields):
    exported = exporter().export_model(module, make(3), config(dynamic=True, **fields))
    got, wanted = exported(*[], **make(5)), module(**make(5))
    pairs = zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(wanted), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


def floats(n):
    return {"x": torch.linspace(-1, 2, 4 * n).reshape(n, 4) ** 2}


def integers(n):
    return {"i": torch.arange(4 * n).reshape(n, 4) ** 2 % 7}


def booleans(n):
    return {"p": torch.arange(4 * n).reshape(n, 4) % 5 > 0}


OPENVINO_MASKS = (OpenVINOExporter, OpenVINOConfig, Positions(), booleans)
OPENVINO = (OpenVINOExporter, OpenVINOConfig, Spread(), floats)
ONNX = (OnnxExporter, OnnxConfig, Average(), integers)
ONNX_LIMITS = (OnnxExporter, OnnxConfig, Limits(), floats)


@pytest.mark.parametrize("case", [OPENVINO, OPENVINO_MASKS, ONNX], ids=["openvino", "masks", "onnx"])
@pytest.mark.xfail(strict=True, raises=AssertionError, reason="another default")
def test_needed(case):
    assert error(*case, disabled_workarounds=(FIX,)) < 1e-5


def test_needed_for_limits():
    with pytest.raises(LoweringError, match="amax"):
        error(*ONNX_LIMITS, disabled_workarounds=(FIX,))


@pytest.mark.parametrize(
    "case", [OPENVINO, OPENVINO_MASKS, ONNX, ONNX_LIMITS], ids=["openvino", "masks", "onnx", "limits"]
)
def test_works(case):
    assert error(*case) < 1e-5


class Ends(torch.nn.Module):
    def forward(self, p):
        """p bool [n, 4] -> int32 [n, 4], [n], [n] and []."""
        kind = torch.int32
        return p.cumsum(1, dtype=kind), p.sum(1, dtype=kind), p.int().prod(1, dtype=kind), p.long().sum(dtype=kind)


@pytest.mark.parametrize("format", ["dynamo", "onnx", "openvino", "executorch"])
def test_a_stated_dtype_stays(format):
    exporter = AutoHfExporter.from_config({"export_format": format, "dynamic": True})
    got, wanted = exporter.export_model(Ends(), booleans(3))(**booleans(5)), Ends()(**booleans(5))
    assert [tensor.dtype for tensor in got] == [torch.int32] * 4
    assert all(map(torch.equal, got, wanted))
