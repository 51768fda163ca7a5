"""An adapter is merged into its base, or refused: never left out."""

import json
import sys

import pytest
import torch

from models import decoder, ids
from transformers_exporters.errors import InputError
from transformers_exporters.prepare.checkpoint import load_checkpoint


@pytest.fixture
def base(tmp_path):
    model = decoder("llama")
    model.save_pretrained(tmp_path / "base")
    return tmp_path / "base", model


def test_an_adapter_without_peft_is_refused(base, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    (tmp_path / "lora").mkdir()
    for directory in (base[0], tmp_path / "lora"):  # beside its base, and alone
        (directory / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base[0])}))
        with pytest.raises(InputError, match="is an adapter .PEFT.: install peft"):
            load_checkpoint(directory)


def test_an_adapter_without_a_base_is_refused(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match="names no base model"):
        load_checkpoint(tmp_path)


def test_an_adapter_is_merged(base, tmp_path):
    peft = pytest.importorskip("peft")
    settings = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    adapted = peft.get_peft_model(base[1], settings).eval()
    adapted.peft_config["default"].base_model_name_or_path = str(base[0])
    adapted.save_pretrained(tmp_path / "lora")
    merged, plain = load_checkpoint(tmp_path / "lora"), load_checkpoint(base[0])
    with torch.no_grad():
        torch.testing.assert_close(merged(input_ids=ids(2, 9)).logits, adapted(input_ids=ids(2, 9)).logits)
    first, second = (model.model.layers[0].self_attn.q_proj.weight for model in (merged, plain))
    assert not torch.equal(first, second)
