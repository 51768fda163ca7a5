"""Grouped heads and ops without effect: what goes, what stays, and that the numbers are the same."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from transformers_exporters.backends.dynamo.lighter_steps import with_lighter_steps

HEADS, GROUP, SIZE = 3, 2, 8
attention = torch.nn.functional.scaled_dot_product_attention


def repeated(x: Tensor) -> Tensor:
    batch, heads, length, size = x.shape
    return x[:, :, None, :, :].expand(batch, heads, GROUP, length, size).reshape(batch, heads * GROUP, length, size)


class Grouped(torch.nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return attention(q, repeated(k), repeated(v), attn_mask=mask)


class Tiled(Grouped):
    """Its heads are not repeated one after another, but all of them again: grouping would pair others."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return attention(q, k.repeat(1, GROUP, 1, 1), v.repeat(1, GROUP, 1, 1), attn_mask=mask)


class WrittenBetween(Grouped):
    """Attention sees the values from before the write."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        v = v + 0
        keys, values = repeated(k), repeated(v)
        v.mul_(2)
        return attention(q, keys, values, attn_mask=mask) + v.sum()


class NothingDone(torch.nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.to(torch.float32)[:] * 2, x[0:].to(torch.float32)


def inputs(batch: int, length: int) -> tuple[Tensor, ...]:
    torch.manual_seed(length)
    mask = torch.rand(batch, 1, 1, length) > 0.3
    mask[..., 0] = True
    return (
        torch.randn(batch, HEADS * GROUP, 1, SIZE),
        torch.randn(batch, HEADS, length, SIZE),
        torch.randn(batch, HEADS, length, SIZE),
        mask,
    )


def exported(module: torch.nn.Module) -> ExportedProgram:
    batch, length = Dim("batch"), Dim("length")
    shapes = ({0: batch}, {0: batch, 2: length}, {0: batch, 2: length}, {0: batch, 3: length})
    return torch.export.export(module, inputs(2, 5), dynamic_shapes=shapes)


def targets(program: ExportedProgram) -> Counter[str]:
    return Counter(str(node.target) for node in program.graph.nodes)


@pytest.mark.parametrize("module", [Grouped(), Tiled(), WrittenBetween()], ids=lambda module: type(module).__name__)
def test_attention_over_shared_heads(module: torch.nn.Module) -> None:
    program = exported(module)
    before = targets(program)
    made = with_lighter_steps(program)
    (node,) = made.graph.find_nodes(op="call_function", target=torch.ops.aten.scaled_dot_product_attention.default)
    assert bool(node.kwargs.get("enable_gqa")) == (type(module) is Grouped)
    assert targets(program) == before, "the given program is as it was"
    for sizes in ((2, 5), (1, 9), (3, 40)):
        given = inputs(*sizes)
        torch.testing.assert_close(made.module()(*given), module(*given))
    if type(module) is Grouped:
        assert not targets(made)["aten.expand.default"] and not targets(made)["aten.reshape.default"]


def test_ops_without_effect(tmp_path) -> None:
    program = torch.export.export(NothingDone(), (torch.ones(2, 3),), dynamic_shapes=({0: Dim("n")},))
    made = with_lighter_steps(program)
    assert targets(made)["aten.mul.Tensor"] == 1
    assert sum(n for name, n in targets(made).items() if name in ("aten.to.dtype", "aten.slice.Tensor")) == 1
    torch.export.save(made, tmp_path / "made.pt2")
    x = torch.randn(5, 3)
    for got, wanted in zip(torch.export.load(tmp_path / "made.pt2").module()(x), NothingDone()(x), strict=True):
        torch.testing.assert_close(got, wanted)
