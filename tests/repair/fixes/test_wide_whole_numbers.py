"""`repair.fixes.wide_whole_numbers`: a rolling hash, which wraps around."""

import pytest
import torch

from transformers_exporters import (
    ExecutorchConfig,
    ExecutorchExporter,
    LoweringError,
    OnnxConfig,
    OnnxExporter,
    OpenVINOConfig,
    OpenVINOExporter,
)

ID = "repair.fixes.wide_whole_numbers"
BACKENDS = {"onnx": (OnnxExporter, OnnxConfig), "executorch": (ExecutorchExporter, ExecutorchConfig)}
OPENVINO = (OpenVINOExporter, OpenVINOConfig)


class Hash(torch.nn.Module):
    """Hashes the last dimension of tokens, int64 [batch, n, 5] -> int64 [batch, n], as BLT does."""

    def forward(self, tokens):
        powers = torch.tensor(5915587277) ** torch.arange(tokens.shape[-1])
        return torch.sum(tokens * powers, dim=-1) % 500


def tokens(batch):
    return {"tokens": torch.randint(0, 260, (batch, 7, 5), generator=torch.Generator().manual_seed(0))}


def exported(backend, **fields):
    exporter, config = BACKENDS.get(backend, OPENVINO)
    explicit = {"tokens": {0: torch.export.Dim("batch", min=1, max=16)}}
    return exporter().export_model(Hash(), tokens(3), config(dynamic_shapes=explicit, **fields))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.xfail(strict=True, reason="powers beyond 2^63 saturate, sums are rounded")
def test_needed(backend):
    torch.testing.assert_close(exported(backend, disabled_workarounds=(ID,))(**tokens(3)), Hash()(**tokens(3)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_works(backend):
    graph = exported(backend)
    for batch in (3, 1, 8):
        torch.testing.assert_close(graph(**tokens(batch)), Hash()(**tokens(batch)))


def test_openvino_has_no_such_numbers():
    with pytest.raises(LoweringError, match=r"32 bits, 'model' multiplies with \d+ \(at .*test_wide_whole_numbers.py"):
        exported("openvino")
