"""`hf.exported`: an exported model as a Python object."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import torch

import transformers_exporters as te


class Doubled(torch.nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values * 2


@pytest.mark.parametrize(
    "through", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pickle"]
)
def test_a_saved_model_is_copied_and_pickled_as_its_directory(through, tmp_path: Path) -> None:
    inputs = {"values": torch.randn(2, 3)}
    exported = te.DynamoExporter().export_model(Doubled(), inputs, te.DynamoConfig(dynamic=True))
    with pytest.raises(TypeError, match="save_pretrained"):
        through(exported)
    exported.save_pretrained(tmp_path / "artifact")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "artifact", trust_remote_code=True)
    for model in (exported, loaded):
        other = through(model)
        assert other.directory == tmp_path / "artifact"
        torch.testing.assert_close(other(values=torch.ones(5, 4)), torch.full((5, 4), 2.0))


def test_a_copy_is_trusted_no_more_than_its_original(tmp_path: Path) -> None:
    inputs = {"values": torch.randn(2, 3)}
    te.DynamoExporter().export_model(Doubled(), inputs, te.DynamoConfig()).save_pretrained(tmp_path / "artifact")
    other = copy.deepcopy(te.ExportedModel.from_pretrained(tmp_path / "artifact"))
    with pytest.raises(te.ArtifactError, match="trust_remote_code"):
        other(**inputs)
