"""`repair.fixes.booleans_as_numbers`: masks that are added up and compared."""

import pytest
import torch

from transformers_exporters import (
    ArtifactError,
    LoweringError,
    OnnxConfig,
    OnnxExporter,
    OpenVINOConfig,
    OpenVINOExporter,
)

FIX = "repair.fixes.booleans_as_numbers"
BACKENDS = {"onnx": (OnnxExporter, OnnxConfig), "openvino": (OpenVINOExporter, OpenVINOConfig)}


class Masks(torch.nn.Module):
    def forward(self, p, q):
        """p and q bool [n, 4]."""
        return p + q, torch.maximum(p, q), torch.minimum(p, q), p.amax(1), q.amin(0), *p.max(1), q.min(), p.max()


def inputs(n):
    p = torch.arange(4 * n).reshape(n, 4) % 3 == 0
    return {"p": p, "q": p.flip(0, 1)}


def exported(backend, **fields):
    exporter, config = BACKENDS[backend]
    return exporter().export_model(Masks(), inputs(3), config(dynamic=True, **fields))


@pytest.mark.parametrize("backend", BACKENDS)
def test_needed(backend):
    with pytest.raises((ArtifactError, LoweringError)):
        exported(backend, disabled_workarounds=(FIX,))(**inputs(3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_works(backend):
    model = exported(backend)
    for n in (3, 5):
        leaves = (torch.utils._pytree.tree_leaves(f(**inputs(n))) for f in (model, Masks()))
        for got, wanted in zip(*leaves, strict=True):
            torch.testing.assert_close(got, wanted)
