import json
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from transformers_exporters.artifact.files import record_file
from transformers_exporters.artifact.weights import (
    SAFETENSORS_DTYPES,
    TensorSource,
    link_or_copy,
    read_safetensors_index,
    write_safetensors,
)
from transformers_exporters.errors import ArtifactError

ARRAYS = {
    "embed": np.arange(12, dtype=np.float32).reshape(3, 4),
    "half": np.linspace(0, 1, 5).astype(np.float16),
    "brain": np.linspace(-1, 1, 3).astype(ml_dtypes.bfloat16),
    "ids": np.array([[2**40], [-7]]),
    "flags": np.array([True, False, True]),
    "empty": np.zeros((0, 4), np.float32),
    "scalar": np.array(3, np.int32),
}


def sources(arrays: dict[str, np.ndarray]) -> list[TensorSource]:
    return [TensorSource(name, array.dtype.name, array.shape, array.tobytes) for name, array in arrays.items()]


def values(ref, dtype) -> np.ndarray:
    with ref.file.open("rb") as stream:
        stream.seek(ref.offset)
        return np.frombuffer(stream.read(ref.length), dtype).reshape(ref.shape)


def test_written_tensors_are_read_back_bit_for_bit_and_aligned(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    record = write_safetensors(file, sources(ARRAYS), {"made by": "a test"})
    assert record == record_file(file)
    index = read_safetensors_index(file)
    assert set(index) == set(ARRAYS)
    for name, ref in index.items():
        array = ARRAYS[name]
        assert (ref.dtype, ref.shape, ref.key, ref.file) == (array.dtype.name, array.shape, name, file)
        assert ref.offset % array.itemsize == 0
        np.testing.assert_array_equal(values(ref, array.dtype), array)
    assert min(ref.offset for ref in index.values()) % 64 == 0


def test_the_reference_implementation_reads_what_is_written(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    write_safetensors(file, sources(ARRAYS))
    loaded = safetensors.numpy.load_file(file)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(loaded[name], array)


def test_the_index_reads_what_the_reference_implementation_writes(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    safetensors.numpy.save_file(ARRAYS, file, metadata={"format": "pt"})
    for name, ref in read_safetensors_index(file).items():
        np.testing.assert_array_equal(values(ref, ARRAYS[name].dtype), ARRAYS[name])


def test_only_one_tensor_is_in_memory_at_a_time(tmp_path: Path) -> None:
    alive = 0

    class Counted(bytearray):
        def __init__(self, size: int) -> None:
            nonlocal alive
            assert alive == 0
            alive += 1
            super().__init__(size)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    many = [TensorSource(f"t{i}", "uint8", (1000,), lambda: Counted(1000)) for i in range(5)]
    write_safetensors(tmp_path / "w.safetensors", many)
    assert alive == 0


def test_every_dtype_has_one_code() -> None:
    names = [name for name, _ in SAFETENSORS_DTYPES.values()]
    assert len(set(names)) == len(names)
    for name, width in SAFETENSORS_DTYPES.values():
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        assert dtype.itemsize == width


@pytest.mark.parametrize(
    "source, message",
    [
        (TensorSource("w", "complex128", (1,), lambda: b"0" * 16), "w is complex128"),
        (TensorSource("w", "float32", (2,), lambda: b"0000"), "w has 4 bytes; its dtype and shape need 8"),
    ],
)
def test_a_tensor_that_cannot_be_written_is_named(tmp_path: Path, source: TensorSource, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        write_safetensors(tmp_path / "w.safetensors", [source])


def test_two_tensors_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="Two tensors are named embed"):
        write_safetensors(tmp_path / "w.safetensors", sources({"embed": ARRAYS["embed"]}) * 2)


@pytest.mark.parametrize("kept", [0, 5, 8, 40, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, kept: int) -> None:
    file = tmp_path / "w.safetensors"
    write_safetensors(file, sources(ARRAYS))
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ArtifactError, match="truncated"):
        read_safetensors_index(file)


def entry(dtype="F32", shape=(2,), offsets=(0, 8)) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    "header, message",
    [
        (b"not json", "not JSON"),
        (b"[1]", "not an object"),
        ({"a": 3}, "entry of a is malformed"),
        ({"a": entry(dtype="F4")}, "holds a as F4"),
        ({"a": entry(shape=(3,))}, "size of a"),
        ({"a": entry(shape=(-2,), offsets=(0, -8))}, "size of a"),
        ({"a": entry(offsets=(4, 12))}, "a overlap others or leave a gap"),
        ({"a": entry(), "b": entry(offsets=(4, 12))}, "b overlap others"),
        ({"a": entry(shape=(1,), offsets=(0, 4))}, "4 bytes follow the last tensor"),
    ],
)
def test_a_damaged_header_is_refused(tmp_path: Path, header, message: str) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file = tmp_path / "w.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(ArtifactError, match=message):
        read_safetensors_index(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="Cannot read .*absent.safetensors"):
        read_safetensors_index(tmp_path / "absent.safetensors")


def test_a_link_shares_the_bytes_and_goes_through_symbolic_links(tmp_path: Path) -> None:
    source, target = tmp_path / "blob", tmp_path / "w.safetensors"
    source.write_bytes(b"weights")
    (tmp_path / "snapshot").symlink_to(source)
    assert link_or_copy(tmp_path / "snapshot", target) is True
    assert target.samefile(source)
    assert not target.is_symlink()


def test_where_no_link_is_possible_the_file_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "blob", tmp_path / "w.safetensors"
    source.write_bytes(b"weights")

    def link(*arguments: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", link)
    assert link_or_copy(source, target) is False
    assert target.read_bytes() == b"weights"
    assert not target.samefile(source)
