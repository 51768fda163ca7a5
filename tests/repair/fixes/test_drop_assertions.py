"""`repair.fixes.drop_assertions`: a model that checks its values reaches ONNX."""

import pytest
import torch

import transformers_exporters as te

ID = "repair.fixes.drop_assertions"


class Checked(torch.nn.Module):
    """Doubles its input after asking that nothing in it is negative."""

    def forward(self, hidden_states):
        torch._check_tensor_all(hidden_states >= 0, lambda: "negative")
        return hidden_states * 2


def test_needed():
    with pytest.raises(te.LoweringError, match="_is_all_true"):
        te.OnnxExporter().export(
            Checked(), {"hidden_states": torch.ones(2, 3, 4)}, config={"disabled_workarounds": [ID]}
        )


def test_works():
    exported = te.OnnxExporter().export_model(
        Checked(), {"hidden_states": torch.ones(2, 3, 4)}, config=te.OnnxConfig(dynamic=True)
    )
    x = torch.rand(5, 7, 4)
    torch.testing.assert_close(exported(hidden_states=x), x * 2, atol=0, rtol=0)
