"""A kernel that does not take 16-bit numbers is named at export."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from executorch.exir._serialize._cord import Cord
from executorch.exir.dialects._ops import ops

from transformers_exporters.backends.executorch.half_precision import calls_in_half_precision, check_half_precision
from transformers_exporters.errors import LoweringError

LOG = (
    "E 00:00:00.1 executorch:op_roll.cpp:70] Unhandled dtype Half for roll.out\n"
    "E 00:00:00.1 executorch:method.cpp:1357] KernelCall failed at instruction 0:3 in operator aten::roll.out: 0x12\n"
)


def program(dtype: torch.dtype) -> torch.export.ExportedProgram:
    class Rolled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """x [2, 3]."""
            return torch.roll(x, 1, -1)

    exported = torch.export.export(Rolled(), (torch.ones(2, 3, dtype=dtype),))
    for node in exported.graph.nodes:
        if node.op == "call_function":
            node.target = ops.edge.aten.roll.default
    return exported


def test_only_calls_that_see_sixteen_bits_count() -> None:
    assert len(calls_in_half_precision(program(torch.bfloat16))) == 1
    assert calls_in_half_precision(program(torch.float32)) == []


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (LOG, r"kernel of roll does not take float16, which 'model' gives it \(at .*test_half_precision\.py:\d+"),
        ("Aborted", "cannot run 'model', which computes partly in 16 bits: Aborted"),
    ],
)
def test_the_operator_and_its_source_line_are_named(log: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_in_half_precision(program(torch.float16))
    monkeypatch.setattr(
        "transformers_exporters.backends.executorch.half_precision._RUN",
        f"import sys; sys.stderr.write({log!r}); sys.exit(1)",
    )
    planned = SimpleNamespace(_pte_data=Cord(b"any program"))
    with pytest.raises(LoweringError, match=message):
        check_half_precision(planned, calls, [torch.ones(2, 3, dtype=torch.float16)], "model")


def test_a_program_that_does_not_load_is_refused_by_the_runtime_itself() -> None:
    calls = calls_in_half_precision(program(torch.float16))
    planned = SimpleNamespace(_pte_data=Cord(b"no program at all" * 10))
    with pytest.raises(LoweringError, match="export it in float32"):
        check_half_precision(planned, calls, [torch.ones(2, 3, dtype=torch.float16)], "model")
