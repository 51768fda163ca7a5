import os
from collections.abc import Callable
from pathlib import Path

import pytest

from transformers_exporters.artifact import store
from transformers_exporters.artifact.files import FileRecord
from transformers_exporters.artifact.manifest import Manifest, ModelRecord
from transformers_exporters.artifact.store import open_artifact, record_files, write_manifest, writing
from transformers_exporters.errors import ArtifactError

MODEL = ModelRecord("m.M", "m.C", "", 0, "float32")


def save(directory: Path, content: bytes = b"graph") -> None:
    with writing(directory) as staging:
        (staging / "sub").mkdir()
        (staging / "model.onnx").write_bytes(content)
        (staging / "sub" / "tokenizer.json").write_bytes(b"{}")
        write_manifest(staging, Manifest("onnx", {}, record_files(staging), MODEL))


def everything(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_a_saved_artifact_opens(tmp_path: Path) -> None:
    save(tmp_path / "deep" / "out")
    root, manifest = open_artifact(tmp_path / "deep" / "out")
    assert root == (tmp_path / "deep" / "out").resolve()
    assert manifest.files["model.onnx"].bytes == 5
    assert list(manifest.files) == ["model.onnx", "sub/tokenizer.json"]
    assert everything(tmp_path / "deep") == [
        "out",
        "out/manifest.json",
        "out/model.onnx",
        "out/sub",
        "out/sub/tokenizer.json",
    ]


def test_the_directory_has_the_permissions_of_any_new_one(tmp_path: Path) -> None:
    save(tmp_path / "out")
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_existing_artifact_is_replaced_as_a_whole(tmp_path: Path) -> None:
    save(tmp_path / "out")
    (tmp_path / "out" / "stale.bin").write_bytes(b"from before")
    with writing(tmp_path / "out") as staging:
        assert (tmp_path / "out" / "model.onnx").read_bytes() == b"graph", "the old artifact stays until the end"
        (staging / "new.onnx").write_bytes(b"new")
        write_manifest(staging, Manifest("onnx", {}, record_files(staging), MODEL))
    assert everything(tmp_path) == ["out", "out/manifest.json", "out/new.onnx"]


def test_an_empty_directory_is_filled_and_a_link_to_one_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert open_artifact(tmp_path / "real")[0] == (tmp_path / "real").resolve()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
@pytest.mark.parametrize("existing", [True, False])
def test_a_failure_leaves_everything_as_it_was(tmp_path: Path, error: type[BaseException], existing: bool) -> None:
    target = tmp_path / "deep" / "out" if not existing else tmp_path / "out"
    if existing:
        save(target)
    before = everything(tmp_path)
    with pytest.raises(error), writing(target) as staging:
        (staging / "half.onnx").write_bytes(b"half")
        raise error
    assert everything(tmp_path) == before
    if existing:
        open_artifact(target)


def test_a_failed_swap_puts_the_old_artifact_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "out")
    before = everything(tmp_path)
    rename = Path.rename

    def fail_on_the_new_one(self: Path, target: Path) -> Path:
        if self.suffix == ".partial":
            raise OSError(16, "Device or resource busy")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_on_the_new_one)
    with pytest.raises(ArtifactError, match="Cannot replace .*busy"):
        save(tmp_path / "out", b"new")
    assert everything(tmp_path) == before
    assert (tmp_path / "out" / "model.onnx").read_bytes() == b"graph"


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="No space left"), writing(tmp_path / "out") as staging:
        (staging / "half").write_bytes(b"half")
        raise OSError(28, "No space left on device")
    assert everything(tmp_path) == []


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(ArtifactError, match="holds files that are not an artifact; choose"):
        save(tmp_path / "out")
    assert everything(tmp_path) == ["out", "out/thesis.txt"]


def test_a_file_is_refused_as_target_and_as_parent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="is a file; choose a directory"):
        save(tmp_path / "file")
    with pytest.raises(ArtifactError, match="Cannot write .*file/out: Not a directory; choose another"):
        save(tmp_path / "file" / "out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_parent_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(ArtifactError, match="Cannot write .*: Permission denied; choose another directory"):
        save(tmp_path / "locked" / "out")


def test_the_current_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match="current directory; choose a directory below it"):
        save(Path())


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda root: (root / "model.onnx").unlink(), "lacks the file model.onnx"),
        (lambda root: (root / "model.onnx").write_bytes(b"gra"), "model.onnx has 3 bytes and should have 5"),
        (lambda root: (root / "model.onnx").write_bytes(b"GRAPH"), "model.onnx was changed after the export"),
        (lambda root: (root / "manifest.json").unlink(), "has no manifest.json"),
        (lambda root: (root / "manifest.json").write_bytes(b"\xff\xfe"), "Cannot read .*manifest.json"),
        (lambda root: (root / "manifest.json").write_text('{"schema'), "manifest is not JSON"),
    ],
)
def test_a_damaged_artifact_is_refused(tmp_path: Path, damage: Callable[[Path], object], message: str) -> None:
    save(tmp_path / "out")
    damage(tmp_path / "out")
    with pytest.raises(ArtifactError, match=message):
        open_artifact(tmp_path / "out")


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is not a directory"):
        open_artifact(tmp_path / "absent")


def test_large_files_are_hashed_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "out")
    (tmp_path / "out" / "model.onnx").write_bytes(b"GRAPH")
    monkeypatch.setattr(store, "HASHED_BELOW", 4)
    open_artifact(tmp_path / "out")
    with pytest.raises(ArtifactError, match="model.onnx was changed"):
        open_artifact(tmp_path / "out", verify_hashes=True)


def test_a_link_out_of_the_directory_is_refused_and_one_inside_is_not(tmp_path: Path) -> None:
    save(tmp_path / "out")
    file = tmp_path / "out" / "model.onnx"
    file.rename(tmp_path / "out" / "kept.onnx")
    file.symlink_to("kept.onnx")
    open_artifact(tmp_path / "out")
    (tmp_path / "secret").write_bytes(b"graph")
    file.unlink()
    file.symlink_to(tmp_path / "secret")
    with pytest.raises(ArtifactError, match="model.onnx is a link to a file outside"):
        open_artifact(tmp_path / "out")


def test_files_hashed_while_writing_are_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"x" * 10)
    known = {"weights": FileRecord("made while writing", 10)}
    assert record_files(tmp_path, known) == known
