import copy
import json

import pytest

from transformers_exporters.artifact.files import FileRecord
from transformers_exporters.artifact.manifest import SCHEMA_VERSION, Manifest, ModelRecord
from transformers_exporters.artifact.spec import AxisRange, ComponentSpec, TensorSpec
from transformers_exporters.errors import ArtifactError


def decode_spec() -> ComponentSpec:
    cache = ("batch", 2, "cache", 16)
    return ComponentSpec(
        name="decode",
        inputs=(
            TensorSpec("input_ids", "input_ids", "int64", ("batch", "sequence")),
            TensorSpec("cache.layers.0.keys", "input.cache.layers.0.keys", "bfloat16", cache),
        ),
        outputs=(
            TensorSpec("logits", "logits", "float32", ("batch", "sequence", 128)),
            TensorSpec("cache.layers.0.keys", "output.cache.layers.0.keys", "bfloat16", ("batch", 2, "cache + 1", 16)),
        ),
        axes={"batch": AxisRange(), "sequence": AxisRange(1, 512, 8), "cache": AxisRange(0)},
        input_structure={
            "dict": {
                "input_ids": {"leaf": 0},
                "cache": {"object": "m.Cache", "fields": {"layers": {"list": [{"dict": {"keys": {"leaf": 1}}}]}}},
                "use_cache": {"value": True},
            }
        },
        output_structure={"tuple": [{"leaf": 0}, {"leaf": 1}, {"value": None}]},
        state=(("cache.layers.0.keys", "cache.layers.0.keys"),),
        constants={"use_cache": True, "limit": float("inf")},
        files=("decode.onnx", "weights.safetensors"),
        options={"in_place": []},
    )


def manifest() -> Manifest:
    return Manifest(
        format="onnx",
        components={"decode": decode_spec()},
        files={"decode.onnx": FileRecord("ab" * 32, 12), "weights.safetensors": FileRecord("cd" * 32, 2**33)},
        model=ModelRecord("m.Llama", "m.LlamaConfig", "org/llama", 135_000_000, "bfloat16"),
        config={"export_format": "onnx", "dynamic": True, "disabled_workarounds": []},
        packages={"torch": "2.13.0+cpu"},
        workarounds={"decode": {"trace.patches.masks": 3}},
        notes={"decode": {"delegated": 7}},
        verification=[{"output": "logits", "worst_absolute": 1e-6, "variant": [3, 9]}],
        generation={"cache_argument": "cache", "static": True, "max_cache_len": 64},
    )


def test_a_manifest_survives_the_round_trip_exactly() -> None:
    assert Manifest.from_json(manifest().to_json()) == manifest()
    nothing = Manifest(format="onnx", components={}, files={}, model=ModelRecord("m.M", "m.C", "", 0, "float32"))
    assert Manifest.from_json(nothing.to_json()) == nothing


def test_the_text_is_json_for_every_parser() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    json.loads(manifest().to_json(), parse_constant=refuse)


def test_a_newer_schema_says_to_upgrade() -> None:
    document = json.loads(manifest().to_json())
    document["schema_version"] = SCHEMA_VERSION + 1
    document["components"] = "laid out in another way"
    with pytest.raises(ArtifactError, match="pip install --upgrade transformers-exporters"):
        Manifest.from_json(json.dumps(document))


DELETE = object()


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("schema_version", DELETE, "lacks schema_version"),
        ("schema_version", "1", "schema_version: an integer is needed, got '1'"),
        ("schema_version", True, "an integer is needed, got True"),
        ("format", None, "wrong at format: a string is needed"),
        ("model.parameters", "many", "wrong at model.parameters: an integer"),
        ("model.dtype", DELETE, "lacks model.dtype"),
        ("files.decode/onnx.sha256", DELETE, "lacks files.decode.onnx.sha256"),
        ("components.decode.inputs", {}, "wrong at components.decode.inputs: a list is needed"),
        ("components.decode.inputs.0.dtype", 3, "wrong at components.decode.inputs.0.dtype: a string is needed, got 3"),
        ("components.decode.inputs.0.shape.1", -4, "inputs.0.shape.1"),
        ("components.decode.inputs.0.shape.1", 4.0, "inputs.0.shape.1"),
        ("components.decode.inputs.1.name", "input_ids", "decode.inputs: two tensors have the same name"),
        ("components.decode.axes.batch.maximum", DELETE, "lacks components.decode.axes.batch.maximum"),
        ("components.decode.state.0", ["input_ids"], "a pair"),
        ("components.decode.state.0.0", "ghost", "ghost -> cache.layers.0.keys names an unknown tensor"),
        ("components.decode.input_structure.dict.input_ids", {"leaf": 2}, "no tensor number 2"),
        ("components.decode.input_structure.dict.input_ids", {"lief": 0}, "is not a node"),
        ("components.decode.input_structure.dict.input_ids", 7, "input_structure.input_ids: an object is needed"),
        ("components.decode.output_structure", DELETE, "lacks components.decode.output_structure"),
        ("components.decode.files.0", "../decode.onnx", "'../decode.onnx', which is not a plain path"),
        ("components.decode.files.0", "other.onnx", "decode needs other.onnx, which the manifest does not list"),
        ("workarounds.decode.x", "often", "workarounds.decode.x: an integer"),
        ("verification", "passed", "wrong at verification: a list"),
    ],
)
def test_a_wrong_field_is_named(path: str, value: object, message: str) -> None:
    document = copy.deepcopy(json.loads(manifest().to_json()))
    *parents, last = path.split(".")
    node = document
    for part in parents:
        node = node[int(part)] if part.isdigit() else node[part.replace("decode/onnx", "decode.onnx")]
    if value is DELETE:
        del node[last]
    else:
        node[int(last) if last.isdigit() else last] = value
    with pytest.raises(ArtifactError, match=message):
        Manifest.from_json(json.dumps(document))


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "a//b", "./a", "", "C:/x", "a\\b", "a\0b"])
def test_a_file_name_that_could_leave_the_directory_is_refused(name: str) -> None:
    document = json.loads(manifest().to_json())
    document["files"][name] = {"sha256": "", "bytes": 0}
    with pytest.raises(ArtifactError, match="not a plain path inside the artifact"):
        Manifest.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": 1} x', "[" * 100_000])
def test_a_text_that_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(ArtifactError, match="manifest"):
        Manifest.from_json(text)


def test_a_value_that_is_not_json_is_named_when_it_is_written() -> None:
    wrong = Manifest(**{**vars(manifest()), "notes": {"decode": {"delegated": {1, 2}}}})
    with pytest.raises(ArtifactError, match="notes.decode.delegated cannot be written to the manifest: set"):
        wrong.to_json()
