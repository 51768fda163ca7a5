from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

from transformers_exporters.artifact.spec import ComponentSpec, TensorSpec  # noqa: E402
from transformers_exporters.artifact.weights import (  # noqa: E402
    TensorSource,
    read_safetensors_index,
    write_safetensors,
)
from transformers_exporters.backends.onnx.run import OnnxSession, open_session  # noqa: E402
from transformers_exporters.doors import find_backend  # noqa: E402
from transformers_exporters.errors import ArtifactError, ConfigError, InputError, MissingBackendError  # noqa: E402


def save(directory: Path, nodes: list, inputs: list, outputs: list, initializers: list | tuple = ()) -> None:
    values = [[helper.make_tensor_value_info(*value) for value in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "graph", *values, initializer=list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (directory / "model.onnx").write_bytes(model.SerializeToString())


def identity(directory: Path, dtype: str, code: int) -> OnnxSession:
    save(directory, [helper.make_node("Identity", ["x"], ["y"])], [("x", code, ["n", 2])], [("y", code, ["n", 2])])
    tensors = TensorSpec("x", "x", dtype, ("n", 2)), TensorSpec("y", "y", dtype, ("n", 2))
    return open_session(directory, ComponentSpec("model", tensors[:1], tensors[1:], files=("model.onnx",)))


@pytest.mark.parametrize(
    "dtype, code",
    [
        ("float32", TensorProto.FLOAT),
        ("float16", TensorProto.FLOAT16),
        ("float64", TensorProto.DOUBLE),
        ("bfloat16", TensorProto.BFLOAT16),
        ("float8_e4m3fn", TensorProto.FLOAT8E4M3FN),
        ("float8_e5m2", TensorProto.FLOAT8E5M2),
        ("int64", TensorProto.INT64),
        ("int8", TensorProto.INT8),
        ("bool", TensorProto.BOOL),
    ],
)
def test_every_dtype_goes_in_and_comes_out(tmp_path: Path, dtype: str, code: int) -> None:
    session = identity(tmp_path, dtype, code)
    x = np.array([[1, 0], [0, 1], [1, 1]]).astype(getattr(ml_dtypes, dtype, dtype))
    y = session.run({"x": x})["y"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)
    assert session.run({"x": x[:0]})["y"].shape == (0, 2)
    strided = np.asfortranarray(x)
    np.testing.assert_array_equal(session.run({"x": strided})["y"], x)


def test_outputs_outlive_the_session_and_the_next_run(tmp_path: Path) -> None:
    session = identity(tmp_path, "float32", TensorProto.FLOAT)
    first = session.run({"x": np.full((500, 2), 1, np.float32)})["y"]
    for value in range(2, 20):
        session.run({"x": np.full((500, 2), value, np.float32)})
    del session
    np.testing.assert_array_equal(first, np.full((500, 2), 1, np.float32))


def test_weights_are_read_from_a_safetensors_file_beside_the_graph(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    other = np.arange(5, dtype=np.float32)
    file = tmp_path / "weights.safetensors"
    write_safetensors(
        file,
        [TensorSource("other", "float32", (5,), other.tobytes), TensorSource("w", "float32", (4, 3), weight.tobytes)],
    )
    ref = read_safetensors_index(file)["w"]
    stored = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", file.name), ("offset", str(ref.offset)), ("length", str(ref.length))):
        stored.external_data.add(key=key, value=value)
    save(
        tmp_path,
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", TensorProto.FLOAT, ["n", 4])],
        [("y", TensorProto.FLOAT, ["n", 3])],
        [stored],
    )
    spec = ComponentSpec(
        "model",
        (TensorSpec("x", "x", "float32", ("n", 4)),),
        (TensorSpec("y", "y", "float32", ("n", 3)),),
        files=("model.onnx", "weights.safetensors"),
    )
    x = np.random.default_rng(1).normal(size=(7, 4)).astype(np.float32)
    y = open_session(tmp_path, spec, threads=1).run({"x": x})["y"]
    np.testing.assert_allclose(y, x @ weight, rtol=1e-6, atol=1e-6)


CACHE = ("batch", 2000)


def decode_spec(dtype: str = "float32", **changes: object) -> ComponentSpec:
    """A cache that one row is written to, and a counter that the graph also reads after its new value is known."""
    spec = ComponentSpec(
        "decode",
        (
            TensorSpec("keys", "input.keys", dtype, CACHE),
            TensorSpec("position", "input.position", "int64", (1,)),
            TensorSpec("update", "update", dtype, ("batch", "length")),
        ),
        (
            TensorSpec("total", "total", dtype, ("batch", 1)),
            TensorSpec("keys", "output.keys", dtype, CACHE),
            TensorSpec("position", "output.position", "int64", (1,)),
        ),
        state=(("keys", "keys"), ("position", "position")),
        files=("model.onnx",),
    )
    return replace(spec, **changes)


def save_decode(directory: Path, code: int = TensorProto.FLOAT) -> None:
    """keys[:, position:position + length] = update; position += length; total = sum(keys)."""
    constants = [
        helper.make_tensor("one", TensorProto.INT64, [1], [1]),
        helper.make_tensor("start", TensorProto.INT64, [], [0]),
        helper.make_tensor("step", TensorProto.INT64, [], [1]),
        helper.make_tensor("none", TensorProto.INT64, [0], []),
        helper.make_tensor("columns_last", TensorProto.INT64, [1], [1]),
    ]
    nodes = [
        helper.make_node("Shape", ["update"], ["length"], start=1, end=2),
        # The new position comes first in the graph, and the old one is read after it.
        helper.make_node("Add", ["input.position", "length"], ["output.position"]),
        helper.make_node("Squeeze", ["length"], ["length_scalar"]),
        helper.make_node("Range", ["start", "length_scalar", "step"], ["steps"]),
        helper.make_node("Add", ["steps", "input.position"], ["columns"]),
        helper.make_node("Shape", ["update"], ["update_shape"]),
        helper.make_node("Expand", ["columns", "update_shape"], ["indices"]),
        helper.make_node("ScatterElements", ["input.keys", "indices", "update"], ["output.keys"], axis=1),
        helper.make_node("ReduceSum", ["output.keys", "columns_last"], ["total"]),
    ]
    save(
        directory,
        nodes,
        [
            ("input.keys", code, ["batch", 2000]),
            ("input.position", TensorProto.INT64, [1]),
            ("update", code, ["batch", "n"]),
        ],
        [
            ("total", code, ["batch", 1]),
            ("output.keys", code, ["batch", 2000]),
            ("output.position", TensorProto.INT64, [1]),
        ],
        constants,
    )


def test_bound_state_is_updated_in_place_over_a_loop(tmp_path: Path) -> None:
    save_decode(tmp_path)
    session = open_session(tmp_path, decode_spec(), threads=1)
    keys, position = np.zeros((3, 2000), np.float32), np.zeros(1, np.int64)
    addresses = keys.ctypes.data, position.ctypes.data
    expected = np.zeros_like(keys)
    totals = []
    for step, length in enumerate([5, 1, 1, 3]):
        at = int(position[0])
        update = np.full((3, length), step + 1, np.float32)
        expected[:, at : at + length] = update
        outputs = session.run_bound({"update": update}, {"keys": keys, "position": position})
        assert outputs["keys"] is keys
        assert outputs["position"] is position
        assert (keys.ctypes.data, position.ctypes.data) == addresses
        np.testing.assert_array_equal(keys, expected)
        assert position[0] == at + length
        totals.append(outputs["total"])
    # Each step's other outputs have their own memory: an earlier one is not overwritten by a later run.
    np.testing.assert_array_equal(np.concatenate(totals, 1), [[5, 7, 10, 22]] * 3)


def test_bound_and_plain_runs_agree(tmp_path: Path) -> None:
    save_decode(tmp_path)
    session = open_session(tmp_path, decode_spec())
    rng = np.random.default_rng(0)
    keys, update = rng.normal(size=(2, 2000)).astype(np.float32), rng.normal(size=(2, 4)).astype(np.float32)
    plain = session.run({"keys": keys, "position": np.array([7]), "update": update})
    kept = keys.copy()
    bound = session.run_bound({"update": update}, {"keys": kept, "position": np.array([7])})
    for name, value in plain.items():
        np.testing.assert_array_equal(bound[name], value)
    assert plain["position"][0] == 11


def test_a_step_copies_no_state(tmp_path: Path) -> None:
    """The engine must write into the buffer itself: a write to other memory would leave a new array behind."""
    save_decode(tmp_path)
    session = open_session(tmp_path, decode_spec())
    keys = np.zeros((1, 2000), np.float32)
    session.run_bound({"update": np.ones((1, 1), np.float32)}, {"keys": keys, "position": np.array([0])})
    values = dict(zip(["total", "keys", "position"], session._bound.binding.get_outputs(), strict=True))
    assert values["keys"].data_ptr() == keys.ctypes.data
    assert list(session._bound.in_place) == ["keys"]
    assert list(session._bound.copied) == ["position"]


def test_the_lowering_decides_what_is_safe_in_place(tmp_path: Path) -> None:
    save_decode(tmp_path)
    keys, position = np.zeros((1, 2000), np.float32), np.array([0])
    for listed in ([], ["keys"]):
        session = open_session(tmp_path, decode_spec(options={"in_place": listed}))
        session.run_bound({"update": np.ones((1, 2), np.float32)}, {"keys": keys, "position": position})
        assert list(session._bound.in_place) == listed
    assert position[0] == 4
    assert keys[0, :5].tolist() == [1, 1, 1, 1, 0]


def test_other_buffers_are_bound_anew_and_part_of_the_state_may_be_fed(tmp_path: Path) -> None:
    save_decode(tmp_path)
    session = open_session(tmp_path, decode_spec())
    for batch in (1, 4):
        keys = np.zeros((batch, 2000), np.float32)
        feeds = {"update": np.ones((batch, 1), np.float32), "position": np.array([3])}
        outputs = session.run_bound(feeds, {"keys": keys})
        assert keys[:, 3].tolist() == [1] * batch
        assert outputs["position"].tolist() == [4]
        assert feeds["position"].tolist() == [3]


def test_16_bit_state_is_bound(tmp_path: Path) -> None:
    code = TensorProto.BFLOAT16
    save(
        tmp_path,
        [
            helper.make_node("Identity", ["update"], ["seen"]),
            helper.make_node("ScatterND", ["input.keys", "at", "update"], ["output.keys"]),
        ],
        [("input.keys", code, [4000]), ("at", TensorProto.INT64, ["n", 1]), ("update", code, ["n"])],
        [("seen", code, ["n"]), ("output.keys", code, [4000])],
    )
    keys = TensorSpec("keys", "input.keys", "bfloat16", (4000,))
    spec = ComponentSpec(
        "decode",
        (keys, TensorSpec("at", "at", "int64", ("n", 1)), TensorSpec("update", "update", "bfloat16", ("n",))),
        (TensorSpec("seen", "seen", "bfloat16", ("n",)), replace(keys, port="output.keys")),
        state=(("keys", "keys"),),
        files=("model.onnx",),
    )
    session = open_session(tmp_path, spec)
    buffer, update = np.zeros(4000, ml_dtypes.bfloat16), np.array([1.5, -2], ml_dtypes.bfloat16)
    outputs = session.run_bound({"at": np.array([[1], [3]]), "update": update}, {"keys": buffer})
    assert buffer[:4].tolist() == [0, 1.5, 0, -2]
    np.testing.assert_array_equal(outputs["seen"], update)


def test_torch_tensors_and_ort_values_are_buffers_too(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import onnxruntime

    save_decode(tmp_path)
    session = open_session(tmp_path, decode_spec())
    keys, position = torch.zeros(1, 2000), torch.tensor([2])
    session.run_bound({"update": np.ones((1, 1), np.float32)}, {"keys": keys, "position": position})
    assert keys[0, :4].tolist() == [0, 0, 1, 0]
    assert position.tolist() == [3]
    values = {
        "keys": onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, 2000), np.float32)),
        "position": onnxruntime.OrtValue.ortvalue_from_numpy(np.array([2])),
    }
    session.run_bound({"update": np.ones((1, 1), np.float32)}, values)
    assert values["keys"].numpy()[0, :4].tolist() == [0, 0, 1, 0]
    assert values["position"].numpy().tolist() == [3]


def frozen() -> np.ndarray:
    array = np.zeros((1, 2000), np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "buffers, message",
    [
        ({"update": np.zeros((1, 1), np.float32)}, "update is no state of decode; its state is keys, position"),
        ({"keys": np.zeros((1, 1000), np.float32)}, r"buffer of keys must be float32 \['batch', 2000\], got .*1000"),
        ({"keys": np.zeros((1, 2000), np.float16)}, "buffer of keys must be float32 .* got float16"),
        ({"keys": np.zeros(2000, np.float32)}, "buffer of keys must be float32"),
        ({"keys": np.zeros((2000, 1), np.float32).T[:, ::2]}, "writeable and C-contiguous"),
        ({"keys": frozen()}, "writeable and C-contiguous"),
        ({"keys": [0.0]}, "numpy array, a torch tensor or an OrtValue"),
    ],
)
def test_a_buffer_that_cannot_be_bound_is_refused(tmp_path: Path, buffers: dict, message: str) -> None:
    save_decode(tmp_path)
    session = open_session(tmp_path, decode_spec())
    with pytest.raises(InputError, match=message):
        session.run_bound({}, buffers)


def test_state_that_grows_cannot_be_bound(tmp_path: Path) -> None:
    save_decode(tmp_path)
    spec = decode_spec()
    grown = replace(spec.outputs[1], shape=("batch", "2000 + length"))
    session = open_session(tmp_path, replace(spec, outputs=(spec.outputs[0], grown, spec.outputs[2])))
    with pytest.raises(
        InputError, match="keys goes in as .*: it cannot stay in one buffer; export with a static cache"
    ):
        session.run_bound({}, {"keys": np.zeros((1, 2000), np.float32)})


def test_options(tmp_path: Path) -> None:
    import onnxruntime

    save_decode(tmp_path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = open_session(tmp_path, decode_spec(), session_options=options, providers=["CPUExecutionProvider"])
    assert session.engine.get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(ConfigError, match="intra_op_num_threads"):
        open_session(tmp_path, decode_spec(), session_options=options, threads=2)
    with pytest.raises(ConfigError, match="not 'tpu'"):
        open_session(tmp_path, decode_spec(), device="tpu")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        with pytest.raises(MissingBackendError, match="onnxruntime-gpu"):
            open_session(tmp_path, decode_spec(), device="cuda:0")
        with pytest.raises(MissingBackendError, match="no CUDAExecutionProvider; it has "):
            open_session(tmp_path, decode_spec(), providers=[("CUDAExecutionProvider", {"device_id": 0})])
        open_session(tmp_path, decode_spec(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])


def test_a_graph_that_is_broken_or_not_the_manifests_is_refused(tmp_path: Path) -> None:
    save_decode(tmp_path)
    spec = decode_spec()
    with pytest.raises(ArtifactError, match=r"inputs of model.onnx are not those of the manifest"):
        open_session(tmp_path, replace(spec, inputs=spec.inputs[:2]))
    (tmp_path / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ArtifactError, match=r"ONNX Runtime cannot open model.onnx"):
        open_session(tmp_path, spec)


def test_without_onnxruntime_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(MissingBackendError, match=r"transformers-exporters\[onnx\]"):
        open_session(tmp_path, decode_spec())


def test_the_door_leads_here() -> None:
    assert find_backend("onnx").load("open") is open_session


def test_what_the_engine_refuses_is_an_input_error(tmp_path: Path) -> None:
    table = helper.make_tensor("table", TensorProto.FLOAT, [4, 2], [0.0] * 8)
    ids, rows = ("x", TensorProto.INT64, ["n"]), ("y", TensorProto.FLOAT, ["n", 2])
    save(tmp_path, [helper.make_node("Gather", ["table", "x"], ["y"])], [ids], [rows], [table])
    tensors = TensorSpec("x", "x", "int64", ("n",)), TensorSpec("y", "y", "float32", ("n", 2))
    session = open_session(tmp_path, ComponentSpec("model", tensors[:1], tensors[1:], files=("model.onnx",)))
    with pytest.raises(
        InputError, match="ONNX Runtime cannot run 'model' on these inputs: indices element out of data"
    ):
        session.run({"x": np.array([9])})
