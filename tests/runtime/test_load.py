import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from transformers_exporters.errors import ArtifactError, ConfigError, InputError
from transformers_exporters.runtime.load import load

pytest.importorskip("onnxruntime")

IDS = np.array([[1, 2, 3], [4, 5, 6]])
EMPTY = np.zeros((2, 0, 4), np.float32)


def cache(keys: np.ndarray) -> dict:
    return {"layers": [{"keys": keys}]}


def test_a_loop_over_nested_kwargs_computes_what_the_graph_says(artifact: Path, step) -> None:
    runtime = load(artifact, threads=1)
    past, keys = cache(EMPTY), EMPTY
    for ids in (IDS, IDS[:, :1], IDS[:, :2]):
        outputs = runtime(input_ids=ids, cache=past, use_cache=True)
        logits, keys = step(ids, keys)
        assert list(outputs) == ["logits", "cache", "loss"]
        assert outputs["loss"] is None
        np.testing.assert_allclose(outputs["logits"], logits, rtol=1e-5, atol=1e-5)
        past = outputs["cache"]
        np.testing.assert_array_equal(past["layers"][0]["keys"], keys)


def test_a_tensor_may_be_given_by_its_full_name(artifact: Path, step) -> None:
    outputs = load(artifact)(**{"input_ids": IDS, "cache.layers.0.keys": EMPTY})
    np.testing.assert_allclose(outputs["logits"], step(IDS, EMPTY)[0], rtol=1e-5, atol=1e-5)


def test_components_are_reached_by_name_and_opened_when_called(pair: Path, step) -> None:
    runtime = load(pair)
    assert list(runtime) == ["prefill", "decode"]
    assert "decode" in runtime
    outputs = runtime["decode"](input_ids=IDS.astype(np.int32), cache=cache(EMPTY))
    np.testing.assert_allclose(outputs["logits"], step(IDS, EMPTY)[0], rtol=1e-5, atol=1e-5)
    assert "session" in vars(runtime["decode"])
    assert "session" not in vars(runtime["prefill"])
    with pytest.raises(InputError, match=r"several components \(prefill, decode\); call one"):
        runtime(input_ids=IDS)
    with pytest.raises(InputError, match="no component 'encoder'; the artifact has prefill, decode"):
        runtime["encoder"]


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"use_cache": False}, "use_cache was exported as True and cannot be False now"),
        ({"cache": {"layers": []}}, "decode needs the input 'cache.layers.0.keys', float32"),
        ({"cache": cache(EMPTY[:1])}, "cache.layers.0.keys has 1 along axis 0"),
        ({"cache": cache(np.zeros((2, 33, 4), np.float32))}, "cache.layers.0.keys has 33 .*0 to 32 is allowed"),
        ({"cache": {"layers": [{"keys": EMPTY}, {"keys": EMPTY}]}}, "no input 'cache.layers.1'"),
        ({"input_id": IDS}, "no input 'input_id'; did you mean 'input_ids'?"),
        ({"input_ids": None}, "needs the input 'input_ids'"),
        ({"input_ids": IDS * 1.0}, "input_ids must be int64, got float64"),
        ({"output_attentions": True}, "no input 'output_attentions'"),
    ],
)
def test_a_wrong_call_is_refused_by_name(artifact: Path, kwargs: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(artifact)(**{"input_ids": IDS, "cache": cache(EMPTY), **kwargs})


def test_a_flag_that_asks_for_no_more_is_no_input(artifact: Path) -> None:
    """Pipelines pass `use_cache=False` to what returns a cache whether it was exported with the flag or not."""
    given = {"input_ids": IDS, "cache": cache(EMPTY)}
    wanted = load(artifact)(**given)
    got = load(artifact)(**given, output_attentions=False, output_hidden_states=False)
    np.testing.assert_array_equal(got["logits"], wanted["logits"])


def test_a_damaged_artifact_and_an_unknown_format_are_refused(artifact: Path) -> None:
    manifest = artifact / "manifest.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "format": "tflite"}))
    with pytest.raises(ConfigError, match="Unknown export format 'tflite'"):
        load(artifact)(input_ids=IDS, cache=cache(EMPTY))
    (artifact / "decode.onnx").write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"decode.onnx has 0 bytes"):
        load(artifact)


def test_a_session_that_speaks_torch_takes_and_returns_numpy(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    component = load(artifact)["decode"]

    class Doubling:
        spec, arrays = component.spec, "torch"

        def run(self, feeds: dict) -> dict:
            assert all(isinstance(value, torch.Tensor) for value in feeds.values())
            return {
                "logits": feeds["input_ids"].to(torch.bfloat16) * 2,
                "cache.layers.0.keys": feeds["cache.layers.0.keys"],
            }

    monkeypatch.setitem(vars(component), "session", Doubling())
    frozen = IDS.copy()
    frozen.flags.writeable = False
    outputs = component(input_ids=frozen, cache=cache(EMPTY))
    assert outputs["logits"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(outputs["logits"].astype(np.int64), IDS * 2)
    assert isinstance(outputs["cache"]["layers"][0]["keys"], np.ndarray)


@pytest.mark.parametrize("module", ["runtime.load", "backends.onnx.run", "artifact.store", "doors"])
def test_importing_reaches_neither_torch_nor_transformers(module: str) -> None:
    code = (
        f"import sys, transformers_exporters.{module}\n"
        "print([name for name in ('torch', 'transformers', 'onnx', 'onnxruntime') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
