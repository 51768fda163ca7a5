"""A static cache in ONNX Runtime: one buffer a tensor, written in place, at a cost of the new tokens alone."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from models import ids, left_padded
from transformers_exporters import ExportedModel
from transformers_exporters.backends.onnx.buffers import Buffer

GREEDY = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}
LAYERS = 2


@pytest.fixture
def exported(static_artifact: Path) -> ExportedModel:
    return ExportedModel.from_pretrained(static_artifact, threads=1)


def test_one_prompt_and_a_padded_batch_give_the_tokens_and_logits_of_eager(exported: ExportedModel, llama: Any) -> None:
    asked = {"return_dict_in_generate": True, "output_logits": True, **GREEDY}
    for inputs in ({"input_ids": ids(1, 11)}, left_padded(3, 11, (4, 1))):
        wanted, got = llama.generate(**inputs, **asked), exported.generate(**inputs, **asked)
        torch.testing.assert_close(got.sequences, wanted.sequences, atol=0, rtol=0)
        torch.testing.assert_close(torch.stack(got.logits), torch.stack(wanted.logits), atol=1e-5, rtol=1e-5)


def test_the_graph_writes_rows_and_copies_no_cache(static_artifact: Path) -> None:
    graph = onnx.load(static_artifact / "decode.onnx", load_external_data=False).graph
    kinds = [node.op_type for node in graph.node]
    assert kinds.count("ScatterElements") == 2 * LAYERS
    assert "ScatterND" not in kinds
    readers: dict[str, set[str]] = {}
    for node in graph.node:
        for name in node.input:
            if ".cache." in name and not name.endswith("cumulative_length"):
                readers.setdefault(name.partition(".")[0], set()).add(node.op_type)
    # The old cache is only written; of the new one the keys' Transpose is folded into the MatMul by ONNX Runtime.
    assert readers == {"input": {"ScatterElements", "Shape"}, "output": {"MatMul", "Transpose"}}


def test_the_lowering_proves_which_state_may_be_written_in_place(exported: ExportedModel) -> None:
    proved = exported["decode"].spec.options["in_place"]
    assert sorted(proved) == sorted(f"cache.layers.{i}.{part}" for i in range(LAYERS) for part in ("keys", "values"))


def test_addresses_stay_and_only_the_position_counters_are_copied(
    exported: ExportedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = exported["decode"].session
    addresses: list[dict[str, int]] = []
    copied: list[int] = []
    run, overwrite = session.run_bound, Buffer.overwrite  # type: ignore[attr-defined]

    def watched(feeds: dict[str, Any], buffers: dict[str, Any]) -> dict[str, Any]:
        addresses.append({name: buffer.data_ptr() for name, buffer in buffers.items()})
        outputs: dict[str, Any] = run(feeds, buffers)
        for old, new in session.spec.state:
            assert outputs[new] is buffers[old]
        return outputs

    def counted(self: Buffer, array: np.ndarray) -> None:
        copied.append(array.nbytes)
        overwrite(self, array)

    monkeypatch.setattr(session, "run_bound", watched)
    monkeypatch.setattr(Buffer, "overwrite", counted)
    exported.generate(**left_padded(3, 11, (4, 1)), **GREEDY)
    assert len(addresses) == GREEDY["max_new_tokens"]
    assert all(step == addresses[0] for step in addresses)
    assert len(set(addresses[0].values())) == 3 * LAYERS
    assert copied == [8] * (LAYERS * len(addresses))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_step_touches_no_more_of_the_cache_than_its_new_rows(exported: ExportedModel) -> None:
    """Pages of fresh zeros become resident when they are written: those of 200 MB of cache must not.

    The scores of four heads, in a handful of intermediate values, are what does grow with the cache.
    """
    slots = 400_000
    session = exported["decode"].session
    sizes = {"batch": 1, "cache": slots}
    buffers = {
        tensor.name: np.zeros([sizes.get(size, size) for size in tensor.shape], tensor.dtype)  # type: ignore[call-overload]
        for tensor in session.spec.inputs
        if tensor.name in dict(session.spec.state)
    }
    whole = sum(buffer.nbytes for buffer in buffers.values())
    assert whole > 200e6

    def step(position: int) -> None:
        mask = np.zeros((1, 1, 1, slots), bool)
        mask[..., : position + 1] = True
        feeds = {
            "input_ids": np.array([[7]]),
            "position_ids": np.array([[position]]),
            "attention_mask": mask,
        }
        session.run_bound(feeds, buffers)  # type: ignore[attr-defined]

    before = _resident_private()
    step(0)
    step(1)
    assert _resident_private() - before < whole / 2
    assert buffers["cache.layers.0.keys"][:, :, :2].all()
    assert not buffers["cache.layers.0.keys"][:, :, 2:100].any()
    assert int(buffers["cache.layers.1.cumulative_length"]) == 2


def _resident_private() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
