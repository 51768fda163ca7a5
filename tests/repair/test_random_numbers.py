"""Random numbers on the engines: of the distribution that torch draws from, anew in each run, each draw for itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import transformers_exporters as te

EXPORTERS = {
    "onnx": (te.OnnxExporter, te.OnnxConfig),
    "openvino": (te.OpenVINOExporter, te.OpenVINOConfig),
    "executorch": (te.ExecutorchExporter, te.ExecutorchConfig),
}


class Draws(torch.nn.Module):
    """float32 [n, 4] of chances -> draws of every kind, each with n rows."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            "uniform": torch.rand_like(x) * 1,
            "twin": torch.rand_like(x) * 1,
            "normal": torch.randn(x.shape),
            "moved": x.clone().normal_(1.0, 0.5),
            "whole": torch.randint(2, 5, x.shape),
            "coin": torch.bernoulli(x),
            "waiting": torch.empty_like(x).exponential_(2.0),
            "picked": torch.nn.functional.one_hot(torch.multinomial(x, 1).squeeze(1), 4),
            "second": torch.nn.functional.one_hot(torch.multinomial(x, 2)[:, 1], 4),
            "again": torch.nn.functional.one_hot(torch.multinomial(x, 2, replacement=True)[:, 1], 4),
            "dropped": torch.nn.functional.dropout(torch.ones_like(x), 0.25),
        }


def case(n: int) -> dict[str, torch.Tensor]:
    return {"x": torch.tensor([[0.1, 0.2, 0.3, 0.4]]).repeat(n, 1)}


@pytest.fixture(scope="module", params=EXPORTERS)
def exported(request: pytest.FixtureRequest) -> Any:
    exporter, config = EXPORTERS[request.param]
    shapes = {"x": {0: torch.export.Dim("n", min=2, max=4096)}}
    return exporter().export_model(Draws().eval(), case(64), config=config(dynamic_shapes=shapes))


def test_the_distribution_is_torchs(exported: Any) -> None:
    """Means and deviations by column, of 4000 rows: within five deviations of the mean of as many draws."""
    got, wanted = exported(**case(4000)), Draws()(**case(4000))
    for name, expected in wanted.items():
        assert got[name].dtype == expected.dtype and got[name].shape == expected.shape, name
        column, other = got[name].float(), expected.float()
        bound = 7 * float(other.std()) / 4000**0.5
        assert torch.allclose(column.mean(0), other.mean(0), atol=bound, rtol=0), name
        assert torch.allclose(column.std(0), other.std(0), atol=0.06, rtol=0.06), name


def test_each_draw_is_its_own(exported: Any) -> None:
    first, second = exported(**case(8)), exported(**case(8))
    assert not torch.equal(first["uniform"], second["uniform"])
    assert not torch.equal(first["uniform"], first["twin"])
