"""The run door: numpy and OpenVINO alone, results of the caller's own, errors that say what to do."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from transformers_exporters import OpenVINOConfig, OpenVINOExporter
from transformers_exporters.artifact.store import open_artifact
from transformers_exporters.backends.openvino.run import open_session
from transformers_exporters.errors import ArtifactError, ConfigError, InputError


class Doubles(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: Any) -> Any:
    directory = tmp_path_factory.mktemp("run") / "artifact"
    OpenVINOExporter().export_model(Doubles(), {"x": torch.randn(2, 3)}, OpenVINOConfig(dynamic=True)).save_pretrained(
        directory
    )
    return directory


def test_no_torch_is_imported(artifact: Any) -> None:
    code = f"""
import sys, numpy as np
from pathlib import Path
from transformers_exporters.artifact.store import open_artifact
from transformers_exporters.backends.openvino.run import open_session
root, manifest = open_artifact(Path({str(artifact)!r}))
session = open_session(root, manifest.components["model"])
y = session.run({{"x": np.ones((5, 3), np.float32)}})
assert next(iter(y.values())).tolist() == [[3.0] * 3] * 5
assert not {{"torch", "transformers"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_results_outlive_the_next_call(artifact: Any) -> None:
    root, manifest = open_artifact(artifact)
    session = open_session(root, manifest.components["model"], threads=1)
    name = manifest.components["model"].outputs[0].name
    first = session.run({"x": np.ones((2, 3), np.float32)})[name]
    session.run({"x": np.zeros((2, 3), np.float32)})
    assert first.tolist() == [[3.0] * 3] * 2
    transposed = np.arange(6, dtype=np.float32).reshape(3, 2).T
    assert session.run({"x": transposed})[name].tolist() == (transposed * 2 + 1).tolist()


class Pools(torch.nn.Module):
    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """x [n, 4], rows bool [n] -> the rows that are meant, pooled: [kept, 2]."""
        return torch.nn.functional.avg_pool1d(x[rows].unsqueeze(1), 2).squeeze(1)


def test_an_error_of_the_engine_is_raised_with_one_thread_too(tmp_path: Any) -> None:
    feeds = {"x": torch.randn(3, 4), "rows": torch.ones(3, dtype=torch.bool)}
    OpenVINOExporter().export_model(Pools(), feeds, OpenVINOConfig(dynamic=True)).save_pretrained(tmp_path / "pools")
    root, manifest = open_artifact(tmp_path / "pools")
    session = open_session(root, manifest.components["model"], threads=1)
    session.run({name: tensor.numpy() for name, tensor in feeds.items()})
    with pytest.raises(InputError, match="cannot run 'model' on these inputs"):
        session.run({"x": np.zeros((3, 4), np.float32), "rows": np.zeros(3, bool)})


class Passes(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"same": torch.cat([x]), "of_bytes": mask.bool(), "twice": x * 2}


def test_no_result_is_written_into_an_earlier_input(tmp_path: Any) -> None:
    feeds = {"x": torch.randn(2, 3), "mask": torch.ones(2, 3, dtype=torch.uint8)}
    exported = OpenVINOExporter().export_model(Passes(), feeds, OpenVINOConfig(dynamic=True))
    session = exported.components["model"]
    given = []
    for rows in (2, 4, 4, 4, 3, 3, 4, 4):
        x = np.random.default_rng(len(given)).normal(size=(rows, 3)).astype(np.float32)
        mask = (x > 0).astype(np.uint8)
        given.append((x, x.copy(), mask, mask.copy()))
        results = session.run({"x": x, "mask": mask})
        assert np.array_equal(results["same"], x)
        assert np.array_equal(results["of_bytes"], mask.astype(bool))
    for x, x_before, mask, mask_before in given:
        assert np.array_equal(x, x_before)
        assert np.array_equal(mask, mask_before)


def test_calls_of_several_threads(artifact: Any) -> None:
    root, manifest = open_artifact(artifact)
    session = open_session(root, manifest.components["model"], threads=1)
    name = manifest.components["model"].outputs[0].name

    def right(size: int) -> bool:
        x = np.full((size, 3), size, np.float32)
        return all(np.array_equal(session.run({"x": x})[name], x * 2 + 1) for _ in range(100))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(1, 9)))


def test_an_unknown_device_and_a_broken_graph_are_errors(artifact: Any, tmp_path: Any) -> None:
    root, manifest = open_artifact(artifact)
    with pytest.raises(ConfigError, match="no device 'TPU'"):
        open_session(root, manifest.components["model"], device="tpu")
    for file in manifest.components["model"].files:
        (tmp_path / file).write_bytes(b"nothing")
    with pytest.raises(ArtifactError, match="cannot open model.xml"):
        open_session(tmp_path, manifest.components["model"])


def test_beam_idx_is_refused_without_state(artifact: Any) -> None:
    root, manifest = open_artifact(artifact)
    session = open_session(root, manifest.components["model"])
    with pytest.raises(InputError, match="not stateful"):
        session.run({"x": np.ones((2, 3), np.float32)}, beam_idx=[0, 1])
