"""Reshapes: what the trace knows of a size that the model leaves to `-1`."""

import torch

import transformers_exporters as te


class Streams(torch.nn.Module):
    """Copies of every position side by side, as GLM-5-Next's streams."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(10, 8)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """int64 [batch, length] -> float32 [batch, length, 32]."""
        batch, length = input_ids.shape
        return self.embed(input_ids).unsqueeze(2).expand(-1, -1, 4, -1).reshape(batch, length, -1)


def test_the_rest_is_a_number() -> None:
    model = Streams().eval()
    exported = te.OpenVINOExporter().export_model(
        model, {"input_ids": torch.ones(2, 5, dtype=torch.long)}, te.OpenVINOConfig(dynamic=True)
    )
    shape = exported["model"].program.outputs[0].get_partial_shape()
    assert shape[2].is_static and shape[2].get_length() == 32
    ids = torch.arange(21).reshape(3, 7) % 10
    torch.testing.assert_close(exported(input_ids=ids), model(ids))


class Mixed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [batch, length] -> float32 [length, batch]. Writing another dtype has the graph traced again, with views."""
        halves = x.half()
        halves.add_(x)
        return halves.float().view(-1, x.shape[0])


def test_a_view() -> None:
    model = Mixed().eval()
    exported = te.OpenVINOExporter().export_model(model, {"x": torch.randn(2, 5)}, te.OpenVINOConfig(dynamic=True))
    for shape in ((2, 5), (3, 7)):
        x = torch.randn(shape)
        torch.testing.assert_close(exported(x=x), model(x), atol=5e-3, rtol=0)
