"""Bad input gets one sentence that says what to do, and leaves nothing half-written."""

import pytest
import torch

import transformers_exporters as te
from models import bert, ids


@pytest.fixture(scope="module")
def exported():
    inputs = {"input_ids": ids(2, 7), "attention_mask": torch.ones(2, 7, dtype=torch.long)}
    return te.OnnxExporter().export_model(bert(), inputs, config=te.OnnxConfig(dynamic=True))


def mask(batch, length):
    return torch.ones(batch, length, dtype=torch.long)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"input_ids": ids(2, 7)}, "attention_mask"),
        ({"input_id": ids(2, 7), "attention_mask": mask(2, 7)}, "did you mean 'input_ids'"),
        ({"input_ids": ids(2, 7).float(), "attention_mask": mask(2, 7)}, "must be int64"),
        ({"input_ids": ids(2, 7)[0], "attention_mask": mask(2, 7)}, "2 axes"),
        ({"input_ids": ids(2, 7), "attention_mask": mask(3, 7)}, "batch"),
    ],
)
def test_wrong_inputs_are_named(exported, inputs, said):
    with pytest.raises(te.InputError, match=said):
        exported(**inputs)


def test_int32_ids_are_cast(exported):
    inputs = {"input_ids": ids(2, 7), "attention_mask": mask(2, 7)}
    wanted = exported(**inputs).last_hidden_state
    got = exported(**{name: value.int() for name, value in inputs.items()}).last_hidden_state
    assert torch.equal(wanted, got)


def test_configs_are_checked():
    with pytest.raises(te.ConfigError, match="OnnxConfig"):
        te.OnnxExporter().export(bert(), {"input_ids": ids(2, 7)}, config=te.DynamoConfig())
    with pytest.raises(te.ConfigError, match="dinamic"):
        te.OnnxConfig.from_dict({"dinamic": True})
    with pytest.raises(te.ConfigError, match="18 to"):
        te.OnnxConfig(opset_version=9)
    with pytest.raises(te.ConfigError, match="dynamo, onnx, openvino, executorch"):
        te.AutoExportConfig.from_dict({"export_format": "tensorflow"})


def test_explicit_shapes_survive_json():
    config = te.OnnxConfig(dynamic_shapes={"input_ids": {0: torch.export.Dim("batch", min=1, max=8), 1: None}})
    again = te.OnnxConfig.from_dict(config.to_dict())
    dim = again.dynamic_shapes["input_ids"][0]
    assert (dim.__name__, dim.min, dim.max) == ("batch", 1, 8) and again.to_dict() == config.to_dict()


def test_inputs_that_are_no_inputs():
    with pytest.raises(te.InputError, match="no tensor"):
        te.OnnxExporter().export(bert(), {"use_cache": False})
    with pytest.raises(te.InputError, match="dict"):
        te.OnnxExporter().export(bert(), [ids(2, 7)])


def test_a_directory_that_holds_something_else_is_refused_and_untouched(exported, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(te.ArtifactError, match="choose"):
        exported.save_pretrained(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_pt2_is_not_unpickled_without_trust(tmp_path):
    te.DynamoExporter().export_model(bert(), {"input_ids": ids(2, 7)}).save_pretrained(tmp_path / "artifact")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "artifact")
    with pytest.raises(te.ArtifactError, match="trust_remote_code"):
        loaded(input_ids=ids(2, 7))
