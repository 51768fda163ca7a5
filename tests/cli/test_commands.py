"""The commands on a tiny checkpoint: results, JSON, exit codes, errors without tracebacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transformers_exporters import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit code, stdout, stderr."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return int(ended.value.code or 0), out, err

    return call


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers_exporters.testing.checkpoints import tiny_chat_model

    return tiny_chat_model(tmp_path_factory.mktemp("checkpoint") / "tiny")


@pytest.fixture(scope="module")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """An ONNX artifact for generation, and what `export --json` said about it."""
    from contextlib import redirect_stdout
    from io import StringIO

    directory = tmp_path_factory.mktemp("artifact") / "onnx"
    printed = StringIO()
    with redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        cli.main(["export", str(checkpoint), "-o", str(directory), "--for-generation", "--json"])
    assert not ended.value.code, printed.getvalue()
    return directory, json.loads(printed.getvalue())


def test_export_verifies_and_reports(exported: tuple[Path, dict[str, Any]]) -> None:
    directory, said = exported
    assert said["components"] == ["prefill", "decode"]
    assert said["verification"]["ok"]
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["verification"], "export writes what it measured into the manifest"


def test_verify_agrees(run: Run, exported: tuple[Path, dict[str, Any]], checkpoint: Path) -> None:
    code, out, err = run("verify", exported[0], "--model", checkpoint, "--json")
    assert code == 0, err
    rows = json.loads(out)["rows"]
    assert {row["component"] for row in rows} == {"prefill", "decode"}
    assert all(row["ok"] and row["rel"] <= row["tolerance"] for row in rows)


def test_verify_finds_another_model(
    run: Run, exported: tuple[Path, dict[str, Any]], checkpoint: Path, tmp_path: Path
) -> None:
    """An artifact compared with other weights fails with exit code 1."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(checkpoint)
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "other")
    code, _, _ = run("verify", exported[0], "--model", tmp_path / "other")
    assert code == 1


def test_generate_equals_the_model(run: Run, exported: tuple[Path, dict[str, Any]], checkpoint: Path) -> None:
    from transformers import AutoModelForCausalLM

    from transformers_exporters.hf.text import encode, load_tokenizer

    prompts = ["What is the capital of France?", "Hi"]
    code, out, err = run("generate", exported[0], *prompts, "--max-new-tokens", "8", "--json")
    assert code == 0, err
    tokenizer = load_tokenizer(checkpoint)
    model = AutoModelForCausalLM.from_pretrained(checkpoint).eval()
    want = model.generate(**encode(tokenizer, prompts), max_new_tokens=8, do_sample=False)
    assert json.loads(out)["tokens"] == want.tolist()


def test_run_equals_the_model(
    run: Run, exported: tuple[Path, dict[str, Any]], checkpoint: Path, tmp_path: Path
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    ids = np.array([[5, 6, 7, 8, 9]])
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(5)[None]}
    names = json.loads((exported[0] / "manifest.json").read_text())["components"]["prefill"]["inputs"]
    taken = {tensor["name"] for tensor in names}
    np.savez(tmp_path / "in.npz", **{name: value for name, value in feeds.items() if name in taken})
    outputs = tmp_path / "out.npz"
    code, _, err = run("run", exported[0], "-c", "prefill", "-i", tmp_path / "in.npz", "-o", outputs)
    assert code == 0, err
    model = AutoModelForCausalLM.from_pretrained(checkpoint).eval()
    with torch.no_grad():
        want = model(torch.from_numpy(ids)).logits[:, -1]
    np.testing.assert_allclose(np.load(outputs)["logits"][:, -1], want.numpy(), rtol=1e-3, atol=1e-5)


def test_run_on_text(run: Run, exported: tuple[Path, dict[str, Any]]) -> None:
    code, out, err = run("run", exported[0], "-c", "prefill", "--text", "hello", "--text", "hello there", "--json")
    assert code == 0, err
    assert json.loads(out)["outputs"]["logits"]["shape"][0] == 2


def test_inspect(run: Run, exported: tuple[Path, dict[str, Any]]) -> None:
    code, out, _ = run("inspect", exported[0])
    assert code == 0
    assert "prefill" in out
    code, out, _ = run("inspect", exported[0], "--json")
    assert json.loads(out) == json.loads((exported[0] / "manifest.json").read_text())


def test_workarounds_lists_records(run: Run) -> None:
    code, out, err = run("workarounds", "--format", "onnx", "--json")
    assert code == 0, err
    for row in json.loads(out)["workarounds"]:
        assert row["reason"]
        assert row["upstream"].startswith(("http", "none: "))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["export", "nowhere", "-o", "x", "-f", "tensorrt"], 2, "registered formats are dynamo, onnx"),
        (["export", "nowhere", "-o", "x", "--set", "optimise=true"], 2, "has no field 'optimise'"),
        (["export", "nowhere", "-o", "x", "--task", "forward", "--static-cache", "8"], 2, "--task forward"),
        (["export", "nowhere", "-o", "x", "--task", "fill-masks"], 2, "no task 'fill-masks'; the tasks are auto, "),
        (["export", "nowhere", "-o", "x", "--dtype", "fp16"], 2, "must be float32, float16 or bfloat16"),
        (
            ["export", "nowhere", "-o", "x", "--tiny", "llama", "--task", "fill-mask"],
            2,
            "either a checkpoint or --tiny",
        ),
        (["export", "nowhere"], 2, "--output"),
        (["inspect", "nowhere"], 2, "nowhere"),
        (["inspect", "."], 1, "no manifest.json"),
        (["run", ".", "--text", "a", "--inputs", "pyproject.toml"], 2, "either as"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_errors_are_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, says: str
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    ended, out, err = run(*arguments)
    assert ended == code
    assert says in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err
    assert out == ""
    assert not Path("x").exists()


def test_a_task_chooses_the_class_also_for_verify(run: Run, tmp_path: Path) -> None:
    import transformers as tf

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    tf.BertForMaskedLM(tf.BertConfig(vocab_size=64, **sizes)).save_pretrained(tmp_path / "bert")
    code, _, err = run(
        "export", tmp_path / "bert", "-o", tmp_path / "out", "--task", "feature-extraction", "--no-verify"
    )
    assert code == 0, err
    assert "BertModel has no place for cls." in err and "pooler" in err, "the pooler is random, the head left out"
    code, out, err = run("inspect", tmp_path / "out", "--json")
    assert json.loads(out)["model"]["class_path"].endswith(".BertModel")
    tf.BertModel(tf.BertConfig(vocab_size=64, **sizes)).save_pretrained(tmp_path / "base")
    code, out, err = run("export", tmp_path / "base", "-o", tmp_path / "out", "--task", "feature-extraction")
    assert code == 0, err
    code, out, err = run("verify", tmp_path / "out", "--json")
    assert code == 0, err
    assert {row["output"] for row in json.loads(out)["rows"]} == {"last_hidden_state", "pooler_output"}


def test_a_checkpoint_that_is_not_there(run: Run, tmp_path: Path) -> None:
    code, _, err = run("export", tmp_path / "nothing", "-o", tmp_path / "out")
    assert code == 1
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_debug_shows_the_traceback(run: Run, tmp_path: Path) -> None:
    code, _, err = run("inspect", tmp_path, "--debug")
    assert code == 1
    assert "Traceback" in err


def test_json_errors(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("inspect", tmp_path, "--json")
    assert code == 1
    assert json.loads(out)["error"]["type"] == "ArtifactError"


def test_version(run: Run) -> None:
    from transformers_exporters import __version__

    assert run("--version") == (0, f"{__version__}\n", "")
