"""Private folders, and files that are replaced whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.kit.errors import PreconditionError
from muniment.kit.files import private_folder, replace_file


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    made = private_folder(tmp_path / "one")
    assert made == tmp_path / "one"
    assert mode(made) == 0o700


def test_parents_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    private_folder(tmp_path / "one" / "two" / "three")
    assert [mode(tmp_path / one) for one in ("one", "one/two", "one/two/three")] == [0o700] * 3


def test_a_parent_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(mode=0o755)
    private_folder(tmp_path / "one" / "two")
    assert mode(tmp_path / "one") == 0o755


def test_a_folder_that_others_could_enter_is_closed(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(mode=0o755)
    (tmp_path / "one" / "kept").write_text("x")
    assert mode(private_folder(tmp_path / "one")) == 0o700
    assert (tmp_path / "one" / "kept").read_text() == "x"


def test_a_folder_that_its_owner_uses_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(mode=0o755)
    assert mode(private_folder(tmp_path / "one", keep_mode=True)) == 0o755
    assert mode(private_folder(tmp_path / "two", keep_mode=True)) == 0o700


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "one").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PreconditionError) as refused:
        private_folder(tmp_path / "one")
    assert refused.value.reason == "FOLDER_NOT_OURS"


def test_another_users_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = private_folder(tmp_path / "one")
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PreconditionError) as refused:
        private_folder(folder)
    assert refused.value.reason == "FOLDER_NOT_OURS"
    assert str(folder) in str(refused.value)


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_file_in_the_way_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PreconditionError) as refused:
        private_folder(tmp_path / place)
    assert refused.value.reason == "FOLDER_UNUSABLE"
    assert "MUNIMENT_HOME" in str(refused.value)


def test_a_file_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"first")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert mode(tmp_path / "file") == 0o600


def test_a_file_is_replaced_and_closed_to_others(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a longer text that was there before")
    file.chmod(0o644)
    replace_file(file, b"")
    assert file.read_bytes() == b""
    assert mode(file) == 0o600
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_a_failure_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    file = tmp_path / "file"
    replace_file(file, b"first")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if fails == "fsync" else Path, fails, full)
    with pytest.raises(OSError, match="No space"):
        replace_file(file, b"second")
    assert file.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [file]


def test_readers_see_one_whole_content_or_the_other(tmp_path: Path) -> None:
    file = tmp_path / "file"
    replace_file(file, b"first")
    with file.open("rb") as reader:
        replace_file(file, b"second")
        assert reader.read() == b"first"
    assert file.read_bytes() == b"second"
