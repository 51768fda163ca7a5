"""Selections among values that are equal up to rounding: what `verify` says about them, and that it hides nothing."""

from __future__ import annotations

import pytest
import torch

from transformers_exporters import DynamoConfig, DynamoExporter, VerificationError, verify
from transformers_exporters.hf.near_ties import selected_otherwise
from transformers_exporters.verification import Report


class Best(torch.nn.Module):
    """Returns the best rows; two rows differ by less than rounding.

    Args:
        lead: By how much the third row leads the second one.
        factor: Multiplies the result.
        ties: How many rows are as good as the second one.
    """

    def __init__(self, lead: float = 0.0, factor: float = 1.0, ties: int = 1) -> None:
        super().__init__()
        scores = torch.tensor([3.0, 1.0, *(1.0 + lead * n for n in range(1, ties + 1)), 0.5])
        self.register_buffer("scores", scores)
        self.factor = factor

    def forward(self, values: torch.Tensor) -> dict[str, torch.Tensor]:
        """values float32 [batch, 2] -> best float32 [batch, 2, 2], plain float32 [batch, 2]."""
        rows = values[:, None] + torch.arange(len(self.scores))[:, None] * 5
        best = torch.topk(self.scores.expand(len(values), -1), 2).indices
        return {
            "best": self.factor * rows.gather(1, best[..., None].expand(-1, -1, 2)),
            "plain": values * 2,
        }


INPUTS = {"values": torch.tensor([[1.0, 2.0]])}


def report(model: torch.nn.Module, exported: torch.nn.Module) -> Report:
    artifact = DynamoExporter().export_model(exported.eval(), INPUTS, DynamoConfig())
    return verify(model.eval(), artifact, INPUTS)


@pytest.mark.parametrize("lead", [3e-7, -3e-7])
def test_an_artifact_that_takes_the_other_of_two_equals_the_model(lead: float) -> None:
    found = report(Best(lead), Best(-lead))
    found.check()
    note = next(row.note for row in found.rows if row.output == "best")
    assert note is not None
    assert "topk at test_near_ties.py:" in note


def test_clear_selections_have_no_other() -> None:
    model = Best(lead=0.01).eval()
    assert list(selected_otherwise(lambda: model(**INPUTS), 3)) == []


def test_a_selection_that_differs_clearly_is_an_error() -> None:
    found = report(Best(lead=0.01), Best(lead=-0.01))
    assert not found.undecided
    with pytest.raises(VerificationError, match="best differs from the model's"):
        found.check()


def test_a_wrong_result_of_ties_is_not_passed() -> None:
    found = report(Best(3e-7), Best(-3e-7, factor=1.01))
    assert not found.ok
    assert {row.output for row in found.rows if not row.ok} == {"best"}
    with pytest.raises(VerificationError, match=r"best cannot be compared .*topk at .*verify with other inputs"):
        found.check()


def test_an_error_beside_the_ties_is_an_error() -> None:
    """What does not depend on the selection is held to equality."""

    class Wrong(Best):
        def forward(self, values: torch.Tensor) -> dict[str, torch.Tensor]:
            outputs = super().forward(values)
            return {**outputs, "plain": outputs["plain"] * 1.01}

    found = report(Best(3e-7), Wrong(-3e-7))
    assert not found.undecided
    with pytest.raises(VerificationError, match="plain differs from the model's"):
        found.check()


def test_the_values_of_a_selection_stay() -> None:
    scores = torch.tensor([[1.0, 1.0 + 3e-7, 0.2]])
    for select in (
        lambda: torch.topk(scores, 1),
        lambda: scores.sort(descending=True),
        lambda: scores.max(1),
        lambda: scores.max(1, keepdim=True),
    ):
        others = list(selected_otherwise(select, 8))
        assert others
        for (values, indices), places in others:
            assert len(places) == 1
            taken = scores.gather(1, indices if indices.dim() == 2 else indices[:, None])
            torch.testing.assert_close(values, taken if indices.dim() == 2 else taken[:, 0], rtol=0, atol=0)


def test_equal_values_keep_the_order_that_an_op_promises() -> None:
    flags = torch.tensor([[0.0, 1.0, 1.0, 0.0]])
    assert list(selected_otherwise(lambda: flags.argmax(1), 8)) == []
    assert list(selected_otherwise(lambda: flags.sort(dim=1, stable=True), 8)) == []
    orders = {tuple(run.outputs.indices[0].tolist()) for run in selected_otherwise(lambda: torch.topk(flags, 2), 2)}
    assert orders <= {(1, 2), (2, 1)}
    assert orders


def test_many_equal_values_in_the_order_of_engines() -> None:
    """PyTorch's own order of ties is that of its partitioning; all rows of a graph that takes the first are settled."""
    scores = torch.zeros(5, 40)
    first = next(iter(selected_otherwise(lambda: torch.topk(scores, 6), 1)))
    assert first.outputs.indices.tolist() == [[0, 1, 2, 3, 4, 5]] * 5
