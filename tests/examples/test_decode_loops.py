"""The decode loops of `examples/` run as their README says, without this package but for PyTorch's, token for token as eager."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import GenerationConfig

import transformers_exporters as te
from models import decoder, left_padded

LOOPS = Path(__file__).parents[2] / "examples" / "decode_loops"
STATIC = GenerationConfig(cache_implementation="static", max_cache_len=40)
KINDS = {
    "onnxruntime": (te.OnnxExporter, te.OnnxConfig(dynamic=True), STATIC),
    "openvino": (te.OpenVINOExporter, te.OpenVINOConfig(dynamic=True, stateful=True), None),
    "pytorch": (te.DynamoExporter, te.DynamoConfig(dynamic=True), STATIC),
    "executorch": (te.ExecutorchExporter, te.ExecutorchConfig(dynamic=True, alloc_graph_input=False), STATIC),
    "executorch, state read back": (te.ExecutorchExporter, te.ExecutorchConfig(dynamic=True), STATIC),
}
PROMPTS, COUNT = ([7, 3, 99, 12, 5, 64, 8], [21, 4, 90]), 16


@pytest.mark.parametrize("kind", KINDS)
def test_loop(kind, tmp_path):
    model = decoder("llama")
    exporter, config, generation = KINDS[kind]
    exported = exporter().export_model(
        model,
        left_padded(2, 4, (1, 0)),
        config=config,
        for_generation=True,
        multi_token_decode=True,
        generation_config=generation,
    )
    exported.save_pretrained(tmp_path / "artifact")
    command = [sys.executable, str(LOOPS / f"{kind.split(',')[0]}_loop.py"), str(tmp_path / "artifact")]
    command += [f"--ids={','.join(map(str, prompt))}" for prompt in PROMPTS] + ["--max-new-tokens", str(COUNT)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-3000:]
    found = [json.loads(line) for line in run.stdout.splitlines()[-len(PROMPTS) :]]
    import torch

    model.generation_config.eos_token_id = None  # the loops go on behind an end, and may find another one
    for prompt, got in zip(PROMPTS, found, strict=True):  # the second one finds nothing of the first in the cache
        wanted = model.generate(torch.tensor([prompt]), max_new_tokens=COUNT, do_sample=False)
        assert got["ids"] == wanted[0, len(prompt) :].tolist()
    cache_bytes = 2 * 2 * 2 * 40 * 16 * 4  # layers, keys and values, heads, positions, head size, float32
    if "read back" in kind:
        assert found[-1]["bytes_per_step"] >= cache_bytes
    else:
        assert found[-1]["bytes_per_step"] < cache_bytes
