"""Everything that transformers' `generate` offers works on reloaded artifacts, with the source model's results."""

import pytest
import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    MambaConfig,
    MambaForCausalLM,
    StoppingCriteria,
    TextIteratorStreamer,
)
from transformers.generation.streamers import BaseStreamer

import transformers_exporters as te
from models import decoder, ids, left_padded, t5

GREEDY = {"max_new_tokens": 12, "do_sample": False}


def export(model, directory, format="onnx", **options):
    exporter, config = {"dynamo": (te.DynamoExporter, te.DynamoConfig), "onnx": (te.OnnxExporter, te.OnnxConfig)}[
        format
    ]
    exported = exporter().export_model(
        model, {"input_ids": ids(1, 5)}, config=config(dynamic=True), for_generation=True, **options
    )
    exported.save_pretrained(directory)
    return te.ExportedModel.from_pretrained(directory, trust_remote_code=True)


@pytest.fixture(scope="module")
def llama():
    return decoder("llama")


@pytest.fixture(scope="module")
def exported(llama, tmp_path_factory):
    return export(llama, tmp_path_factory.mktemp("features") / "llama")


@pytest.fixture(scope="module")
def several(llama, tmp_path_factory):
    return export(llama, tmp_path_factory.mktemp("features") / "several", multi_token_decode=True)


class NoMultiplesOfThree(LogitsProcessor):
    def __call__(self, input_ids, scores):
        scores[:, ::3] = -torch.inf
        return scores


class AfterFour(StoppingCriteria):
    def __init__(self, length):
        self.length = length

    def __call__(self, input_ids, scores, **kwargs):
        return torch.full((input_ids.shape[0],), input_ids.shape[1] >= self.length + 4)


class Collected(BaseStreamer):
    def __init__(self):
        self.tokens = []

    def put(self, value):
        self.tokens += value.flatten().tolist()

    def end(self):
        self.tokens.append(None)


def test_logits_processors_and_stopping_criteria(llama, exported):
    inputs = left_padded(2, 7, (3, 0))
    options = {**GREEDY, "logits_processor": [NoMultiplesOfThree()], "stopping_criteria": [AfterFour(7)]}
    got = exported.generate(**inputs, **options)
    assert torch.equal(got, llama.generate(**inputs, **options))
    assert got.shape[1] == 11
    assert not (got[:, 7:] % 3 == 0).any()


def test_a_streamer_gets_every_token(exported):
    streamer = Collected()
    tokens = exported.generate(input_ids=ids(1, 6), streamer=streamer, **GREEDY)
    assert streamer.tokens == [*tokens[0].tolist(), None]


def test_an_end_token_ends_a_row_and_pads_it(llama, exported):
    inputs = left_padded(3, 7, (3, 0, 1))
    end = int(llama.generate(**inputs, **GREEDY)[1, 9])
    got = exported.generate(**inputs, **GREEDY, eos_token_id=end, pad_token_id=0)
    assert torch.equal(got, llama.generate(**inputs, **GREEDY, eos_token_id=end, pad_token_id=0))
    assert (got[1, 10:] == 0).all()


