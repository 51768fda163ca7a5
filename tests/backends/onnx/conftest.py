"""One static and one growing-cache export of a tiny Llama, shared by the tests of this folder."""

from pathlib import Path
from typing import Any

import pytest
import torch

from models import decoder

pytest.importorskip("onnxruntime")


def _export(directory: Path, model: torch.nn.Module, **options: Any) -> Path:
    from transformers_exporters import OnnxConfig, OnnxExporter

    ids = torch.randint(3, 100, (2, 7), generator=torch.Generator().manual_seed(4))
    exported = OnnxExporter().export_model(
        model, {"input_ids": ids}, config=OnnxConfig(dynamic=True), for_generation=True, **options
    )
    exported.save_pretrained(directory)
    return directory


@pytest.fixture(scope="session")
def llama() -> Any:
    return decoder("llama")


@pytest.fixture(scope="session")
def static_artifact(llama: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import GenerationConfig

    static = GenerationConfig(cache_implementation="static", max_cache_len=48)
    directory = tmp_path_factory.mktemp("static") / "artifact"
    return _export(directory, llama, multi_token_decode=True, generation_config=static)


@pytest.fixture(scope="session")
def growing_artifact(llama: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _export(tmp_path_factory.mktemp("growing") / "artifact", llama)
