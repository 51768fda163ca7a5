"""Weights in 8 and 4 bits before the trace, on the formats that have kernels for them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from models import decoder

pytest.importorskip("torchao")

import transformers_exporters as ours
from transformers_exporters.errors import ConfigError, UnsupportedModelError
from transformers_exporters.quantize.quantized_layers import quantized_layers
from transformers_exporters.quantize.recipes import recipe
from transformers_exporters.quantize.rounding import groups4, packed4, rows8
from transformers_exporters.quantize.torchao import TorchaoQuantizer


class Network(nn.Module):
    """An embedding, two layers, and logits with the embedding's weight."""

    def __init__(self, width: int = 64, words: int = 512) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(words, width)
        self.up = nn.Linear(width, 256)
        self.down = nn.Linear(256, width, bias=False)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(ids)
        return self.head(hidden + self.down(torch.relu(self.up(hidden))))


def ids(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"ids": torch.randint(0, 512, (batch, length), generator=torch.Generator().manual_seed(length))}


def state(model: nn.Module) -> list[Any]:
    held = {name: (id(tensor), tensor.clone()) for name, tensor in model.state_dict(keep_vars=True).items()}
    return [held, {name: (type(part), sorted(vars(part))) for name, part in model.named_modules()}]


def same(before: list[Any], after: list[Any]) -> bool:
    tensors = zip(before[0].items(), after[0].items(), strict=True)
    kept = all(n == m and i == j and torch.equal(t, u) for (n, (i, t)), (m, (j, u)) in tensors)
    return kept and before[1] == after[1]


def cosine(left: torch.Tensor, right: torch.Tensor) -> float:
    return torch.nn.functional.cosine_similarity(left.flatten(), right.flatten(), 0).item()


EXPORTERS = {
    "dynamo": (ours.DynamoExporter, ours.DynamoConfig),
    "executorch": (ours.ExecutorchExporter, ours.ExecutorchConfig),
}


def exported(fmt: str, scheme: str | None, model: nn.Module, directory: Path, **options: Any) -> ours.ExportedModel:
    if fmt == "executorch":
        pytest.importorskip("executorch")
    exporter, config = EXPORTERS[fmt]
    quantizer = TorchaoQuantizer(scheme=scheme) if scheme else None
    inputs = options.pop("inputs", ids(1, 5))
    exporter().export_model(model, inputs, config=config(dynamic=True, quantizer=quantizer), **options).save_pretrained(
        directory
    )
    return ours.ExportedModel.from_pretrained(directory, **({"trust_remote_code": True} if fmt == "dynamo" else {}))


def size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


@pytest.mark.parametrize(
    ("fmt", "scheme", "closeness"),
    [
        ("dynamo", "int8", 0.9995),
        ("dynamo", "int4", 0.995),
        ("executorch", "int8", 0.9995),
        ("executorch", "8da8w", 0.999),
        ("executorch", "8da4w", 0.99),
    ],
)
def test_the_reloaded_artifact_is_close_at_any_size(fmt: str, scheme: str, closeness: float, tmp_path: Path) -> None:
    model = Network().eval()
    before = state(model)
    loaded = exported(fmt, scheme, model, tmp_path / "a")
    assert same(before, state(model))
    for batch, length in ((1, 5), (3, 9), (2, 1)):
        with torch.no_grad():
            expected = model(**ids(batch, length))
        got = loaded(**ids(batch, length))
        assert cosine(got, expected) > closeness
        if scheme.startswith("int"):  # the engine computes what the numbers say; biases included
            with torch.no_grad(), TorchaoQuantizer(scheme=scheme).quantize_model(model):
                torch.testing.assert_close(got, model(**ids(batch, length)), rtol=1e-4, atol=1e-3)


def test_weights_are_small_and_a_shared_one_is_stored_once(tmp_path: Path) -> None:
    """The float weights take 4.4 MB, of which the tied embedding is half."""
    pytest.importorskip("executorch")
    model = Network(width=256, words=2048).eval()
    count = sum(parameter.numel() for parameter in model.parameters())
    exported("executorch", "int8", model, tmp_path / "int8")
    assert size(tmp_path / "int8") < count * 1.0 + 60_000
    exported("executorch", "8da4w", model, tmp_path / "int4")
    linear = 2 * 256 * 256
    assert size(tmp_path / "int4") < count - linear + linear * 0.65 + 80_000


