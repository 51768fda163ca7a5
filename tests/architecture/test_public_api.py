"""Public means listed: in `__all__`, and in the user code that is only type-checked."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import transformers_exporters

API = Path(__file__).parents[1] / "typing" / "api.py"
NAMES = [name for name in transformers_exporters.__all__ if name != "__version__"]


def test_typing_api_lists_every_public_name() -> None:
    imported = {
        alias.name
        for node in ast.walk(ast.parse(API.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "transformers_exporters"
        for alias in node.names
    }
    assert imported == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_public_name_resolves(name: str) -> None:
    value = getattr(transformers_exporters, name)
    assert getattr(value, "__name__", name) == name
    assert name in dir(transformers_exporters)
    assert not isinstance(value, type(sys)), f"{name} is a module: a submodule of that name shadows the public one"


def test_type_checkers_see_the_same_names() -> None:
    """The `TYPE_CHECKING` block of the package imports exactly `__all__`."""
    tree = ast.parse(Path(transformers_exporters.__file__).read_text(encoding="utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    typed = {alias.asname or alias.name for n in block.body if isinstance(n, ast.ImportFrom) for alias in n.names}
    assert typed == set(NAMES)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        transformers_exporters.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("name", "package", "install"),
    [
        ("OnnxExporter", "torch", 'pip install "transformers-exporters"'),
        ("OpenVINOExporter", "transformers", 'pip install "transformers-exporters"'),
    ],
)
def test_a_missing_package_names_what_to_install(name: str, package: str, install: str) -> None:
    """In a fresh interpreter where `package` cannot be imported."""
    code = f"import sys; sys.modules[{package!r}] = None\nimport transformers_exporters\ntransformers_exporters.{name}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = run.stderr.strip().splitlines()[-1]
    assert "MissingBackendError" in last
    assert package in last
    assert install in last
