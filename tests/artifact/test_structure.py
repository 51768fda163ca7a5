from enum import Enum
from types import SimpleNamespace

import pytest

from transformers_exporters.artifact.structure import constants, flatten_kwargs, leaf_paths, rebuild

TREE = {
    "dict": {
        "input_ids": {"leaf": 0},
        "cache": {
            "object": "m.Cache",
            "fields": {
                "layers": {
                    "list": [
                        {"object": "m.Layer", "fields": {"keys": {"leaf": 1}, "values": {"leaf": 2}}},
                        {"object": "m.Layer", "fields": {"keys": {"leaf": 3}, "values": {"value": None}}},
                    ]
                }
            },
        },
        "sizes": {"tuple": [{"leaf": 4}, {"value": 3}]},
        "use_cache": {"value": True},
        "mode": {"value": "Mode.FAST"},
    }
}


class Mode(Enum):
    FAST = 1
    SLOW = 2


def kwargs() -> dict:
    layers = [{"keys": "k0", "values": "v0"}, {"keys": "k1", "values": None}]
    return {"input_ids": "ids", "cache": {"layers": layers}, "sizes": ("s", 3), "use_cache": True, "mode": Mode.FAST}


ALL = {0: "ids", 1: "k0", 2: "v0", 3: "k1", 4: "s"}


def test_nested_kwargs_become_leaves_by_number() -> None:
    flat = flatten_kwargs(TREE, kwargs())
    assert flat.leaves == ALL
    assert (flat.missing, flat.unexpected, flat.mismatched) == ([], [], [])


def test_objects_are_read_by_attribute() -> None:
    layers = [SimpleNamespace(keys="k0", values="v0"), SimpleNamespace(keys="k1", values=None)]
    flat = flatten_kwargs(TREE, {**kwargs(), "cache": SimpleNamespace(layers=layers)})
    assert flat.leaves == ALL


def test_a_getter_of_the_callers_decides_where_children_are() -> None:
    flat = flatten_kwargs({"dict": {"a": {"list": [{"leaf": 0}]}}}, "x", get=lambda value, key: value + key)
    assert flat.leaves == {0: "xa0"}


def test_constants_may_be_left_out_or_none() -> None:
    given = {"input_ids": "ids", "cache": kwargs()["cache"], "sizes": ("s",), "use_cache": None}
    flat = flatten_kwargs(TREE, given)
    assert flat.leaves == ALL
    assert not flat.mismatched


def test_other_constants_are_reported() -> None:
    flat = flatten_kwargs(TREE, {**kwargs(), "use_cache": False, "mode": Mode.SLOW, "sizes": ("s", 4)})
    assert flat.mismatched == [("sizes.1", 3, 4), ("use_cache", True, False), ("mode", "Mode.FAST", Mode.SLOW)]


def test_a_tensor_where_none_was_baked_is_a_mismatch() -> None:
    given = kwargs()
    given["cache"]["layers"][1]["values"] = SimpleNamespace(shape=(1,))
    assert [path for path, _, _ in flatten_kwargs(TREE, given).mismatched] == ["cache.layers.1.values"]


def test_missing_and_unexpected_paths_are_reported() -> None:
    given = kwargs()
    del given["cache"]["layers"][0]["keys"]
    given["cache"]["layers"].append({"keys": "k2"})
    given |= {"input_ids": None, "inputs_embeds": "e", "labels": None}
    flat = flatten_kwargs(TREE, given)
    assert flat.missing == ["input_ids", "cache.layers.0.keys"]
    assert flat.unexpected == ["cache.layers.2", "inputs_embeds"]


def test_flattening_undoes_rebuilding() -> None:
    leaves = ["ids", "k0", "v0", "k1", "s"]
    assert flatten_kwargs(TREE, rebuild(TREE, leaves)).leaves == dict(enumerate(leaves))
    assert rebuild(TREE, leaves)["cache"]["layers"][0] == {"keys": "k0", "values": "v0"}
    assert [path for _, path in leaf_paths(TREE)][1] == "cache.layers.0.keys"
    assert dict(constants(TREE))["sizes.1"] == 3


@pytest.mark.parametrize(
    "baked, given, same",
    [
        (1, True, True),
        (0.5, 0.5, True),
        ([1, 2], (1, 2), True),
        ([1, 2], (1, 3), False),
        (None, 0, False),
        ({"a": 1}, {"a": 1}, True),
        ("sdpa", "eager", False),
        (float("nan"), float("nan"), True),
    ],
)
def test_constants_compare_by_value(baked, given, same: bool) -> None:
    assert (flatten_kwargs({"dict": {"x": {"value": baked}}}, {"x": given}).mismatched == []) is same


def test_keys_that_were_numbers_are_numbers_again() -> None:
    tree = {"dict": {"0": {"leaf": 0}, "name": {"leaf": 1}}, "int_keys": True}
    assert rebuild(tree, ["a", "b"]) == {0: "a", "name": "b"}
    assert rebuild({"dict": tree["dict"]}, ["a", "b"]) == {"0": "a", "name": "b"}
