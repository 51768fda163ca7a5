"""What ships: the wheel holds every module, the type marker and the license, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    run = subprocess.run([*command, "-w", str(directory), str(ROOT)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return zipfile.ZipFile(next(directory.glob("*.whl")))


def test_every_module_ships(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    written = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path)
    }
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == written
    assert "transformers_exporters/py.typed" in shipped


def test_license_and_command_ship(wheel: zipfile.ZipFile) -> None:
    texts = {name.partition(".dist-info/")[2]: name for name in wheel.namelist() if ".dist-info/" in name}
    assert "licenses/LICENSE" in texts
    assert b"transformers-exporters = transformers_exporters.cli:main" in wheel.read(texts["entry_points.txt"])


def test_the_peer_is_no_dependency_and_torch_is(wheel: zipfile.ZipFile) -> None:
    metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    required = [line for line in wheel.read(metadata).decode().splitlines() if line.startswith("Requires-Dist:")]
    assert any(line.startswith("Requires-Dist: torch>=") for line in required)
    assert not any("==" in line.partition(";")[0] for line in required), "exact pins belong into constraints.txt"
