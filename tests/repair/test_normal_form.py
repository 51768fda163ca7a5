"""A graph is written in core ops, or refused with the op and the line that called it."""

import pytest
import torch

import transformers_exporters as te
from transformers_exporters.pipeline import trace_part
from transformers_exporters.prepare.record import Part
from transformers_exporters.repair.core_ops import CORE_OPS
from transformers_exporters.repair.normal_form import to_normal_form

DYNAMO = te.doors.find_backend("dynamo")


def traced(module, **inputs):
    return trace_part(Part("model", module.eval(), inputs), DYNAMO, te.DynamoConfig(dynamic=True)).program


class Composite(torch.nn.Module):
    def forward(self, x):
        """x float32 [n, 6]: ops that consist of ops that consist of ops."""
        return torch.cdist(x, x + 1), torch.nn.functional.cosine_similarity(x, x * 2 - 1), torch.cumprod(x, 1).std()


class Solved(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.lu_factor(x)[0]


def ops(program):
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    names = {str(node.target) for node in nodes if isinstance(node.target, torch._ops.OpOverload)}
    return {name.replace("_.", ".") for name in names}  # an in-place op counts as its functional twin


def test_composites_are_taken_apart():
    program = traced(Composite(), x=torch.randn(3, 6))
    assert not ops(program) <= CORE_OPS
    assert to_normal_form(program, "model", own=()) > 0
    assert ops(program) <= CORE_OPS
    for n in (2, 9):
        x = torch.randn(n, 6)
        for got, wanted in zip(program.module()(x=x), Composite()(x), strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-4, rtol=1e-4)


def test_what_is_left_is_refused_by_name_and_line_unless_the_backend_takes_it():
    program = traced(Solved(), x=torch.randn(4, 4))
    with pytest.raises(te.LoweringError, match=r"'model' needs aten.*linalg.*test_normal_form.py:\d+, in forward"):
        to_normal_form(program, "model", own=())
    assert to_normal_form(program, "model", own=("aten.*linalg*",)) == 0


@pytest.mark.parametrize("format", ["onnx", "openvino", "executorch"])
def test_each_backend_names_an_op_that_it_lacks(format):
    config = te.AutoExportConfig.from_dict({"export_format": format})
    with pytest.raises(te.LoweringError, match=r"(?s)linalg.*test_normal_form.py:\d+"):
        te.AutoHfExporter.from_config(config).export(Solved().eval(), {"x": torch.randn(4, 4)})
