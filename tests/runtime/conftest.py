"""A hand-made ONNX artifact: what a decode step looks like on disk, without any exporter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from transformers_exporters.artifact.manifest import Manifest, ModelRecord
from transformers_exporters.artifact.spec import AxisRange, ComponentSpec, TensorSpec
from transformers_exporters.artifact.store import record_files, write_manifest, writing
from transformers_exporters.artifact.weights import TensorSource, read_safetensors_index, write_safetensors

#: [vocabulary, hidden]
EMBEDDING = np.random.default_rng(0).normal(size=(11, 4)).astype(np.float32)


Step = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """An artifact with the one component `decode`."""
    save_artifact(tmp_path / "artifact")
    return tmp_path / "artifact"


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """An artifact with the components `prefill` and `decode`."""
    save_artifact(tmp_path / "pair", ("prefill", "decode"))
    return tmp_path / "pair"


@pytest.fixture
def step() -> Step:
    """What the graph computes: (ids, keys) -> (logits, keys)."""
    return expected


def save_artifact(directory: Path, components: tuple[str, ...] = ("decode",)) -> None:
    """Write an artifact: keys' = [keys, embedding[input_ids]], logits = keys' summed over length, times embedding^T."""
    with writing(directory) as staging:
        weights = staging / "weights.safetensors"
        write_safetensors(weights, [TensorSource("embed", "float32", EMBEDDING.shape, EMBEDDING.tobytes)])
        for name in components:
            _save_graph(staging / f"{name}.onnx", weights)
        manifest = Manifest(
            format="onnx",
            components={name: _spec(name) for name in components},
            files=record_files(staging),
            model=ModelRecord("tests.Model", "tests.Config", "", EMBEDDING.size, "float32"),
            generation={"cache_argument": "cache", "static": False},
        )
        write_manifest(staging, manifest)


def expected(ids: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(logits [batch, vocabulary], keys [batch, cache + sequence, hidden])."""
    keys = np.concatenate([keys, EMBEDDING[ids]], 1)
    return keys.sum(1) @ EMBEDDING.T, keys


def _spec(name: str) -> ComponentSpec:
    keys = TensorSpec("cache.layers.0.keys", "input.cache.layers.0.keys", "float32", ("batch", "cache", 4))
    cache = {"object": "tests.Cache", "fields": {"layers": {"list": [{"dict": {"keys": {"leaf": 1}}}]}}}
    return ComponentSpec(
        name=name,
        inputs=(TensorSpec("input_ids", "input_ids", "int64", ("batch", "sequence")), keys),
        outputs=(
            TensorSpec("logits", "logits", "float32", ("batch", 11)),
            TensorSpec(keys.name, "output.cache.layers.0.keys", "float32", ("batch", "cache + sequence", 4)),
        ),
        axes={"batch": AxisRange(), "sequence": AxisRange(), "cache": AxisRange(0, 32)},
        input_structure={"dict": {"input_ids": {"leaf": 0}, "cache": cache, "use_cache": {"value": True}}},
        output_structure={
            "object": "tests.Output",
            "fields": {"logits": {"leaf": 0}, "cache": cache, "loss": {"value": None}},
        },
        state=((keys.name, keys.name),),
        constants={"use_cache": True},
        files=(f"{name}.onnx", "weights.safetensors"),
    )


def _save_graph(file: Path, weights: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, external = onnx.helper, onnx.TensorProto.EXTERNAL
    ref = read_safetensors_index(weights)["embed"]
    embed = onnx.TensorProto(name="embed", data_type=1, dims=ref.shape, data_location=external)
    for key, value in (("location", weights.name), ("offset", str(ref.offset)), ("length", str(ref.length))):
        embed.external_data.add(key=key, value=value)
    nodes = [
        helper.make_node("Gather", ["embed", "input_ids"], ["embedded"]),
        helper.make_node("Concat", ["input.cache.layers.0.keys", "embedded"], ["output.cache.layers.0.keys"], axis=1),
        helper.make_node("ReduceSum", ["output.cache.layers.0.keys", "length_axis"], ["summed"], keepdims=0),
        helper.make_node("Transpose", ["embed"], ["embed_t"]),
        helper.make_node("MatMul", ["summed", "embed_t"], ["logits"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        file.stem,
        [value("input_ids", 7, ["batch", "sequence"]), value("input.cache.layers.0.keys", 1, ["batch", "cache", 4])],
        [value("logits", 1, ["batch", 11]), value("output.cache.layers.0.keys", 1, ["batch", "total", 4])],
        initializer=[embed, helper.make_tensor("length_axis", 7, [1], [1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    file.write_bytes(model.SerializeToString())
