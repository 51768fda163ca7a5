"""`trace.pinned_sizes`: an axis whose derived size the trace compared with a number."""

import pytest
import sympy
import torch
from torch.utils._sympy.functions import Mod

from transformers_exporters import ExecutorchConfig, ExecutorchExporter, InputError, OnnxConfig, OnnxExporter
from transformers_exporters.trace.pinned_sizes import _hold


class Strided(torch.nn.Module):
    """An LSTM behind a convolution of stride 4."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(3, 8, 4, stride=4)
        self.lstm = torch.nn.LSTM(8, 4, batch_first=True)

    def forward(self, input_features):
        """input_features float [batch, 3, n] -> float [batch, n // 4, 4]."""
        return self.lstm(self.conv(input_features).transpose(1, 2))[0]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Strided().eval()


def features(n):
    return {"input_features": torch.randn(2, 3, n)}


def test_a_loop_that_the_backend_unrolls_keeps_the_lengths_that_it_is_for(model):
    """As a backend without the layer does: all lengths with the traced number of steps run, others are refused and not cut."""
    config = ExecutorchConfig(dynamic=True, disabled_workarounds=("backends.executorch.patches.recurrent_shapes",))
    exported = ExecutorchExporter().export_model(model, features(22), config)
    for n in (20, 22, 23):
        given = features(n)
        torch.testing.assert_close(exported(**given), model(**given))
    for n in (19, 24, 44):
        with pytest.raises(InputError, match="20 to 23"):
            exported(**features(n))


def test_a_layer_that_the_engine_has_takes_any_length(model):
    for exporter, config in (OnnxExporter(), OnnxConfig), (ExecutorchExporter(), ExecutorchConfig):
        exported = exporter.export_model(model, features(22), config(dynamic=True))
        for n in (8, 23, 44):
            given = features(n)
            torch.testing.assert_close(exported(**given), model(**given))


class Halved(torch.nn.Module):
    """Equal at one size or at all: only a trial tells which."""

    def __init__(self, harmless):
        super().__init__()
        self.harmless = harmless

    def forward(self, x):
        """x float [n, 4] -> float [n, 4]."""
        if x.shape[0] // 2 == 5:
            return x * 2
        return x + x if self.harmless else x


@pytest.mark.parametrize("harmless", [True, False])
def test_a_trial_decides(harmless):
    model = Halved(harmless)
    exported = OnnxExporter().export_model(model, {"x": torch.randn(10, 4)}, OnnxConfig(dynamic=True))
    x = torch.randn(11, 4)
    torch.testing.assert_close(exported(x=x), model(x))
    x = torch.randn(24, 4)
    if harmless:
        torch.testing.assert_close(exported(x=x), model(x))
    else:
        with pytest.raises(InputError, match="10 to 11"):
            exported(x=x)


def test_a_size_that_leaves_nothing():
    """torch's `Mod` refuses negative numbers (the image encoder of DeepSeek-OCR 2)."""
    size = sympy.Symbol("size", integer=True, positive=True)
    rest = sympy.Eq(Mod(size - 8, 3), 0)
    assert [n for n in (2, 4, 6, *range(7, 18)) if _hold([rest], size, n)] == [8, 11, 14, 17]
