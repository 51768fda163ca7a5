"""`einsum` that sums one axis away beside open ones, whose decomposition asks for numbers of elements."""

import pytest
import torch

pytest.importorskip("onnxruntime")

from transformers_exporters import OnnxConfig, OnnxExporter


class Bins(torch.nn.Module):
    def forward(self, logits):
        """logits float [batch, k, height, width] -> the weighted mean of k bins, [batch, height, width]."""
        bins = torch.linspace(0.1, 5.0, 7, device=logits.device)
        height, width = logits.shape[-2:]
        larger = torch.nn.functional.interpolate(logits, size=(height // 2 * 3, width // 2 * 3), mode="bilinear")
        weights = larger.relu() + 0.1
        weights = weights / weights.sum(dim=1, keepdim=True)
        return torch.einsum("ikmn,k->imn", [weights, bins])


def test_works():
    exported = OnnxExporter().export_model(
        Bins().eval(), {"logits": torch.randn(2, 7, 5, 6)}, config=OnnxConfig(dynamic=True)
    )
    for shape in ((2, 7, 5, 6), (3, 7, 8, 4)):
        inputs = {"logits": torch.randn(shape)}
        torch.testing.assert_close(exported(**inputs), Bins()(**inputs))
