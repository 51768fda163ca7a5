"""`repair.fixes.view_to_reshape`: a graph with views survives decompositions that change strides."""

import pytest
import torch
from torch.library import Library

from transformers_exporters.repair.fixes.view_to_reshape import replace_views

_LIBRARY = Library("view_to_reshape_test", "DEF")
_LIBRARY.define("rows(Tensor x) -> Tensor")


@torch.library.register_fake("view_to_reshape_test::rows", lib=_LIBRARY)
def _(x):
    return torch.empty(x.shape[0], x.shape[2], x.shape[1]).transpose(1, 2)


@torch.library.impl("view_to_reshape_test::rows", "CPU", lib=_LIBRARY)
def _(x):
    return x.transpose(1, 2).contiguous().transpose(1, 2) + 1


class Attention(torch.nn.Module):
    """An op that returns transposed memory, then a view that only that memory allows."""

    def forward(self, x):
        return torch.ops.view_to_reshape_test.rows(x).transpose(1, 2).view(x.shape[0], -1)


_OTHER_STRIDES = {torch.ops.view_to_reshape_test.rows.default: lambda x: (x + 1).contiguous()}


def _traced():
    x = torch.arange(24.0).reshape(2, 3, 4)
    return x, torch.export.export(Attention(), (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))


def test_needed():
    _, program = _traced()
    with pytest.raises((RuntimeError, ValueError), match="view"):
        program.run_decompositions(_OTHER_STRIDES)


def test_works():
    x, program = _traced()
    assert replace_views(program) == 1
    decomposed = program.run_decompositions(_OTHER_STRIDES)
    wanted = Attention()(x)
    torch.testing.assert_close(decomposed.module()(x), wanted, atol=0, rtol=0)
    torch.testing.assert_close(decomposed.module()(x.repeat(3, 1, 1)), Attention()(x.repeat(3, 1, 1)), atol=0, rtol=0)
