"""Forward graphs equal eager at sizes that were never traced, and have the names of the model's own inputs."""

from typing import Any

import torch

from transformers_exporters import OpenVINOConfig, OpenVINOExporter


def ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, 100, (batch, length), generator=torch.Generator().manual_seed(length))


def test_an_encoder_runs_at_any_size(bert: torch.nn.Module, check: Any) -> None:
    inputs = [
        {"input_ids": ids(b, s), "attention_mask": torch.ones(b, s, dtype=torch.long)}
        for b, s in ((2, 7), (1, 1), (3, 33))
    ]
    inputs[2]["attention_mask"][0, 20:] = 0
    check(bert, *inputs)


def test_one_sample_gives_a_graph_for_any_batch(bert: torch.nn.Module, check: Any) -> None:
    check(bert, {"input_ids": ids(1, 6)}, {"input_ids": ids(4, 6)})


def test_left_padded_rows_are_zeros_as_in_eager_not_nan(llama: torch.nn.Module, check: Any) -> None:
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[0, :3] = 0
    inputs = {"input_ids": ids(2, 8), "attention_mask": mask}
    longer = {"input_ids": ids(3, 17), "attention_mask": torch.ones(3, 17, dtype=torch.long)}
    longer["attention_mask"][1, :9] = 0
    check(llama, inputs, longer)


def test_ports_have_the_names_and_dtypes_of_the_spec(llama: torch.nn.Module) -> None:
    inputs = {"input_ids": ids(2, 5), "attention_mask": torch.ones(2, 5, dtype=torch.long), "use_cache": False}
    model = OpenVINOExporter().export(llama, inputs, OpenVINOConfig(dynamic=True))
    assert [port.get_any_name() for port in model.inputs] == ["input_ids", "attention_mask"]
    assert [port.get_element_type().to_string() for port in model.inputs] == ["i64", "i64"]
    assert [port.get_any_name() for port in model.outputs] == ["logits"]
    assert all(dimension.is_dynamic for dimension in model.inputs[0].get_partial_shape())


def test_the_axes_carry_the_ranges_of_dim(llama: torch.nn.Module) -> None:
    sequence = torch.export.Dim("sequence", min=3, max=40)
    shapes = {"input_ids": {1: sequence}, "attention_mask": {1: sequence}}
    inputs = {"input_ids": ids(2, 5), "attention_mask": torch.ones(2, 5, dtype=torch.long), "use_cache": False}
    config = OpenVINOConfig(dynamic_shapes=shapes, prefer_deferred_runtime_asserts_over_guards=True)
    model = OpenVINOExporter().export(llama, inputs, config)
    batch, length = model.inputs[0].get_partial_shape()
    assert batch.get_length() == 2
    assert (length.get_min_length(), length.get_max_length()) == (3, 40)


def test_flags_are_no_ports_and_unused_and_returned_inputs_keep_theirs(check: Any) -> None:
    class Passes(torch.nn.Module):
        def forward(self, x: torch.Tensor, unused: torch.Tensor, flag: bool = True, other: Any = None) -> Any:
            y = x * 2 if flag else x * 3
            return {"x": x, "y": y, "again": y, "flags": x > 0, "count": torch.tensor(3)}

    inputs = {"x": torch.randn(2, 3), "unused": torch.ones(2, 3), "flag": False, "other": None}
    component = check(Passes(), inputs)
    assert [t.port for t in component.spec.inputs] == ["input.x", "unused"]
    names = [port.get_any_name() for port in component.session.compiled.outputs]
    assert names == ["output.x", "y", "again", "flags", "count"]


def test_16_bit_models_keep_their_dtype(llama: torch.nn.Module, tmp_path: Any) -> None:
    import copy

    from transformers_exporters.hf.exported import ExportedModel

    for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        model = copy.deepcopy(llama).to(dtype)
        directory = tmp_path / str(dtype)
        inputs = {"input_ids": ids(2, 5), "use_cache": False}
        OpenVINOExporter().export_model(model, inputs, OpenVINOConfig(dynamic=True)).save_pretrained(directory)
        got = ExportedModel.from_pretrained(directory)(**inputs).logits
        with torch.no_grad():
            wanted = model(**inputs).logits
        assert got.dtype == dtype
        assert (got - wanted).abs().max() <= tolerance * wanted.abs().max()
        weights = sum(p.numel() * p.element_size() for p in model.parameters())
        assert (directory / "model.bin").stat().st_size < 1.1 * weights


def test_compress_to_fp16_halves_the_weights(llama: torch.nn.Module, tmp_path: Any) -> None:
    inputs = {"input_ids": ids(2, 5), "use_cache": False}
    exported = OpenVINOExporter().export_model(llama, inputs, OpenVINOConfig(dynamic=True, compress_to_fp16=True))
    exported.save_pretrained(tmp_path / "half")
    weights = sum(p.numel() * p.element_size() for p in llama.parameters())
    assert (tmp_path / "half" / "model.bin").stat().st_size < 0.6 * weights
    with torch.no_grad():
        wanted = llama(**inputs).logits
    assert (exported(**inputs).logits - wanted).abs().max() < 2e-3 * wanted.abs().max()


def test_an_axis_with_a_largest_size_is_padded_to_a_multiple(check: Any) -> None:
    """By the axis' bounds alone, what is missing may be less than nothing."""

    class Padded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """x float32 [batch, length, 4] -> [batch, multiple of 8, 4]"""
            length = x.shape[1]
            missing = (length + 7) // 8 * 8 - length
            return torch.cat([x, torch.full((x.shape[0], missing, 4), 3.0)], 1)

    shapes = {"x": {1: torch.export.Dim("length", min=1, max=32)}}
    flags = {"dynamic_shapes": shapes, "prefer_deferred_runtime_asserts_over_guards": True}
    check(Padded(), *({"x": torch.randn(2, n, 4)} for n in (13, 1, 30, 31)), **flags)
