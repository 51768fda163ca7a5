"""Models in 16 bits: ports, cache and weights keep the precision, and generation equals eager within it."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from transformers_exporters import ExportedModel, OpenVINOConfig, OpenVINOExporter
from transformers_exporters.prepare.checkpoint import load_checkpoint

IDS = torch.randint(3, 128, (2, 6), generator=torch.Generator().manual_seed(6))


@pytest.fixture(params=[(torch.float16, 4e-3), (torch.bfloat16, 3e-2)], ids=["float16", "bfloat16"])
def half(request: Any, llama: torch.nn.Module) -> Any:
    dtype, tolerance = request.param
    return copy.deepcopy(llama).to(dtype), tolerance


@pytest.mark.parametrize("stateful", [False, True])
def test_prefill_and_decode_equal_eager(half: Any, tmp_path: Path, stateful: bool) -> None:
    model, tolerance = half
    mask = torch.ones_like(IDS)
    OpenVINOExporter().export_model(
        model,
        {"input_ids": IDS, "attention_mask": mask},
        OpenVINOConfig(dynamic=True, stateful=stateful),
        for_generation=True,
        multi_token_decode=True,
    ).save_pretrained(tmp_path / "artifact")
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    assert (tmp_path / "artifact" / "weights.bin").stat().st_size < 1.1 * weights
    exported = ExportedModel.from_pretrained(tmp_path / "artifact")
    dtype = str(model.dtype).removeprefix("torch.")
    states = [t for t in exported["prefill"].spec.outputs if t.name.startswith("cache.")]
    assert states and {tensor.dtype for tensor in states} == {dtype}
    longer = torch.cat([IDS, IDS, IDS + 1], 1) % 128
    position = torch.arange(longer.shape[1]).expand_as(longer)
    with torch.no_grad():
        wanted = model(input_ids=longer).logits
    component, cache = exported["prefill"], {}
    for begin, end in ((0, 9), (9, 10), (10, 18)):
        feeds = {
            "input_ids": longer[:, begin:end],
            "attention_mask": torch.ones(2, end, dtype=torch.long),
            "position_ids": position[:, begin:end],
        }
        taken = {tensor.name for tensor in component.spec.inputs}
        outputs = component(**{name: value for name, value in feeds.items() if name in taken}, **cache)
        error = (outputs.logits[:, -1] - wanted[:, end - 1]).abs().max()
        assert outputs.logits.dtype == model.dtype
        assert error <= tolerance * wanted.abs().max()
        component, cache = exported["decode"], {"cache": outputs.cache}


def test_a_16_bit_checkpoint_is_mapped_and_not_copied(half: Any, tmp_path: Path) -> None:
    """The constant of a weight shares the mapped file: no anonymous memory for it."""
    model, _ = half
    model.save_pretrained(tmp_path / "checkpoint")
    exported = OpenVINOExporter().export_model(
        load_checkpoint(tmp_path / "checkpoint"), {"input_ids": IDS, "use_cache": False}, OpenVINOConfig(dynamic=True)
    )
    program = exported["model"].program
    held = {
        node.get_friendly_name(): node.data.view("uint16")
        for node in program.get_ops()
        if node.get_type_name() == "Constant" and node.get_friendly_name().startswith("model.layers.")
    }
    assert len(held) >= 2 * 7
    for name, value in model.named_parameters():
        if name in held:
            assert (held[name] == value.detach().view(torch.uint16).numpy()).all()
    maps = Path("/proc/self/maps")
    if maps.exists():
        spans = [
            tuple(int(end, 16) for end in line.split()[0].split("-"))
            for line in maps.read_text().splitlines()
            if line.endswith("model.safetensors")
        ]
        for values in held.values():
            assert any(low <= values.ctypes.data < high for low, high in spans)