def test_scores_and_a_returned_cache_are_the_models(llama, exported):
    inputs = {"input_ids": ids(2, 6)}
    options = {**GREEDY, "return_dict_in_generate": True, "output_scores": True}
    got, wanted = exported.generate(**inputs, **options), llama.generate(**inputs, **options)
    torch.testing.assert_close(torch.stack(got.scores), torch.stack(wanted.scores), atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(got.cache.layers[1].keys, wanted.cache.layers[1].keys, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["exported", "several"])
def test_a_returned_cache_is_continued(llama, name, request):
    """A second turn: the tokens so far and five new ones, on the cache that the first turn returned."""
    exported = request.getfixturevalue(name)

    def two_turns(model):
        first = model.generate(input_ids=ids(2, 6), return_dict_in_generate=True, **GREEDY)
        second = torch.cat([first.sequences, ids(2, 5, seed=4)], dim=1)
        return model.generate(input_ids=second, cache=first.cache, **GREEDY)

    got = two_turns(exported)
    assert torch.equal(got, two_turns(llama))
    assert torch.equal(got, llama.generate(input_ids=got[:, :23], **GREEDY))


def test_an_exported_draft_assists(llama, several, tmp_path):
    draft = decoder("llama", num_hidden_layers=1)
    assistant = export(draft, tmp_path / "draft")
    calls = []
    run = several["decode"].run
    several["decode"].run = lambda feeds: calls.append(feeds["input_ids"].shape[1]) or run(feeds)
    try:
        got = several.generate(input_ids=ids(1, 6), assistant_model=assistant, **GREEDY)
    finally:
        several["decode"].run = run
    assert torch.equal(got, llama.generate(input_ids=ids(1, 6), **GREEDY))
    assert max(calls) > 1  # candidates were verified several at a time


def test_beams_of_sampled_tokens(llama, exported):
    inputs = left_padded(2, 7, (2, 0))
    options = {"num_beams": 3, "do_sample": True, "max_new_tokens": 6, "num_return_sequences": 2}
    torch.manual_seed(5)
    wanted = llama.generate(**inputs, **options)
    torch.manual_seed(5)
    assert torch.equal(exported.generate(**inputs, **options), wanted)


@pytest.mark.parametrize(("format", "keep"), [("onnx", 0), ("dynamo", 1), ("onnx", 3)])
def test_the_caller_chooses_how_many_logits(llama, format, keep, tmp_path):
    exported = export(llama, tmp_path / "artifact", format, multi_token_decode=True, logits_to_keep=keep)
    tokens = ids(2, 9)
    with torch.no_grad():
        wanted = llama(input_ids=tokens).logits[:, -keep:]
    mask, positions = torch.ones(2, 13, dtype=torch.long), torch.arange(13).expand(2, 13)
    outputs = exported["prefill"](input_ids=tokens, attention_mask=mask[:, :9], position_ids=positions[:, :9])
    torch.testing.assert_close(outputs.logits, wanted, atol=2e-5, rtol=1e-4)
    more = exported["decode"](
        input_ids=ids(2, 4, seed=1), attention_mask=mask, position_ids=positions[:, 9:], cache=outputs.cache
    )
    assert more.logits.shape[1] == (keep or 4)
    assert torch.equal(exported.generate(input_ids=tokens, **GREEDY), llama.generate(input_ids=tokens, **GREEDY))


def test_a_graph_of_one_row_cannot_verify_candidates(llama, tmp_path):
    exported = export(llama, tmp_path / "artifact", multi_token_decode=True, logits_to_keep=1)
    with pytest.raises(te.errors.InputError, match="logits_to_keep=0"):
        exported.generate(input_ids=ids(1, 6), prompt_lookup_num_tokens=3, **GREEDY)


def test_a_text_streamer_of_another_thread(exported):
    import threading

    class Tokens:
        def decode(self, tokens, **options):
            return " ".join(str(int(token)) for token in tokens)

    streamer = TextIteratorStreamer(Tokens())
    thread = threading.Thread(target=exported.generate, kwargs={"input_ids": ids(1, 4), "streamer": streamer, **GREEDY})
    thread.start()
    text = "".join(streamer)
    thread.join()
    assert text.split() == [str(token) for token in exported.generate(input_ids=ids(1, 4), **GREEDY)[0].tolist()]


def test_guidance_by_an_empty_prompt_and_no_cache(llama, exported, tmp_path):
    """What calls the model by position and leaves positions and the cache to it; over a fixed-size cache too."""
    static = GenerationConfig(cache_implementation="static", max_cache_len=32)
    fixed = export(llama, tmp_path, multi_token_decode=True, generation_config=static)
    for loaded in (exported, fixed):
        for options in ({"guidance_scale": 1.5}, {"use_cache": False}):
            wanted = llama.generate(ids(1, 6), **GREEDY, **options)
            assert torch.equal(loaded.generate(ids(1, 6), **GREEDY, **options), wanted), options


def test_a_fixed_size_cache_is_a_matter_of_the_export(exported):
    with pytest.raises(te.UnsupportedModelError, match="this artifact's cache grows; export with generation_config="):
        exported.generate(ids(1, 6), **GREEDY, cache_implementation="static")


def test_beams_reorder_a_recurrent_state(tmp_path):
    """The states of its layers are in dicts by number, which a manifest writes as text."""
    torch.manual_seed(0)
    config = MambaConfig(vocab_size=128, hidden_size=32, state_size=8, num_hidden_layers=2, conv_kernel=4)
    model = MambaForCausalLM(config).eval()
    loaded = export(model, tmp_path)
    wanted = model.generate(ids(1, 6), **GREEDY, num_beams=4)
    assert torch.equal(loaded.generate(ids(1, 6), **GREEDY, num_beams=4), wanted)


@pytest.mark.parametrize("flag", ["output_attentions", "output_hidden_states"])
def test_details_that_the_generation_config_asks_for(flag, tmp_path):
    """What the encoder returns beside its states is the caller's, and no input of the graphs."""
    model = t5()
    model.set_attn_implementation("eager")
    setattr(model.generation_config, flag, True)
    model.generation_config.return_dict_in_generate = True
    exported = export(model, tmp_path / "artifact")
    options = {**GREEDY, "max_new_tokens": 4}
    got, wanted = (one.generate(input_ids=ids(2, 7), **options) for one in (exported, model))
    assert torch.equal(got.sequences, wanted.sequences)
    field = flag.removeprefix("output_")
    for side in ("encoder", "decoder"):
        torch.testing.assert_close(got[f"{side}_{field}"], wanted[f"{side}_{field}"], rtol=1e-3, atol=1e-4)
