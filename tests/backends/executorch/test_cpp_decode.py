"""The C++ decode loop generates what eager generates, over a cache that never moves and is never copied."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from models import decoder, left_padded
from transformers_exporters import ExecutorchConfig, ExecutorchExporter
from transformers_exporters.backends.executorch import lower

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("g++") is None, reason="needs cmake and g++"),
]

EXAMPLE = Path(__file__).parents[3] / "examples" / "executorch_cpp"
FLAGS_OFF = dict.fromkeys(("alloc_graph_input", "alloc_graph_output", "alloc_mutable_buffers"), False)
LENGTH, COUNT = 40, 16
# The last one fills the cache to its last position: the last token that is found is not fed.
PROMPTS = [[7, 3, 99, 12, 5, 64, 8], [4, 5], [7, 3, 99, 12, 5, 64, 8], list(range(20, 20 + LENGTH + 1 - COUNT))]
CACHE_BYTES = 2 * 2 * 2 * LENGTH * 16 * 4  # layers, keys and values, heads, positions, head size, float32


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built example."""
    build = tmp_path_factory.mktemp("decode") / "build"
    configure = ["cmake", "-S", str(EXAMPLE), "-B", str(build), f"-DPython3_EXECUTABLE={sys.executable}"]
    subprocess.run(configure, check=True, capture_output=True, text=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "decode"], check=True, capture_output=True, text=True)
    return build / "decode"


def described(artifact: Path) -> Path:
    command = [sys.executable, str(EXAMPLE / "describe.py"), str(artifact)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    path = artifact.with_suffix(".txt")
    path.write_text(text)
    return path


def run(program: Path, artifact: Path, description: Path, *prompts: list[int]) -> subprocess.CompletedProcess[str]:
    ids = [f"--ids={','.join(map(str, prompt))}" for prompt in prompts]
    command = [str(program), str(artifact), str(description), f"--max-new-tokens={COUNT}", *ids]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("returned", [False, True], ids=["written in place", "returned"])
def test_different_prompts_on_one_loaded_method(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returned: bool
) -> None:
    """P6: with the flags off, state must not leak from one prompt into the next.

    Our programs write the state in place. Programs that return it are bound onto it; here one is made by leaving the
    updated inputs among the results.
    """
    torch.set_num_threads(1)
    if returned:
        arrange = lower.arrange_results
        monkeypatch.setattr(lower, "arrange_results", lambda edge, names, in_place: arrange(edge, names, False))
    model = decoder("llama")
    artifact = tmp_path / "artifact"
    ExecutorchExporter().export_model(
        model,
        left_padded(2, 4, (1, 0)),
        config=ExecutorchConfig(dynamic=True, **FLAGS_OFF),
        for_generation=True,
        multi_token_decode=True,
        generation_config=GenerationConfig(cache_implementation="static", max_cache_len=LENGTH),
    ).save_pretrained(artifact)
    description = described(artifact)
    assert description.read_text().count("updated ") == (6 if returned else 0)

    ran = run(program, artifact, description, *PROMPTS)
    assert ran.returncode == 0, ran.stderr[-3000:]
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    model.generation_config.eos_token_id = None  # the loop goes on behind an end, and may find another one
    options: dict[str, Any] = {"max_new_tokens": COUNT, "do_sample": False}
    wanted = [model.generate(torch.tensor([ids]), **options)[0, len(ids) :].tolist() for ids in PROMPTS]
    assert [line["ids"] for line in lines] == wanted
    assert wanted[0] != wanted[1]
    # One token id, one position, a mask over the cache, and the logits.
    assert {line["bytes_per_step"] for line in lines} == {8 + 8 + LENGTH + 4 * 128}
    assert lines[0]["bytes_per_step"] < CACHE_BYTES

    too_long = run(program, artifact, description, [*PROMPTS[-1], 3])
    assert too_long.returncode == 1
    assert "the cache holds 40 positions" in too_long.stderr
    description.write_text(description.read_text().replace("output logits batch sequence 128\n", ""))
    mismatched = run(program, artifact, description, PROMPTS[0])
    assert mismatched.returncode == 1
    assert "the description is of another program" in mismatched.stderr


class Adder(torch.nn.Module):
    def forward(self, input_ids: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        """input_ids int64 [1, 1], cache float32 [1, 1, 3]."""
        return cache.add_(input_ids[..., None]).softmax(-1)


def test_a_program_with_memory_of_its_own_is_refused(program: Path, export: Any, tmp_path: Path) -> None:
    inputs = {"input_ids": torch.ones(1, 1, dtype=torch.int64), "cache": torch.zeros(1, 1, 3)}
    exported = export(Adder(), inputs, dynamic=False)
    description = tmp_path / "decode.txt"
    lines = [f"program {exported.name}.pte", "cache 3", "input input_ids 1 1", "input cache 1 1 3", "state cache"]
    description.write_text("\n".join([*lines, "updated cache", "output logits 1 1 3"]))
    refused = run(program, exported.directory, description, [1])
    assert refused.returncode == 1
    assert "with the three alloc_* flags off" in refused.stderr, refused.stderr[-3000:]
