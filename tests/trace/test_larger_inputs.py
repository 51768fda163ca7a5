"""Images that are a single window at the traced size."""

from __future__ import annotations

import torch
from torch.nn import functional as F

import transformers_exporters as te

WINDOW = 130


class Windows(torch.nn.Module):
    """The largest value of each window, normalised within the window; images are padded to whole windows."""

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = pixel_values.shape
        rows, columns = (height + WINDOW - 1) // WINDOW, (width + WINDOW - 1) // WINDOW
        padded = F.pad(pixel_values, (0, columns * WINDOW - width, 0, rows * WINDOW - height))
        windows = padded.view(batch, channels, rows, WINDOW, columns, WINDOW).permute(0, 2, 4, 1, 3, 5)
        windows = windows.reshape(-1, channels * WINDOW * WINDOW)
        return windows.softmax(-1).amax(-1).reshape(batch, -1)


def images(height: int, width: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, height, width)}


def test_a_graph_of_more_windows_holds_for_one_and_for_many() -> None:
    model, inputs = Windows().eval(), images(64, 64)
    exported = te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True))
    assert exported["model"].spec.inputs[0].shape[2:] == ("height", "width")
    for given in (inputs, images(128, 128), images(49, 131), images(300, 20)):
        torch.testing.assert_close(exported(**given), model(**given))


class Stubborn(Windows):
    """Windows that take images of one size only."""

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        if max(pixel_values.shape[-2:]) > WINDOW:
            raise ValueError("too large")
        return super().forward(pixel_values)


def test_a_trace_is_ended_early_where_a_larger_one_is_needed(monkeypatch) -> None:
    export, ended = torch.export.export, []

    def counted(*args, **kwargs):
        ended.append("early")
        program = export(*args, **kwargs)
        ended[-1] = "complete"
        return program

    monkeypatch.setattr(torch.export, "export", counted)
    te.DynamoExporter().export(Windows().eval(), images(64, 64), te.DynamoConfig(dynamic=True))
    assert ended[:2] == ["early", "complete"]


def test_a_model_that_refuses_larger_inputs_is_traced_with_its_own() -> None:
    model, inputs = Stubborn().eval(), images(64, 64)
    exported = te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True))
    torch.testing.assert_close(exported(**inputs), model(**inputs))


class Strided(torch.nn.Module):
    """A waveform's frames, one at the traced size, and their mean; each frame is compared with the mean."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Conv1d(1, 4, 30, 20), torch.nn.Conv1d(4, 4, 6, 5))

    def forward(self, input_values: torch.Tensor) -> torch.Tensor:
        frames = self.layers(input_values.unsqueeze(1)).transpose(1, 2)
        return frames.reshape(frames.shape[0], frames.shape[1], 2, 2) - frames.mean(1)[:, None, None, :2]


def test_audio_of_one_frame() -> None:
    module, inputs = Strided().eval(), {"input_values": torch.randn(2, 220)}
    exported = te.DynamoExporter().export_model(module, inputs, te.DynamoConfig(dynamic=True))
    for batch, samples in ((2, 220), (3, 700), (1, 1000)):
        waveform = torch.randn(batch, samples)
        torch.testing.assert_close(exported(input_values=waveform), module(waveform).detach(), atol=1e-5, rtol=1e-4)
