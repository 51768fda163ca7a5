import dataclasses

import ml_dtypes
import numpy as np
import pytest

from transformers_exporters.artifact.spec import AxisRange, ComponentSpec, TensorSpec
from transformers_exporters.errors import InputError
from transformers_exporters.runtime.feeds import check_feeds

SPEC = ComponentSpec(
    name="decode",
    inputs=(
        TensorSpec("mask", "mask", "bool", ("batch", "cache + sequence")),
        TensorSpec("input_ids", "input_ids", "int64", ("batch", "sequence")),
        TensorSpec("keys", "input.keys", "float32", ("batch", 2, "cache", 4)),
        TensorSpec("frames", "frames", "bfloat16", ("2*sequence",)),
    ),
    outputs=(),
    axes={"batch": AxisRange(1, 8), "sequence": AxisRange(1, None, 2), "cache": AxisRange(0, 100)},
)


def feeds(batch: int = 3, sequence: int = 4, cache: int = 5) -> dict[str, np.ndarray]:
    return {
        "mask": np.ones((batch, cache + sequence), np.bool_),
        "input_ids": np.zeros((batch, sequence), np.int64),
        "keys": np.zeros((batch, 2, cache, 4), np.float32),
        "frames": np.zeros(2 * sequence, ml_dtypes.bfloat16),
    }


def refused(given: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        check_feeds(SPEC, given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 2, 0), (8, 40, 100)])
def test_legal_feeds_pass_as_the_same_objects_in_the_order_of_the_inputs(sizes: tuple[int, int, int]) -> None:
    given = dict(reversed(feeds(*sizes).items()))
    checked = check_feeds(SPEC, given)
    assert list(checked) == ["mask", "input_ids", "keys", "frames"]
    assert all(checked[name] is given[name] for name in given)


def test_names() -> None:
    given = feeds()
    given["input_id"] = given.pop("input_ids")
    refused(given, "decode has no input 'input_id'; did you mean 'input_ids'?")
    refused({**feeds(), "zzz": 0}, "decode has no input 'zzz'; its inputs are mask, input_ids, keys, frames")
    given = feeds()
    del given["keys"]
    refused(given, r"decode needs the input 'keys', float32 \[batch, 2, cache, 4\]")


def test_kind_and_rank() -> None:
    refused({**feeds(), "input_ids": [[1, 2]]}, r"input_ids must be an array, int64 \[batch, sequence\], got list")
    refused(
        {**feeds(), "input_ids": np.zeros(4, np.int64)},
        r"input_ids must have 2 axes, int64 \[batch, sequence\], got shape \[4\]",
    )


def test_sizes() -> None:
    refused(
        {**feeds(), "keys": np.zeros((3, 3, 5, 4), np.float32)}, r"keys must have size 2 along axis 1, got 3 in shape"
    )
    refused(
        {**feeds(), "keys": np.zeros((2, 2, 5, 4), np.float32)},
        r"keys has 2 along axis 0 \(batch\), but mask has 3",
    )
    refused(
        {**feeds(), "mask": np.ones((3, 4), np.bool_)},
        r"mask must have size 9 \(cache \+ sequence with sequence=4, cache=5\) along axis 1, got 4",
    )
    refused(
        {**feeds(), "frames": np.zeros(4, ml_dtypes.bfloat16)},
        r"frames must have size 8 \(2\*sequence with sequence=4\)",
    )


def test_ranges() -> None:
    refused(feeds(batch=9), r"mask has 9 along axis 0 \(batch\); 1 to 8 is allowed")
    refused(feeds(batch=0), r"\(batch\); 1 to 8 is allowed")
    refused(feeds(sequence=3), r"input_ids has 3 along axis 1 \(sequence\); at least 1, a multiple of 2 is allowed")
    refused(feeds(cache=101), r"keys has 101 along axis 2 \(cache\); 0 to 100")


def test_a_range_of_a_derived_axis_is_checked() -> None:
    spec = ComponentSpec("m", (TensorSpec("x", "x", "bool", ("4*n",)),), (), axes={"4*n": AxisRange(4, 16, 4)})
    check_feeds(spec, {"x": np.zeros(8, np.bool_)})
    with pytest.raises(InputError, match=r"x has 6 along axis 0 \(4\*n\); 4 to 16, a multiple of 4 is allowed"):
        check_feeds(spec, {"x": np.zeros(6, np.bool_)})


