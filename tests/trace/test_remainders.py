"""`trace.remainders`: graphs that were traced at a multiple of a number."""

from __future__ import annotations

import pytest
import torch

import transformers_exporters as te


class Chunks(torch.nn.Module):
    """Pads to whole chunks if it has to, and takes their running sums."""

    def forward(self, inputs_embeds: torch.Tensor) -> torch.Tensor:
        length = inputs_embeds.shape[1]
        if length % 6 != 0:
            inputs_embeds = torch.nn.functional.pad(inputs_embeds, (0, 0, 0, 6 - length % 6))
        return inputs_embeds.unflatten(1, (-1, 6)).cumsum(2).flatten(1, 2)[:, :length]


class Folded(torch.nn.Module):
    """Does something else where the length is no whole number of chunks."""

    def forward(self, inputs_embeds: torch.Tensor) -> torch.Tensor:
        if inputs_embeds.shape[1] % 6 == 0:
            return inputs_embeds.unflatten(1, (-1, 6)).sum(2)
        return inputs_embeds * 2


class Refusing(torch.nn.Module):
    def forward(self, inputs_embeds: torch.Tensor) -> torch.Tensor:
        if inputs_embeds.shape[1] % 6 != 0:
            raise ValueError("whole chunks only")
        return inputs_embeds.unflatten(1, (-1, 6)).sum(2)


def exported(model: torch.nn.Module, length: int) -> te.ExportedModel:
    inputs = {"inputs_embeds": torch.randn(2, length, 3)}
    return te.DynamoExporter().export_model(model.eval(), inputs, te.DynamoConfig(dynamic=True))


@pytest.mark.parametrize("length", [24, 25], ids=["multiple", "between"])
def test_a_model_that_pads_runs_at_every_length(length: int) -> None:
    model = Chunks()
    graph = exported(model, length)
    for other in (1, 6, 7, 24, 25, 48):
        values = torch.randn(3, other, 3)
        torch.testing.assert_close(graph(inputs_embeds=values), model(values))


def test_where_the_ways_differ_the_graph_says_of_what_it_takes_multiples() -> None:
    graph = exported(Folded(), 24)
    assert graph["model"].spec.axes["sequence"].multiple_of == 6
    values = torch.randn(3, 12, 3)
    torch.testing.assert_close(graph(inputs_embeds=values), Folded()(values))
    with pytest.raises(te.InputError, match="a multiple of 6"):
        graph(inputs_embeds=torch.randn(3, 13, 3))


def test_a_model_that_takes_multiples_only_speaks_for_itself() -> None:
    graph = exported(Refusing(), 24)
    values = torch.randn(3, 12, 3)
    torch.testing.assert_close(graph(inputs_embeds=values), Refusing()(values))


class Patches(torch.nn.Module):
    """Pads an image to whole patches, and returns as many as there are."""

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        height, width = pixel_values.shape[-2:]
        if height % 4 != 0:
            pixel_values = torch.nn.functional.pad(pixel_values, (0, 0, 0, 4 - height % 4))
        if width % 4 != 0:
            pixel_values = torch.nn.functional.pad(pixel_values, (0, 4 - width % 4))
        return torch.nn.functional.avg_pool2d(pixel_values, 4)


@pytest.mark.parametrize("size", [32, 33], ids=["multiple", "between"])
def test_images_of_any_size(size: int, caplog: pytest.LogCaptureFixture) -> None:
    inputs = {"pixel_values": torch.randn(2, 3, size, size)}
    graph = te.DynamoExporter().export_model(Patches(), inputs, te.DynamoConfig(dynamic=True))
    assert not [m for m in caplog.messages if "constant in the graph" in m]
    for height, width in ((32, 32), (33, 32), (35, 50), (4, 7)):
        values = torch.randn(1, 3, height, width)
        torch.testing.assert_close(graph(pixel_values=values), Patches()(values))
