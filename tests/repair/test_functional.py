"""In-place ops, also through views, become functional ones that compute the same."""

from collections.abc import Callable

import pytest
import torch

from transformers_exporters.repair.functional import is_mutable, make_functional


def whole(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    y.mul_(2)
    y += x
    return y


def select(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, 0] = 5.0
    y[1] += 1
    return y


def nested_views(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    z = y.view(2, 2, 3).transpose(0, 1)
    z[0, 1] = 7.0
    w = y.unsqueeze(0)
    w[..., 1].zero_()
    return y + z.reshape(-1).sum()


def views_taken_before(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.clone()
    row, column = y[0], y[:, 1:2]
    row.add_(10)
    column.fill_(3)
    return y, row, column


def casts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.clone()
    same, other, copied = y.to(torch.float32), y.to(torch.float64), y.to(torch.float32, copy=True)
    same[0] = 1.0
    other[1] = 2.0
    copied[:, 0] = 3.0
    return y, same, other, copied


def split(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.clone()
    a, b = y.split([1, 3])
    b.mul_(2)
    first = y.unbind(1)[0]
    first.add_(1)
    return y, a, b


def masked(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y > 0] = -1.0
    y.masked_fill_(y < -1, 4.0)
    return y


def scattered(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros_like(x)
    y.scatter_(1, torch.tensor([[0], [1], [2], [0]]), 2.0)
    y.index_copy_(0, torch.tensor([3]), x[:1])
    return y


def result_of_the_op(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    z = y.add_(1)
    z.mul_(3)
    return y + z


CASES = [whole, select, nested_views, views_taken_before, casts, split, masked, scattered, result_of_the_op]


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_the_functional_graph_computes_the_same(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(x)

    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    program = torch.export.export(Module(), (x,))
    assert make_functional(program.graph) > 0
    assert not any(is_mutable(node) for node in program.graph.nodes)
    constants = [program.constants[s.target] for s in program.graph_signature.input_specs if s.target is not None]
    got = torch.fx.Interpreter(torch.fx.GraphModule(program.graph_module, program.graph)).run(*constants, x.clone())
    wanted = function(x.clone())
    torch.testing.assert_close(tuple(got), wanted if isinstance(wanted, tuple) else (wanted,), atol=0, rtol=0)


def test_a_mutated_input_is_returned_with_its_new_value() -> None:
    class Cache(torch.nn.Module):
        def forward(self, cache: torch.Tensor, new: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
            cache.index_copy_(0, at, new)
            return cache, cache.sum()

    inputs = (torch.zeros(4, 2), torch.ones(1, 2), torch.tensor([2]))
    program = torch.export.export(Cache(), inputs)
    make_functional(program.graph)
    outputs = torch.fx.Interpreter(torch.fx.GraphModule(program.graph_module, program.graph)).run(*inputs)
    assert inputs[0].sum() == 0
    cache, total = outputs[-2:]
    assert cache[2].tolist() == [1, 1]
    assert total == 2