def test_an_axis_that_only_its_multiple_shows() -> None:
    images = TensorSpec("pixel_values", "pixel_values", "float32", ("2*batch", 3))
    sizes = TensorSpec("sizes", "sizes", "int64", ("batch + 1",))
    spec = ComponentSpec("model", (images, sizes), (), axes={"batch": AxisRange(minimum=1, maximum=4)})

    def given(rows: int, count: int) -> dict[str, np.ndarray]:
        return {"pixel_values": np.zeros((rows, 3), np.float32), "sizes": np.zeros(count, np.int64)}

    check_feeds(spec, given(8, 5))
    for rows, count, message in ((10, 6, "2 to 8 is allowed"), (7, 4, "a multiple of 2"), (6, 5, "size 4")):
        with pytest.raises(InputError, match=message):
            check_feeds(spec, given(rows, count))


@pytest.mark.parametrize("given", [np.int32, np.uint8, np.bool_])
def test_whole_numbers_are_cast_where_that_is_exact(given: type) -> None:
    ids = np.array([[1, 0], [0, 1]]).astype(given)
    checked = check_feeds(SPEC, {**feeds(2, 2), "input_ids": ids, "mask": np.ones((2, 7), np.int64)})
    assert checked["input_ids"].dtype == np.int64
    assert checked["mask"].dtype == np.bool_
    np.testing.assert_array_equal(checked["input_ids"], ids.astype(np.int64))


def test_whole_numbers_that_do_not_fit_are_refused() -> None:
    refused({**feeds(), "mask": np.full((3, 9), 2)}, "mask must be bool, got int64 with values from 2 to 2")
    spec = ComponentSpec("m", (TensorSpec("x", "x", "int32", ("n",)),), ())
    assert check_feeds(spec, {"x": np.array([2**31 - 1])})["x"].dtype == np.int32
    with pytest.raises(InputError, match="x must be int32, got int64 with values from 0 to 2147483648"):
        check_feeds(spec, {"x": np.array([0, 2**31])})


@pytest.mark.parametrize("given", [np.float64, np.float16, np.int64, ml_dtypes.bfloat16])
def test_floating_point_is_never_cast(given: type) -> None:
    refused({**feeds(), "keys": feeds()["keys"].astype(given)}, "keys must be float32, got .*; convert it first")


def test_floats_do_not_become_whole_numbers() -> None:
    refused({**feeds(), "input_ids": np.zeros((3, 4))}, "input_ids must be int64, got float64")


def test_torch_tensors_are_checked_and_cast_alike() -> None:
    torch = pytest.importorskip("torch")
    given = {
        "mask": torch.ones(3, 9, dtype=torch.int32),
        "input_ids": torch.zeros(3, 4, dtype=torch.int32),
        "keys": torch.zeros(3, 2, 5, 4),
        "frames": torch.zeros(8, dtype=torch.bfloat16),
    }
    checked = check_feeds(SPEC, given)
    assert (checked["mask"].dtype, checked["input_ids"].dtype) == (torch.bool, torch.int64)
    assert checked["keys"] is given["keys"]
    refused({**given, "keys": given["keys"].half()}, "keys must be float32, got float16")
    refused({**given, "keys": given["keys"][:2]}, "keys has 2 along axis 0")
    refused({**given, "mask": given["mask"] * 3}, "mask must be bool, got int32 with values from 3 to 3")


def test_an_empty_array_is_cast() -> None:
    spec = ComponentSpec("m", (TensorSpec("x", "x", "int64", ("n",)),), ())
    assert check_feeds(spec, {"x": np.zeros(0, np.int32)})["x"].dtype == np.int64


def test_a_scalar_needs_no_axis() -> None:
    spec = ComponentSpec("m", (TensorSpec("x", "x", "int64", ()),), ())
    assert check_feeds(spec, {"x": np.array(3, np.int32)})["x"] == 3


def test_one_row_stands_for_the_batch_where_it_did_in_the_example() -> None:
    spec = dataclasses.replace(SPEC, options={"one_for_all": ["input_ids"]})
    given = feeds() | {"input_ids": np.arange(4)[None]}
    assert check_feeds(spec, given)["input_ids"].tolist() == [[0, 1, 2, 3]] * 3
    refused(given, r"input_ids has 1 along axis 0 \(batch\), but mask has 3")
    with pytest.raises(InputError, match=r"input_ids has 2 along axis 0 \(batch\), but mask has 3"):
        check_feeds(spec, feeds() | {"input_ids": np.zeros((2, 4), np.int64)})
