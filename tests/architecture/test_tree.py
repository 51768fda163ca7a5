"""Habits of the source tree that no linter checks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "transformers_exporters"
FILES = sorted(SOURCE.rglob("*.py"))
#: Folders whose every module is one workaround.
WORKAROUND_FOLDERS = {"patches", "fixes", "translations", "graph_fixes", "fusions"}


def _module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _workarounds() -> list[Path]:
    """Files that assign `WORKAROUND`: what `workarounds.collect` would find."""
    return [
        path
        for path in FILES
        if WORKAROUND_FOLDERS & set(path.relative_to(SOURCE).parts[:-1])
        and any(
            isinstance(node, ast.Assign | ast.AnnAssign) and "WORKAROUND" in ast.unparse(node).partition("=")[0]
            for node in _module(path).body
        )
    ]


def test_no_file_is_named_after_nothing() -> None:
    vague = {"utils", "helpers", "common", "misc"}
    assert [str(path.relative_to(ROOT)) for path in FILES if path.stem.strip("_") in vague] == []


@pytest.mark.parametrize("path", _workarounds(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_workaround_has_a_test_file(path: Path) -> None:
    relative = path.relative_to(SOURCE)
    expected = ROOT / "tests" / relative.parent / f"test_{relative.stem}.py"
    assert expected.is_file(), f"{relative} needs {expected.relative_to(ROOT)}: test_needed and test_works"


def test_no_except_is_silent() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(_module(path))
        if isinstance(node, ast.ExceptHandler) and all(isinstance(child, ast.Pass) for child in node.body)
    ]
    assert silent == []


def test_the_peer_is_never_imported() -> None:
    named = re.compile(r"^\s*(from|import)\s+transformers\.exporters\b", re.MULTILINE)
    assert [str(path.relative_to(ROOT)) for path in FILES if named.search(path.read_text(encoding="utf-8"))] == []


def test_the_tested_versions_are_the_pinned_ones() -> None:
    """A backend's `Requirement(tested=...)` and constraints.txt say the same."""
    from transformers_exporters import doors

    pins = dict(re.findall(r"^([\w.-]+)==([\w.]+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    for name in ("dynamo", "onnx", "openvino", "executorch"):
        if not (SOURCE / "backends" / name / "__init__.py").exists():
            continue
        backend = doors.find_backend(name)
        for package, requirement in {**backend.requires, **backend.runs_on}.items():
            assert requirement.tested == pins.get(package, requirement.tested), f"{name}: {package}"
