"""`backends.onnx.translations.repeat_interleave`: the number of repetitions is a size of another input."""

import pytest
import torch

import transformers_exporters as te


class Repeated(torch.nn.Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x float32 [a, b, c], frames float32 [d, e]."""
        return x.repeat_interleave(frames.shape[1], dim=self.dim), x.repeat_interleave(3, dim=self.dim)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
def test_at_other_sizes(dim: int | None) -> None:
    model = Repeated(dim).eval()
    exported = te.OnnxExporter().export_model(
        model, {"x": torch.randn(2, 5, 6), "frames": torch.randn(3, 4)}, te.OnnxConfig(dynamic=True)
    )
    # As long as the number itself, where the converter's graph repeated nothing, and longer and shorter.
    for shape, frames in (((4, 4, 4), 4), ((3, 7, 2), 5), ((2, 5, 6), 2)):
        inputs = {"x": torch.randn(shape), "frames": torch.randn(2, frames)}
        for got, wanted in zip(exported(**inputs), model(**inputs), strict=True):
            torch.testing.assert_close(got, wanted)
