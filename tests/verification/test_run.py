"""`verify` compares with eager at untraced sizes, finds what differs, and leaves the model alone."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from transformers_exporters import DynamoConfig, DynamoExporter, OnnxConfig, OnnxExporter, VerificationError, verify
from transformers_exporters.verification import Report, Row
from transformers_exporters.verification.comparison import error_of

pytestmark = pytest.mark.filterwarnings("ignore")


def _model(seed: int) -> BertModel:
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64)
    return BertModel(config).eval()


@pytest.fixture(scope="module")
def model() -> BertModel:
    return _model(0)


@pytest.fixture(scope="module")
def artifact(model: BertModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    inputs = {"input_ids": torch.tensor([[3, 4, 5]]), "attention_mask": torch.ones(1, 3, dtype=torch.int64)}
    directory = tmp_path_factory.mktemp("artifact") / "bert"
    DynamoExporter().export_model(model, inputs, DynamoConfig(dynamic=True)).save_pretrained(directory)
    return directory


def test_compares_every_output_at_other_sizes(model: BertModel, artifact: Path) -> None:
    report = verify(model, artifact, trust_remote_code=True)
    report.check()
    assert {row.output for row in report.rows} == {"last_hidden_state", "pooler_output"}
    cases = {row.case for row in report.rows}
    assert len({case.partition(",")[0] for case in cases}) >= 3, "at least two batch sizes beside the given one"
    assert len({case.partition(", ")[2] for case in cases}) >= 3, "at least two lengths beside the given one"
    written = json.loads((artifact / "manifest.json").read_text())["verification"]
    assert {row["output"] for row in written} == {"last_hidden_state", "pooler_output"}
    assert all(row["ok"] for row in written)


def test_another_model_is_found(artifact: Path) -> None:
    report = verify(_model(1), artifact, trust_remote_code=True)
    assert not report.ok
    with pytest.raises(VerificationError, match=r"^model: .* differs from the model's by"):
        report.check()
    assert not json.loads((artifact / "manifest.json").read_text())["verification"][0]["ok"]


def test_the_model_and_inputs_stay(model: BertModel, artifact: Path) -> None:
    inputs = {"input_ids": torch.tensor([[3, 4, 5], [6, 7, 8]]), "attention_mask": torch.ones(2, 3, dtype=torch.int64)}
    state, given = copy.deepcopy(model.state_dict()), copy.deepcopy(inputs)
    config = model.config.to_dict()
    verify(model, artifact, inputs, trust_remote_code=True)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert model.config.to_dict() == config
    assert list(inputs) == list(given)
    assert all(torch.equal(inputs[name], given[name]) for name in inputs)


@pytest.mark.parametrize(
    ("wanted", "got", "relative"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), 0.25),
        (torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0]]), math.inf),
        (torch.tensor([1.0, 2.0]), torch.tensor([1, 2]), math.inf),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, math.nan]), math.inf),
        (torch.tensor([1.0, -math.inf]), torch.tensor([1.0, -3e38]), 0.0),
        (torch.tensor([True]), torch.tensor([False]), 1.0),
        (torch.zeros(0, 3), torch.zeros(0, 3), 0.0),
        (torch.zeros(2), None, math.inf),
    ],
)
def test_error_of_an_output(wanted: torch.Tensor, got: torch.Tensor | None, relative: float) -> None:
    assert error_of(wanted, got)[1] == pytest.approx(relative)


def test_nothing_compared_is_no_success() -> None:
    report = Report((), ("model: batch=1",))
    assert not report.ok
    with pytest.raises(VerificationError, match="Nothing was compared"):
        report.check()


def test_the_worst_row_of_an_output_is_kept() -> None:
    rows = [
        Row("model", "logits", f"batch={n}", error, error, 1e-3, error <= 1e-3) for n, error in ((1, 1e-6), (2, 0.5))
    ]
    report = Report(tuple(rows))
    assert [row.case for row in report.worst()] == ["batch=2"]
    assert report.to_dict()["ok"] is False


class Deciding(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [batch, 4]."""
        return x * 2 if x.abs().sum() > 0 else x


def test_what_a_graph_says_about_its_assumptions_is_no_output_of_the_model() -> None:
    inputs = {"x": torch.randn(3, 4)}
    exported = OnnxExporter().export_model(Deciding(), inputs, OnnxConfig(dynamic=True))
    report = verify(Deciding(), exported, inputs)
    assert report.rows
    assert all(row.ok for row in report.rows)
