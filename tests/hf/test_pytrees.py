"""Objects that hold tensors keep everything else that they hold through a trace, a save and a load."""

from __future__ import annotations

import dataclasses
import enum
import types
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from transformers import LlamaConfig
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

import transformers_exporters as te
from transformers_exporters.hf.plain_values import NotPlain, decode, encode
from transformers_exporters.hf.pytrees import register_pytree_node


class Mode(enum.Enum):
    CLIPPED = "clipped"


@dataclasses.dataclass(frozen=True)
class Limits:
    low: float
    high: float
    shape: tuple[int, ...] = (1, 2)


class LazyCache:
    """Allocates at its first use, from a config that it keeps; its names are those of transformers' caches."""

    def __init__(self, config: LlamaConfig, limits: Limits, mode: Mode) -> None:
        self.config, self.limits, self.mode = config, limits, mode
        self.dtype, self.num_heads = torch.float32, config.num_attention_heads
        self.rows: dict[str, torch.Tensor] | None = None
        self.is_initialized = False

    def update(self, new: torch.Tensor) -> torch.Tensor:
        if not self.is_initialized:
            self.rows = {"sum": new.new_zeros(new.shape[0], self.config.hidden_size, dtype=self.dtype)}
            self.is_initialized = True
        assert self.rows is not None
        self.rows = {"sum": self.rows["sum"] + new * self.num_heads}
        if self.mode is Mode.CLIPPED:
            return self.rows["sum"].clamp(self.limits.low, self.limits.high)
        return self.rows["sum"]


class Step(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, values: torch.Tensor, state: LazyCache) -> dict[str, Any]:
        return {"values": state.update(self.linear(values)), "state": state}


def new_cache() -> LazyCache:
    return LazyCache(LlamaConfig(hidden_size=8, num_attention_heads=2), Limits(-0.5, 0.5), Mode.CLIPPED)


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_a_cache_of_its_own_kind_runs_on_from_what_the_graph_returned(filled: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Step().eval()

    def start(rows: int) -> LazyCache:
        cache = new_cache()
        if filled:
            cache.update(torch.randn(rows, 8, generator=torch.Generator().manual_seed(rows)))
        return cache

    inputs = {"values": torch.randn(2, 8), "state": start(2)}
    te.DynamoExporter().export_model(model, inputs, te.DynamoConfig(dynamic=True)).save_pretrained(tmp_path / "saved")
    loaded = te.ExportedModel.from_pretrained(tmp_path / "saved", trust_remote_code=True)
    for rows in (2, 5):
        values = torch.randn(rows, 8)
        expected, got = model(values, start(rows)), loaded(values=values, state=start(rows))
        torch.testing.assert_close(got["values"], expected["values"])
        torch.testing.assert_close(model(values, got["state"])["values"], model(values, expected["state"])["values"])


class Doubled(DynamicLayer):
    """A layer that remembers how often it was asked, under a name that other layers derive."""

    def __init__(self, batch_size: int = 7) -> None:
        super().__init__()
        self.batch_size = batch_size


class DoubledCache(Cache):
    def __init__(self) -> None:
        super().__init__(layer_class_to_replicate=Doubled)


def test_an_empty_cache_still_knows_which_layers_to_add() -> None:
    register_pytree_node(DoubledCache)
    cache = pytree.tree_map(lambda leaf: leaf, DoubledCache())
    cache.update(torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), 0)
    again = pytree.tree_map(lambda leaf: leaf, cache)
    assert type(again.layers[0]) is Doubled and again.layers[0].batch_size == 7


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"a": [1, (2.5, "x")], "b": {3: None}},
        {1, 2},
        torch.Size([2, 3]),
        torch.bfloat16,
        torch.device("cpu"),
        Mode.CLIPPED,
        Doubled,
        Limits(0.0, 1.0),
    ],
    ids=str,
)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    again = decode(encode(value))
    assert type(again) is type(value) and again == value


def test_a_config_comes_back_without_where_it_came_from() -> None:
    config = LlamaConfig(hidden_size=64, rope_theta=5e5, name_or_path="/somewhere")
    again = decode(encode(config))
    assert type(again) is LlamaConfig and again.hidden_size == 64 and again.name_or_path == ""
    assert again.rope_parameters == config.rope_parameters


@pytest.mark.parametrize("value", [print, torch.nn.Linear(1, 1), {(1, 2): 3}, [torch.ones(1)]], ids=str)
def test_what_no_json_describes_is_refused(value: Any) -> None:
    with pytest.raises(NotPlain):
        encode(value)


def test_an_object_of_a_class_that_is_not_here_keeps_its_names() -> None:
    described = encode(Limits(0.0, 1.0))
    described["instance"] = "nowhere.Limits"
    assert decode(described) == types.SimpleNamespace(low=0.0, high=1.0, shape=(1, 2))


def test_a_sliding_layer_that_holds_nothing_yet_has_seen_nothing() -> None:
    """Its keys are an empty vector until its first update; one layer of Unlimited-OCR is written to by another's."""
    cache = DynamicCache()
    cache.layers.append(DynamicSlidingWindowLayer(sliding_window=4))
    cache.layers[0].lazy_initialization(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
    register_pytree_node(DynamicCache)
    again = pytree.tree_map(lambda leaf: leaf, cache)
    assert again.layers[0].cumulative_length == 0
    assert again.update(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), 0)[0].shape == (1, 2, 3, 4)