def test_components_share_their_weights(tmp_path: Path) -> None:
    model = decoder("llama", vocab_size=2048, hidden_size=128, tie_word_embeddings=True)
    prompt = {"input_ids": torch.arange(5).unsqueeze(0) + 5, "attention_mask": torch.ones(1, 5, dtype=torch.int64)}
    loaded = exported("dynamo", "int8", model, tmp_path / "a", inputs=prompt, for_generation=True)
    held = sum(parameter.numel() for parameter in model.parameters())
    assert (tmp_path / "a" / "model.safetensors").stat().st_size < 1.2 * held
    made = loaded.generate(**prompt, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    assert made.shape == (1, 9)


def test_4_bits_keep_what_4_bits_can_hold() -> None:
    steps = torch.randint(0, 16, (8, 4, 32)).float()
    steps[..., 0], steps[..., 1] = 0, 15
    scale, low = torch.rand(8, 4, 1) + 0.5, torch.randn(8, 4, 1)
    weight = (steps * scale + low).flatten(1)
    packed = packed4(weight, 32)
    assert packed.packed.shape == (8, 64)
    groups = groups4(weight, 32)
    for numbers, most in ((packed, 0.001), (groups, 0.02)):  # 16-bit scales; bfloat16 scales and 8-bit offsets
        error = (numbers.dequantized(numbers.tensors()) - weight).norm() / weight.norm()
        assert error < most, error


@pytest.mark.parametrize("make", [rows8, lambda weight: groups4(weight, 32), lambda weight: packed4(weight, 32)])
def test_a_layer_computes_with_its_dequantized_weight(make: Any) -> None:
    weight, inputs, bias = torch.randn(24, 64), torch.randn(2, 3, 64), torch.randn(24)
    numbers = make(weight)
    held = numbers.tensors()
    expected = torch.nn.functional.linear(inputs, numbers.dequantized(held), bias)
    got = numbers.linear(held, inputs, bias)
    assert cosine(got, expected) > 0.9999
    indices = torch.tensor([[3, 0], [23, 7]])
    torch.testing.assert_close(numbers.embedding(held, indices), numbers.dequantized(held)[indices])


def test_a_model_that_reads_the_weight_itself_is_quantized_as_well() -> None:
    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(64, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.layer.weight.T.to(x.dtype)

    model, x = Reads(), torch.randn(2, 64)
    expected = model(x)
    with quantized_layers(model, lambda _, layer: rows8(layer.weight.detach())):
        assert isinstance(model.layer, nn.Linear)
        assert model.layer.weight.dtype == torch.float32
        got = model(x)
    assert cosine(got, expected) > 0.999
    assert not torch.equal(got, expected)


def test_the_model_comes_back_after_an_error() -> None:
    model = Network().eval()
    before = state(model)
    with pytest.raises(KeyError), TorchaoQuantizer().quantize_model(model):
        raise KeyError
    assert same(before, state(model))
    calls: list[str] = []

    def fails(name: str, layer: nn.Module) -> Any:
        calls.append(name)
        if len(calls) == 3:
            raise ValueError
        return rows8(layer.weight.detach())  # type: ignore[arg-type,operator,union-attr]

    with pytest.raises(ValueError), quantized_layers(model, fails):
        pass
    assert same(before, state(model))


def test_what_cannot_work_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="no scheme 'int3'; choose int8, int4, 8da8w, 8da4w"):
        TorchaoQuantizer(scheme="int3")
    with pytest.raises(ConfigError, match="multiple of 32"):
        TorchaoQuantizer(scheme="int4", group_size=16)
    with pytest.raises(ConfigError, match="'8da4w' is not for dynamo; choose int8, int4"):
        ours.DynamoConfig(quantizer=TorchaoQuantizer(scheme="8da4w"))
    with pytest.raises(ConfigError, match="does not quantize the format 'onnx'"):
        ours.OnnxConfig(quantizer=TorchaoQuantizer())
    with torch.device("meta"):
        empty = Network()
    with pytest.raises(UnsupportedModelError, match="load the checkpoint"), TorchaoQuantizer().quantize_model(empty):
        pass
    with pytest.raises(UnsupportedModelError, match="no linear layer"), TorchaoQuantizer().quantize_model(nn.ReLU()):
        pass


def test_recipes_and_json() -> None:
    for name in ("int8", "int4"):
        for fmt in EXPORTERS:
            quantizer = recipe(name, fmt)
            assert isinstance(quantizer, TorchaoQuantizer)
            quantizer.check(fmt)
    config = ours.DynamoConfig(quantizer=TorchaoQuantizer(scheme="int4", group_size=64))
    again = ours.DynamoConfig.from_dict(copy.deepcopy(config.to_dict()))
    assert again.quantizer == config.quantizer
