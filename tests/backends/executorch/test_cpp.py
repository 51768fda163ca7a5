"""The C++ example builds against the installed wheel and computes what eager computes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

EXAMPLE = Path(__file__).parents[3] / "examples" / "executorch_cpp"


class Classifier(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8)
        self.linear = torch.nn.Linear(8, 5)

    def forward(self, ids: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """ids int64 [batch, sequence], scale float32 [batch, sequence, 8]."""
        return torch.softmax(self.linear(self.embedding(ids) * scale), -1)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("g++") is None, reason="needs cmake and g++")
def test_a_program_runs_from_cpp(export: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Classifier().eval()
    exported = export(module, {"ids": torch.ones(2, 4, dtype=torch.int64), "scale": torch.ones(2, 4, 8)})
    build = tmp_path / "build"
    configure = ["cmake", "-S", str(EXAMPLE), "-B", str(build), f"-DPython3_EXECUTABLE={sys.executable}"]
    subprocess.run(configure, check=True, capture_output=True, text=True)
    subprocess.run(
        ["cmake", "--build", str(build), "--target", "run_forward"], check=True, capture_output=True, text=True
    )

    ids, scale = torch.randint(0, 20, (3, 6)), torch.randn(3, 6, 8)
    (tmp_path / "ids.bin").write_bytes(ids.numpy().tobytes())
    (tmp_path / "scale.bin").write_bytes(scale.numpy().tobytes())
    program = exported.directory / f"{exported.name}.pte"
    files = [f"3x6={tmp_path / 'ids.bin'}", f"3x6x8={tmp_path / 'scale.bin'}"]
    run = subprocess.run(
        [str(build / "run_forward"), str(program), str(tmp_path), *files], check=True, capture_output=True, text=True
    )
    assert "output 0 Float 3 6 5" in run.stdout
    got = np.fromfile(tmp_path / "output_0.bin", dtype=np.float32).reshape(3, 6, 5)
    with torch.no_grad():
        np.testing.assert_allclose(got, module(ids, scale).numpy(), atol=1e-6, rtol=0)

    ones = subprocess.run(
        [str(build / "run_forward"), str(program), str(tmp_path), "1x2", "1x2x8"], capture_output=True, text=True
    )
    assert ones.returncode == 0
    wrong = subprocess.run(
        [str(build / "run_forward"), str(program), str(tmp_path), "1x2"], capture_output=True, text=True
    )
    assert wrong.returncode == 1
    assert "takes 2 inputs" in wrong.stderr
