"""The number of elements of a tensor, as a node of its own: torch leaves one where nothing writes it as a product of sizes."""

import pytest
import torch

pytest.importorskip("onnxruntime")

from transformers_exporters import OnnxConfig, OnnxExporter
from transformers_exporters.testing import tiny_model


def test_works():
    """CHMv2's depth, a weighted mean over bins."""
    model, inputs = tiny_model("chmv2")
    exported = OnnxExporter().export_model(model, inputs, config=OnnxConfig(dynamic=True))
    with torch.no_grad():
        wanted = model(**inputs).predicted_depth
    torch.testing.assert_close(exported(**inputs)["predicted_depth"], wanted, atol=1e-3, rtol=1e-3)
