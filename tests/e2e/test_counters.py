"""Whole numbers that a cache of one's own keeps: a counter goes on from step to step, another length is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import transformers_exporters as te
from transformers_exporters.prepare.counters import counters_as_tensors

FORMATS = ("dynamo", "onnx", "openvino", "executorch")


class Ring:
    """A ring of rows, filled from a place that Python counts."""

    def __init__(self, batch: int, length: int) -> None:
        self.length, self.seen, self.unread = length, 0, batch
        self.rows = torch.zeros(batch, length, 4)
        self.steps = {"text": 0}

    def update(self, new: torch.Tensor) -> torch.Tensor:
        """Rows [batch, count, 4] go behind the last ones, over the oldest."""
        places = (torch.arange(new.shape[1]) + self.seen) % self.length
        self.rows = self.rows.index_copy(1, places, new)
        self.seen += new.shape[1]
        self.steps["text"] += 1
        return self.rows


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(11, 4)

    def forward(self, input_ids: torch.Tensor, state: Ring) -> tuple[torch.Tensor, Ring]:
        """int64 [batch, sequence] -> float32 [batch, 4], and the state."""
        first = state.seen
        rows = state.update(self.embed(input_ids))
        return rows.cumsum(1).sum(1) + first * 10 + state.steps["text"], state


@pytest.fixture(scope="module")
def model() -> Counting:
    torch.manual_seed(0)
    return Counting().eval()


def ids(batch: int, count: int) -> torch.Tensor:
    return torch.arange(batch * count).reshape(batch, count) % 11


@pytest.mark.parametrize("format", FORMATS)
def test_a_counter_goes_on(model: Counting, format: str) -> None:
    config = {"export_format": format, "dynamic": True}
    exported = te.AutoHfExporter.from_config(config).export_model(model, {"input_ids": ids(2, 3), "state": Ring(2, 10)})
    mine, own = Ring(3, 10), Ring(3, 10)
    for count in (4, 5, 3, 1):
        wanted, mine = model(ids(3, count), mine)
        got, own = exported(input_ids=ids(3, count), state=own)
        torch.testing.assert_close(got, wanted)
        assert int(own.seen) == mine.seen and int(own.steps["text"]) == mine.steps["text"]
    assert te.verify(model, exported, {"input_ids": ids(2, 3), "state": Ring(2, 10)}).ok


def test_another_length_is_refused(model: Counting) -> None:
    exported = te.OnnxExporter().export_model(
        model, {"input_ids": ids(2, 3), "state": Ring(2, 10)}, te.OnnxConfig(dynamic=True)
    )
    with pytest.raises(te.InputError, match=r"state\.length is 20, and 10 is built into the graph"):
        exported(input_ids=ids(2, 3), state=Ring(2, 20))


def test_what_forward_changes_becomes_a_tensor_and_what_it_reads_is_named(model: Counting) -> None:
    inputs = {"input_ids": ids(2, 3), "state": Ring(2, 10)}
    before = copy.deepcopy(inputs)
    read, counters = counters_as_tensors(model, inputs)
    state: Any = inputs["state"]
    assert read == {"state.length": 10} and counters == {(Ring, "seen")}
    assert isinstance(state.seen, torch.Tensor) and isinstance(state.steps["text"], torch.Tensor)
    assert state.unread == before["state"].unread
    assert "__getattribute__" not in vars(Ring)


def test_without_an_object_nothing_runs() -> None:
    class Never(torch.nn.Module):
        def forward(self, x: torch.Tensor, steps: int) -> torch.Tensor:
            raise AssertionError

    assert counters_as_tensors(Never(), {"x": torch.ones(2), "steps": 3}) == ({}, frozenset())
