"""The promise of the runtime: an artifact runs where neither torch nor transformers is installed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

CALLER = """
import importlib.util, json, sys
import numpy as np
import transformers_exporters
from transformers_exporters.runtime.load import load

assert importlib.util.find_spec("torch") is None and importlib.util.find_spec("transformers") is None
keys = {"layers": [{"keys": np.zeros((2, 0, 4), np.float32)}]}
outputs = load(sys.argv[1])(input_ids=np.array([[1, 2, 3], [4, 5, 6]]), cache=keys)
print(json.dumps({"logits": outputs["logits"].tolist(), "from": transformers_exporters.__file__}))
"""


def run(*command: object, **options: object) -> subprocess.CompletedProcess:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, env=clean, **options
    )


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python in an environment with numpy, one engine and this package's wheel; skipped where pip reaches no index."""
    root = tmp_path_factory.mktemp("bare")
    assert run(sys.executable, "-m", "venv", root / "venv").returncode == 0
    python = root / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet")
    installed = run(*pip, "install", "--retries", "1", "numpy", "ml_dtypes", "packaging", "onnxruntime")
    if installed.returncode != 0:
        pytest.skip(f"pip cannot install numpy and onnxruntime here: {installed.stderr.strip()[-200:]}")
    # The wheel, not the source tree: what ships must be what runs. Built elsewhere, so that the tree stays clean.
    built = run(*pip, "wheel", "--no-deps", "--wheel-dir", root / "wheels", ROOT)
    assert built.returncode == 0, built.stderr
    wheel = next((root / "wheels").glob("*.whl"))
    assert run(*pip, "install", "--no-deps", wheel).returncode == 0
    return python


@pytest.mark.network
def test_an_onnx_artifact_runs_without_torch_and_transformers(
    bare_python: Path, artifact: Path, step, tmp_path
) -> None:
    import json

    done = run(bare_python, "-c", CALLER, artifact, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert str(bare_python.parents[1]) in result["from"], "the installed wheel was imported, not the source tree"
    logits, _ = step(np.array([[1, 2, 3], [4, 5, 6]]), np.zeros((2, 0, 4), np.float32))
    np.testing.assert_allclose(np.array(result["logits"], np.float32), logits, rtol=1e-5, atol=1e-5)
