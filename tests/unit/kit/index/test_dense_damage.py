"""Files of the dense index that are damaged, half written or gone: it is made anew, never trusted.

Chroma opens some of them without a look and ends the process; so every case here is also one of a
test run that goes on.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from muniment.kit.errors import UnavailableError
from muniment.kit.index import dense
from muniment.kit.index.dense import DenseProgress
from tests.support.dense import an_index, entries, vectors_of

AT_7 = DenseProgress(7, "life", None)
NEW = DenseProgress(0, "", None)
FILES = ("chroma.sqlite3", "header.bin", "data_level0.bin", "link_lists.bin")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index whose graph is on disk, as a process leaves it that is killed."""
    folder = tmp_path_factory.mktemp("whole") / "dense"
    index = an_index(folder)
    for start in range(0, 2200, 200):
        index.apply(entries(*(f"n{start + one}" for one in range(200))), (), AT_7)
    killed = folder.with_name("killed")
    shutil.copytree(folder, killed)
    index.close()
    return killed


def one_file(folder: Path, name: str) -> Path:
    (path,) = folder.rglob(name)
    return path


def test_who_is_killed_goes_on_with_what_is_there(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "dense")
    index = an_index(tmp_path / "dense")
    assert (index.progress, index.count) == (AT_7, 2200)
    (one,) = entries("n2100")
    assert index.search(one.vector, 1)[0].key == "n2100"
    index.close()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["rubbish", "emptied", "cut", "gone"])
def test_files_that_were_harmed_are_not_opened(
    whole: Path, tmp_path: Path, name: str, harm: str
) -> None:
    shutil.copytree(whole, tmp_path / "dense")
    path = one_file(tmp_path / "dense", name)
    size = path.stat().st_size
    match harm:
        case "rubbish":
            path.write_bytes(b"rubbish." * (size // 8))
        case "emptied":
            path.write_bytes(b"")
        case "cut":
            os.truncate(path, size // 2)
        case "gone":
            path.unlink()
    index = an_index(tmp_path / "dense")
    assert (index.progress, index.count) == (NEW, 0)
    index.apply(entries("harbour"), (), AT_7)
    index.close()
    index = an_index(tmp_path / "dense")
    assert (index.progress, index.count) == (AT_7, 1)
    index.close()


@pytest.mark.parametrize("seal", [None, b"", b"[]", b"{}"])
def test_a_graph_without_its_seal_is_not_opened(
    whole: Path, tmp_path: Path, seal: bytes | None
) -> None:
    shutil.copytree(whole, tmp_path / "dense")
    path = one_file(tmp_path / "dense", "seal.json")
    path.unlink()
    if seal is not None:
        path.write_bytes(seal)
    index = an_index(tmp_path / "dense")
    assert (index.progress, index.count) == (NEW, 0)
    index.close()


def test_a_progress_that_is_none_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = an_index(tmp_path / "dense")
    with monkeypatch.context() as patch:
        patch.setattr(dense, "astuple", lambda _: ["nonsense"])
        index.apply(entries("harbour"), (), AT_7)
    index.close()
    index = an_index(tmp_path / "dense")
    assert (index.progress, index.count) == (NEW, 0)
    index.close()


def test_a_folder_that_vanishes_under_way_is_told_and_reset(tmp_path: Path) -> None:
    index = an_index(tmp_path / "dense")
    index.apply(entries("harbour"), (), AT_7)
    shutil.rmtree(tmp_path / "dense")
    with pytest.raises(UnavailableError) as caught:
        index.apply(entries("lantern"), (), AT_7)
    assert caught.value.reason == "INDEX_DAMAGED"
    index.reset()
    index.apply(entries("quorum"), (), AT_7)
    assert list(index.keys()) == ["quorum"]
    index.close()


def test_after_a_reset_no_file_has_what_was_dropped(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "dense"
    shutil.copytree(whole, folder)
    index = an_index(folder)
    vectors = vectors_of(index, [f"n{number}" for number in range(200)])

    def traced() -> list[str]:
        """Whose vector stands in a file; Chroma writes some with other last bits."""
        contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
        return [
            key
            for key, vector in vectors.items()
            if any(vector.tobytes()[8:48] in content for content in contents)
        ]

    dropped = traced()
    assert dropped
    index.apply((), dropped, None)
    index.reset()
    assert not traced()
    index.close()
