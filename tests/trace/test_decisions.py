"""Branches on sizes: a graph holds one way, and refuses sizes that take another, whatever is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import transformers_exporters as te


class Branch(torch.nn.Module):
    def __init__(self, question: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.question = question

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """values float32 [b, t, d]"""
        return values * 2 if self.question(values) else values + 1


QUESTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "a quotient": lambda x: x.shape[1] // 4 > 3,
    "a square": lambda x: x.shape[1] ** 2 > 100,
    "a product": lambda x: x.shape[1] * x.shape[2] > 100,
    "two axes": lambda x: x.shape[1] > x.shape[2],
    "a remainder": lambda x: x.shape[1] % 7 < 3,
    "the number of elements": lambda x: x.numel() > 500,
    "the larger of two": lambda x: max(x.shape[1], x.shape[2]) > 12,
    "a difference": lambda x: abs(x.shape[1] - x.shape[2]) > 3,
    "a ratio": lambda x: x.shape[1] / x.shape[2] > 1.5,
    "a number": lambda x: x.shape[1] % 2,
    "the batch": lambda x: x.shape[0] * x.shape[1] > 30,
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_the_other_way_is_refused_or_right(question: Callable[[torch.Tensor], Any]) -> None:
    model = Branch(question).eval()
    exported = te.DynamoExporter().export_model(model, {"values": torch.randn(2, 9, 8)}, te.DynamoConfig(dynamic=True))
    computed = 0
    for batch in (1, 5):
        for length in (1, 3, 8, 9, 10, 13, 20, 40):
            for width in (1, 4, 8, 30):
                values = torch.randn(batch, length, width)
                try:
                    got = exported(values=values)
                except te.InputError:
                    continue
                torch.testing.assert_close(got, model(values))
                computed += 1
    assert computed > 10


def test_the_message_names_the_sizes_and_the_line() -> None:
    model = Branch(QUESTIONS["a product"]).eval()
    exported = te.DynamoExporter().export_model(model, {"values": torch.randn(2, 9, 8)}, te.DynamoConfig(dynamic=True))
    with pytest.raises(
        te.InputError, match=r"values_1\*values_2<=100, got values_1=20, values_2=8.*test_decisions.py:\d+"
    ):
        exported(values=torch.randn(2, 20, 8))


def test_axes_that_the_caller_asks_for_are_no_exception() -> None:
    model = Branch(QUESTIONS["a product"]).eval()
    shapes = {"values": {1: torch.export.Dim("rows", min=2, max=50), 2: torch.export.Dim("columns", min=2, max=50)}}
    config = te.DynamoConfig(dynamic_shapes=shapes)
    exported = te.DynamoExporter().export_model(model, {"values": torch.randn(2, 9, 8)}, config)
    values = torch.randn(2, 3, 30)
    torch.testing.assert_close(exported(values=values), model(values))
    with pytest.raises(te.InputError, match="<=100"):
        exported(values=torch.randn(2, 20, 8))


class EvenTokens(torch.nn.Module):
    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """input_ids int64 [b, t]"""
        return input_ids * 2 if input_ids.shape[1] % 2 == 0 else input_ids


def test_the_callers_own_sizes_take_the_way_of_the_graph() -> None:
    """The exporter traces at 37 tokens, which are odd."""
    model, inputs = EvenTokens().eval(), {"input_ids": torch.arange(16).view(2, 8)}
    exported = te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True))
    for length in (8, 12, 2):
        ids = torch.arange(3 * length).view(3, length)
        torch.testing.assert_close(exported(input_ids=ids), model(ids))
    with pytest.raises(te.InputError, match="input_ids"):
        exported(input_ids=torch.arange(18).view(2, 9))


class SavesWork(torch.nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """values float32 [b, t, d]: both ways of every branch compute the same."""
        if values.shape[1] * values.shape[2] > 1:
            values = values + 0
        return values * 2 if values.shape[1] > values.shape[2] else values + values


def test_a_branch_that_changes_nothing_refuses_nothing() -> None:
    model, inputs = SavesWork().eval(), {"values": torch.randn(2, 9, 8)}
    exported = te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True))
    assert "conditions" not in exported["model"].spec.options
    for shape in ((1, 1, 1), (3, 4, 20), (2, 30, 2)):
        values = torch.randn(shape)
        torch.testing.assert_close(exported(values=values), model(values))


class PaddedAsTensorFlow(torch.nn.Module):
    """MobileNetV2's first layers: what is padded depends on whether a size is even."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.Conv2d(4, 4, 3, stride=2)])

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """pixel_values float32 [b, 3, h, w]"""
        features = pixel_values
        for layer in self.layers:
            height, width = features.shape[-2:]
            down = 1 if height % 2 == 0 else 2
            across = 1 if width % 2 == 0 else 2
            padding = (across // 2, across - across // 2, down // 2, down - down // 2)
            features = layer(torch.nn.functional.pad(features, padding))
        return features.mean((2, 3))


def test_images_stay_open_where_a_remainder_decides() -> None:
    torch.manual_seed(0)
    model = PaddedAsTensorFlow().eval()
    inputs = {"pixel_values": torch.randn(2, 3, 32, 32)}
    exported = te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True))
    assert {"height", "width"} <= exported["model"].spec.axes.keys()
    for size in ((32, 32), (64, 96), (128, 32)):
        image = torch.randn(1, 3, *size)
        torch.testing.assert_close(exported(pixel_values=image), model(image))
    with pytest.raises(te.InputError, match="height"):
        exported(pixel_values=torch.randn(1, 3, 33, 32))
