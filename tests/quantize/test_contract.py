import dataclasses
from typing import Any

import pytest
import torch

import transformers_exporters as te
from models import decoder, left_padded
from transformers_exporters.quantize.recipes import RECIPES, SHIPPED, find_quantizer, from_dict, quantizers_for, recipe

FORMATS = ("dynamo", "onnx", "openvino", "executorch")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_pair_works_or_is_refused_with_an_alternative(name: str) -> None:
    quantizer = find_quantizer(name)()
    for format in FORMATS:
        config = te.AutoExportConfig.from_dict({"export_format": format})
        if format in quantizer.formats:
            assert dataclasses.replace(config, quantizer=quantizer).quantizer is quantizer
            continue
        with pytest.raises(te.ConfigError, match=f"does not quantize the format '{format}'") as error:
            dataclasses.replace(config, quantizer=quantizer)
        assert any(other in str(error.value) for other in quantizers_for(format))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", RECIPES)
def test_recipes_make_quantizers_of_their_format(name: str, format: str) -> None:
    assert format in recipe(name, format).formats


def test_recipe_refusals() -> None:
    with pytest.raises(te.ConfigError, match="choose int8, int4, static-int8"):
        recipe("int3", "onnx")
    with pytest.raises(te.ConfigError, match="only for dynamo, onnx, openvino, executorch"):
        recipe("int8", "tflite")
    with pytest.raises(te.ConfigError, match="quantizer takes a Quantizer, got a str"):
        te.OnnxConfig(quantizer="int8")


def test_a_config_with_a_quantizer_goes_through_json() -> None:
    config = te.OnnxConfig(quantizer=te.OnnxRuntimeQuantizer(mode="int4", block_size=64))
    again = te.OnnxConfig.from_dict(config.to_dict())
    assert again.quantizer == config.quantizer
    with pytest.raises(te.ConfigError, match="Unknown quantizer 'Nobody'"):
        from_dict({"type": "Nobody"})
    with pytest.raises(te.ConfigError, match="unexpected keyword argument 'nonsense'"):
        from_dict({"type": "OnnxRuntimeQuantizer", "nonsense": 1})


@dataclasses.dataclass(kw_only=True)
class Recording(te.Quantizer):
    """Notes what every hook is given."""

    formats = ("onnx",)
    seen: list[Any] = dataclasses.field(default_factory=list)

    @property
    def calibrates(self) -> bool:
        return True

    def quantize_program(self, traced: Any, calibration: te.Calibration, export_format: str) -> Any:
        self.seen.append((traced.spec.name, [kwargs["input_ids"].shape for kwargs in calibration.kwargs]))
        return traced

    def quantize_lowered(self, lowered: Any, calibration: te.Calibration) -> Any:
        first = next(calibration.feeds(lowered.spec))
        self.seen.append((lowered.spec.name, sorted(first)[:1]))
        return lowered


def test_calibration_is_captured_for_each_component() -> None:
    model, inputs = decoder("llama"), left_padded(2, 6, (0, 2))
    dataset = [
        {"input_ids": torch.randint(3, 128, (1, size)), "attention_mask": torch.ones(1, size, dtype=torch.int64)}
        for size in (4, 9)
    ]
    quantizer = Recording(calibration_dataset=iter(dataset))  # an iterator is read once only
    te.OnnxExporter().export_model(model, inputs, te.OnnxConfig(dynamic=True, quantizer=quantizer), for_generation=True)
    assert quantizer.seen == [
        ("prefill", [(1, 4), (1, 9)]),
        ("prefill", ["attention_mask"]),
        ("decode", [(1, 1), (1, 1)]),
        ("decode", ["attention_mask"]),
    ]


def test_without_a_dataset_the_example_is_used_and_said() -> None:
    model, inputs = decoder("llama"), left_padded(2, 6, (0, 2))
    quantizer = Recording()
    with pytest.warns(UserWarning, match="give it a calibration_dataset"):
        te.OnnxExporter().export(model, inputs, te.OnnxConfig(dynamic=True, quantizer=quantizer))
    assert quantizer.seen[0] == ("model", [tuple(inputs["input_ids"].shape)])


@pytest.mark.parametrize("dataset,message", [([], "is empty"), ([["text"]], "yields dicts of inputs, got a list")])
def test_wrong_datasets(dataset: Any, message: str) -> None:
    model, inputs = decoder("llama"), left_padded(2, 6, (0, 2))
    config = te.OnnxConfig(quantizer=Recording(calibration_dataset=dataset))
    with pytest.raises(te.InputError, match=message):
        te.OnnxExporter().export(model, inputs, config)
