"""`repair.fixes.known_counts`: as many positions as the grid says are added to the patches."""

import pytest
import torch

from transformers_exporters import OnnxConfig, OnnxExporter

ID = "repair.fixes.known_counts"


class Patches(torch.nn.Module):
    def forward(self, patches, grids):
        """patches float [n, 4], grids int64 [m, 2], whose products add up to n -> patches with their positions, [n, 4]."""
        return patches + torch.arange(int(grids.prod(1).sum()))[:, None]


def inputs(*grids):
    grids = torch.tensor(grids)
    return {"patches": torch.randn(int(grids.prod(1).sum()), 4), "grids": grids}


def exported(**fields):
    return OnnxExporter().export_model(Patches(), inputs((2, 3), (4, 4)), OnnxConfig(dynamic=True, **fields))


def counted(graph):
    return "ReduceSum" in {node.op_type for node in graph["model"].program.model.graph}


@pytest.mark.xfail(strict=True, reason="the number of rows is computed from the grids")
def test_needed():
    assert not counted(exported(disabled_workarounds=(ID,)))


def test_works():
    graph = exported()
    assert not counted(graph)
    for given in (inputs((2, 3), (4, 4)), inputs((5, 3), (1, 4), (6, 2))):
        torch.testing.assert_close(graph(**given), Patches()(**given))
