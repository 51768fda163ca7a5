"""`repair.fixes.constant_sizes`: an input's axis that has to fit a weight."""

import pytest
import torch

from transformers_exporters import DynamoConfig, DynamoExporter

ID = "repair.fixes.constant_sizes"


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(3, 1))

    def forward(self, x):
        """x float [n, 3, t] -> the same."""
        return x * self.scale


def exported(**fields):
    return DynamoExporter().export(Scaled(), {"x": torch.randn(2, 3, 5)}, config=DynamoConfig(dynamic=True, **fields))


def kinds(program):
    (node,) = [node for node in program.graph.find_nodes(op="placeholder") if node.name == "x"]
    return [type(size) for size in node.meta["val"].shape]


@pytest.mark.xfail(strict=True, reason="the size of the weight is symbolic in the input")
def test_needed():
    assert kinds(exported(disabled_workarounds=(ID,)))[1] is int


def test_works():
    program = exported()
    assert kinds(program) == [torch.SymInt, int, torch.SymInt]
    model = Scaled()
    model.load_state_dict({"scale": program.state_dict["scale"]})
    x = torch.randn(4, 3, 7)
    torch.testing.assert_close(program.module()(x=x), model(x))
