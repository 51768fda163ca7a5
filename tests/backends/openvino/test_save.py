"""Artifacts: every weight once, whatever the number of components, and files that OpenVINO opens by itself."""

import copy
from typing import Any

import openvino
import torch

from transformers_exporters import OpenVINOConfig, OpenVINOExporter
from transformers_exporters.hf.exported import ExportedModel

IDS = torch.tensor([[3, 4, 5, 6], [7, 8, 9, 10]])


def test_prefill_and_decode_share_one_weights_file(llama: torch.nn.Module, tmp_path: Any) -> None:
    inputs = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}
    OpenVINOExporter().export_model(
        llama, inputs, OpenVINOConfig(dynamic=True), for_generation=True, multi_token_decode=True
    ).save_pretrained(tmp_path / "artifact")
    files = {file.name: file.stat().st_size for file in (tmp_path / "artifact").iterdir()}
    assert {name for name in files if name.endswith((".xml", ".bin"))} == {"prefill.xml", "decode.xml", "weights.bin"}
    parameters = sum(p.numel() * p.element_size() for p in llama.parameters())
    assert files["weights.bin"] < 1.05 * parameters
    reloaded = ExportedModel.from_pretrained(tmp_path / "artifact")
    got = reloaded.generate(**inputs, max_new_tokens=6, do_sample=False)
    assert got.tolist() == llama.generate(**inputs, max_new_tokens=6, do_sample=False).tolist()


def test_one_component_opens_without_this_package(bert: torch.nn.Module, tmp_path: Any) -> None:
    OpenVINOExporter().export_model(bert, {"input_ids": IDS}, OpenVINOConfig(dynamic=True)).save_pretrained(
        tmp_path / "artifact"
    )
    compiled = openvino.Core().compile_model(
        tmp_path / "artifact" / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    ids = torch.randint(3, 100, (3, 9))
    with torch.no_grad():
        wanted = bert(input_ids=ids).last_hidden_state
    got = torch.from_numpy(compiled({"input_ids": ids.numpy()})["last_hidden_state"])
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-4)


def test_weights_of_a_checkpoint_are_read_from_its_file(llama: torch.nn.Module, tmp_path: Any) -> None:
    from transformers_exporters.prepare.checkpoint import load_checkpoint

    for dtype in (torch.float32, torch.bfloat16):
        checkpoint, artifact = tmp_path / f"{dtype}-in", tmp_path / f"{dtype}-out"
        source = copy.deepcopy(llama).to(dtype)
        source.save_pretrained(checkpoint)
        inputs = {"input_ids": IDS, "use_cache": False}
        exporter = OpenVINOExporter()
        exporter.export_model(load_checkpoint(checkpoint), inputs, OpenVINOConfig(dynamic=True)).save_pretrained(
            artifact
        )
        with torch.no_grad():
            wanted = source(**inputs).logits
        got = ExportedModel.from_pretrained(artifact)(**inputs).logits
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        assert (got - wanted).abs().max() <= tolerance * wanted.abs().max()


def test_saving_leaves_the_program_as_it_was_and_keeps_the_weights_names(llama: torch.nn.Module, tmp_path: Any) -> None:
    """Large constants leave the graph while OpenVINO writes it: they must be back in the file, and never left the model."""
    exported = OpenVINOExporter().export_model(
        llama, {"input_ids": IDS, "use_cache": False}, OpenVINOConfig(dynamic=True)
    )
    program = exported["model"].program
    before = [(node.get_type_name(), node.get_friendly_name()) for node in program.get_ordered_ops()]
    for name in ("first", "second"):
        exported.save_pretrained(tmp_path / name)
    assert [(node.get_type_name(), node.get_friendly_name()) for node in program.get_ordered_ops()] == before
    for file in ("model.xml", "model.bin"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()
    read = openvino.Core().read_model(tmp_path / "first" / "model.xml")
    assert len(read.inputs) == 1
    constants = {node.get_friendly_name(): node for node in read.get_ops() if node.get_type_name() == "Constant"}
    for name, value in llama.named_parameters():
        if value.numel() * value.element_size() >= 4096 and name in constants:
            assert (constants[name].data == value.detach().numpy()).all()
    assert {"model.embed_tokens.weight", "model.layers.1.mlp.up_proj.weight"} <= set(constants)
