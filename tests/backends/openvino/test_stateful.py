"""The cache inside the model: greedy decoding equals eager, for any batch, from prompt to last token."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from models import decoder
from transformers_exporters import OpenVINOConfig, OpenVINOExporter
from transformers_exporters.errors import InputError
from transformers_exporters.verification import verify


def prompt(batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(3, 128, (batch, length), generator=torch.Generator().manual_seed(batch))
    mask = torch.ones_like(ids)
    if batch > 1:
        mask[0, : length // 3] = 0
    return ids, mask


@pytest.fixture(scope="module")
def decode(llama: torch.nn.Module) -> Any:
    ids, mask = prompt(2, 6)
    exported = OpenVINOExporter().export_model(
        llama,
        {"input_ids": ids, "attention_mask": mask},
        OpenVINOConfig(dynamic=True, stateful=True),
        for_generation=True,
        multi_token_decode=True,
    )
    return exported["decode"]


def step(session: Any, ids: torch.Tensor, mask: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    feeds = {"input_ids": ids.numpy(), "attention_mask": mask.numpy(), "position_ids": positions.numpy()}
    wanted = [tensor.name for tensor in session.spec.inputs]
    return torch.from_numpy(session.run({name: feeds[name] for name in wanted}, **kwargs)["logits"])


def greedy(session: Any, ids: torch.Tensor, mask: torch.Tensor, steps: int) -> Iterator[torch.Tensor]:
    session.reset()
    for _ in range(steps):
        logits = step(session, ids, mask)
        ids = logits[:, -1:].argmax(-1)
        mask = torch.cat([mask, torch.ones_like(ids)], 1)
        yield ids


def test_the_cache_is_no_port(decode: Any) -> None:
    assert not any("cache" in tensor.name for tensor in (*decode.spec.inputs, *decode.spec.outputs))
    names = {port.get_any_name() for port in decode.program.inputs}
    assert names == {tensor.name for tensor in decode.spec.inputs} | {"beam_idx"}
    assert set(decode.spec.options["stateful"]["variables"]) == {
        f"cache.layers.{layer}.{part}" for layer in (0, 1) for part in ("keys", "values")
    }


@pytest.mark.parametrize("batch, length", [(2, 6), (3, 10), (1, 1)])
def test_greedy_decoding_equals_eager(decode: Any, llama: torch.nn.Module, batch: int, length: int) -> None:
    ids, mask = prompt(batch, length)
    got = torch.cat(list(greedy(decode.session, ids, mask, 12)), 1)
    wanted = llama.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=12, min_new_tokens=12, do_sample=False, eos_token_id=None
    )
    assert got.tolist() == wanted[:, length:].tolist()


def test_logits_equal_eager(decode: Any, llama: torch.nn.Module) -> None:
    ids, mask = prompt(2, 9)
    decode.session.reset()
    parts = [step(decode.session, ids[:, a:b], mask[:, :b]) for a, b in ((0, 5), (5, 8), (8, 9))]
    with torch.no_grad():
        wanted = llama(input_ids=ids, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0)).logits
    got = torch.cat(parts, 1)
    assert torch.isfinite(got).all()
    torch.testing.assert_close(got[mask.bool()], wanted[mask.bool()], atol=1e-5, rtol=1e-4)


def test_beam_idx_picks_the_rows_of_the_last_call(decode: Any) -> None:
    ids = torch.randint(3, 128, (2, 5), generator=torch.Generator().manual_seed(9))
    mask, token = torch.ones_like(ids), torch.tensor([[7], [7]])
    longer = torch.ones(2, 6, dtype=torch.long)
    session = decode.session
    session.reset()
    step(session, ids, mask)
    swapped = step(session, token, longer, beam_idx=[1, 1])
    session.reset()
    step(session, ids, mask)
    plain = step(session, token, longer)
    torch.testing.assert_close(swapped[0], plain[1], atol=1e-6, rtol=1e-5)
    assert not torch.allclose(swapped[0], plain[0], atol=1e-4)


def test_a_state_can_be_taken_and_put_back(decode: Any) -> None:
    ids, mask = prompt(2, 5)
    session = decode.session
    session.reset()
    step(session, ids, mask)
    held = session.state()
    assert {array.shape for array in held.values()} == {(2, 2, 5, 16)}
    token, longer = torch.tensor([[7], [8]]), torch.cat([mask, torch.ones(2, 1, dtype=torch.long)], 1)
    first = step(session, token, longer)
    session.reset()
    session.set_state(held)
    np.testing.assert_allclose(step(session, token, longer), first, atol=1e-6)


@pytest.fixture(scope="module")
def mistral() -> torch.nn.Module:
    return decoder("mistral")


@pytest.fixture(scope="module", params=["llama", "mistral"])
def reloaded(request: Any, tmp_path_factory: Any) -> Any:
    """A model with full attention and one with a window of 8, and their stateful artifacts, loaded again."""
    from transformers_exporters import ExportedModel

    model = request.getfixturevalue(request.param)
    ids, mask = prompt(2, 6)
    directory = tmp_path_factory.mktemp("stateful") / request.param
    OpenVINOExporter().export_model(
        model,
        {"input_ids": ids, "attention_mask": mask},
        OpenVINOConfig(dynamic=True, stateful=True),
        for_generation=True,
        multi_token_decode=True,
    ).save_pretrained(directory)
    return model, ExportedModel.from_pretrained(directory)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"num_beams": 3, "num_return_sequences": 2}])
@pytest.mark.parametrize("batch, length", [(2, 6), (3, 13), (1, 1)])
def test_generate_equals_eager(reloaded: Any, options: dict[str, Any], batch: int, length: int) -> None:
    model, exported = reloaded
    ids, mask = prompt(batch, length)
    asked = {"max_new_tokens": 14, "min_new_tokens": 14, "do_sample": False, **options}
    got = exported.generate(input_ids=ids, attention_mask=mask, **asked)
    assert got.tolist() == model.generate(input_ids=ids, attention_mask=mask, **asked).tolist()


def test_prefill_then_decode_through_one_object(reloaded: Any) -> None:
    """Eager's chain, call by call: `decode` takes the cache of `prefill`, then what it returned itself."""
    model, exported = reloaded
    ids, mask = prompt(2, 12)
    with torch.no_grad():
        wanted = model(input_ids=ids, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0)).logits
    component, cache, got = exported["prefill"], None, []
    for begin, end in ((0, 6), (6, 7), (7, 10), (10, 12)):
        feeds = {
            "input_ids": ids[:, begin:end],
            "attention_mask": mask[:, :end],
            "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)[:, begin:end],
        }
        taken = {tensor.name for tensor in component.spec.inputs}
        outputs = component(**{k: v for k, v in feeds.items() if k in taken}, **({"cache": cache} if cache else {}))
        got.append(outputs.logits[:, -1])  # `generate` asks prefill for the last position only
        component, cache = exported["decode"], outputs.cache
    torch.testing.assert_close(torch.stack(got, 1), wanted[:, [5, 6, 9, 11]], atol=1e-5, rtol=1e-4)
    assert cache.get_seq_length() == 12


def test_a_cache_of_an_earlier_call_is_refused(reloaded: Any) -> None:
    model, exported = reloaded
    ids, mask = prompt(2, 6)
    feeds = {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)}
    decode = exported["decode"]
    feeds = {name: feeds[name] for name in (tensor.name for tensor in decode.spec.inputs)}
    from transformers import DynamicCache

    first = decode(**feeds, cache=DynamicCache(config=model.config)).cache
    decode(**feeds, cache=DynamicCache(config=model.config))
    with pytest.raises(InputError, match="moved on"):
        decode(**feeds, cache=first)


def test_verification_fills_the_state_with_eagers_cache(reloaded: Any) -> None:
    model, exported = reloaded
    ids, mask = prompt(2, 6)
    report = verify(model, exported, {"input_ids": ids, "attention_mask": mask})
    assert report.ok
    cases = {row.case for row in report.rows if row.component == "decode"}
    assert len(cases) > 4 and any("batch=5" in case for case in cases) and any("cache=15" in case for case in cases)
