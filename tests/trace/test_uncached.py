"""A method whose results are remembered, called with a size that varies."""

from __future__ import annotations

import functools

import torch

import transformers_exporters as te


class Remembering(torch.nn.Module):
    @functools.lru_cache(maxsize=4)  # noqa: B019 - what models do
    def positions(self, length: int) -> torch.Tensor:
        return torch.arange(length)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + self.positions(values.shape[1])


def test_a_trace_neither_asks_nor_fills_a_cache() -> None:
    module, inputs = Remembering(), {"values": torch.randn(2, 5)}
    exported = te.DynamoExporter().export_model(module, inputs, te.DynamoConfig(dynamic=True))
    assert Remembering.positions.cache_info().currsize == 0
    for shape in ((2, 5), (3, 9)):
        values = torch.randn(*shape)
        torch.testing.assert_close(exported(values=values), module(values))
    assert Remembering.positions.cache_info().currsize == 2
