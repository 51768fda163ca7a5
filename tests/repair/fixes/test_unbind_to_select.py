"""`repair.fixes.unbind_to_select`: a Python list of as many items as the sample had marks."""

import pytest
import torch

from transformers_exporters import OnnxConfig, OnnxExporter

ID = "repair.fixes.unbind_to_select"


class Pieces(torch.nn.Module):
    def forward(self, x, ends):
        """x float [n, 4], ends bool [m] -> the rows of x up to each mark, averaged: float [marks, 4]."""
        x.mul_(1.0)  # a graph that writes into an input is traced again
        lengths = ends.nonzero()[:, 0] + 1
        return torch.stack([piece.mean(0) for piece in x[: lengths.sum()].split(lengths.tolist())])


INPUTS = {"x": torch.randn(9, 4), "ends": torch.tensor([False, True, False, True])}


def exported(**fields):
    return OnnxExporter().export_model(Pieces(), INPUTS, OnnxConfig(dynamic=True, **fields))


@pytest.mark.xfail(strict=True, reason="the converter runs unbind again, which compares an unbacked size with 0")
def test_needed():
    exported(disabled_workarounds=(ID,))


def test_works():
    graph = exported()
    torch.testing.assert_close(graph(**INPUTS), Pieces()(**INPUTS))
    other = {"x": torch.randn(12, 4), "ends": torch.tensor([True, False, False, False, True])}
    torch.testing.assert_close(graph(**other), Pieces()(**other))
