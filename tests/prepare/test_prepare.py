"""The caller's inputs are copied, whatever they are."""

import torch

from models import decoder, ids
from transformers_exporters.prepare.prepare import prepare


def test_a_cache_that_autograd_computed_is_copied():
    """A caller who ran the model outside `no_grad` passes tensors that `deepcopy` refuses."""
    model = decoder("llama")
    cache = model(ids(1, 4)).cache
    given = {"input_ids": ids(1, 1), "cache": cache, "attention_mask": torch.ones(1, 5, dtype=torch.long)}
    prepared = prepare(model, given, resize_axes=False)
    copied = prepared.inputs["cache"].layers[0].keys
    assert cache.layers[0].keys.grad_fn is not None
    assert copied.grad_fn is None
    torch.testing.assert_close(copied, cache.layers[0].keys.detach())
