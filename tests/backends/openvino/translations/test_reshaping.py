"""Reshapes: what the trace knows of a size that the model leaves to `-1`."""

import torch

import transformers_exporters as te


class Streams(torch.nn.Module):
    """Copies of every position side by side, as GLM-5-Next's streams."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [batch, length, 8] -> [batch, length, 32]."""
        batch, length = x.shape[:2]
        return x.unsqueeze(2).expand(-1, -1, 4, -1).reshape(batch, length, -1)


def test_the_rest_is_a_number() -> None:
    model = Streams().eval()
    exported = te.OpenVINOExporter().export_model(model, {"x": torch.randn(2, 5, 8)}, te.OpenVINOConfig(dynamic=True))
    shape = exported["model"].program.outputs[0].get_partial_shape()
    assert shape[2].is_static and shape[2].get_length() == 32
    x = torch.randn(3, 7, 8)
    torch.testing.assert_close(exported(x=x), model(x))
