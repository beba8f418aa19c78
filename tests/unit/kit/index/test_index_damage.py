"""An index file that is damaged, foreign, half made or gone: it is told, and made anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment.kit.errors import UnavailableError
from muniment.kit.index import lexical
from muniment.kit.index.lexical import LexicalIndex, Progress, delete_index
from tests.support.indexes import add, apply, at, keys


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LexicalIndex]:
    index = LexicalIndex(tmp_path / "index" / "lexical.sqlite3")
    yield index
    index.close()


def damaged(path: Path, kind: str) -> None:
    size = path.stat().st_size
    match kind:
        case "empty":
            path.write_bytes(b"")
        case "garbage":
            path.write_bytes(b"no database" * 1000)
        case "cut":
            with path.open("rb+") as file:
                file.truncate(size // 2)
        case "overwritten":
            with path.open("rb+") as file:
                file.seek(4096)
                file.write(b"\xff" * (size - 8192))
        case "other analysis":
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA user_version = 1")
            connection.close()
        case "another database":
            path.unlink()
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE a (b)")
            connection.close()


@pytest.mark.parametrize(
    "kind", ["empty", "garbage", "cut", "overwritten", "other analysis", "another database"]
)
def test_a_file_that_cannot_be_used_is_made_anew(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lexical.sqlite3"
    index = LexicalIndex(path)
    add(index, *(f"needle {number}" for number in range(300)), position=300)
    index.close()
    damaged(path, kind)
    index = LexicalIndex(path)
    assert index.progress == Progress(0, "", 0)
    assert keys(index, "needle") == []
    add(index, "needle")
    assert keys(index, "needle") == ["needle"]
    index.close()


def test_an_interrupted_making_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lexical.sqlite3"
    tables = lexical._TABLES
    monkeypatch.setattr(lexical, "_TABLES", tables[: tables.index("CREATE VIRTUAL")] + "oops")
    with pytest.raises(UnavailableError):
        LexicalIndex(path)
    monkeypatch.setattr(lexical, "_TABLES", tables)
    index = LexicalIndex(path)
    add(index, "needle")
    assert keys(index, "needle") == ["needle"]
    index.close()


def demand_unavailable(index: LexicalIndex, *reasons: str) -> None:
    """Fail where it can be used, or fails for another reason, one for each use."""
    uses: tuple[Callable[[], object], ...] = (
        lambda: keys(index, "needle"),
        lambda: index.progress,
        lambda: apply(index, [], 1),
    )
    for use, reason in zip(uses, reasons, strict=True):
        with pytest.raises(UnavailableError) as refused:
            use()
        assert refused.value.reason == reason


def test_an_index_whose_tables_vanished_is_damaged_until_it_is_reset(
    index: LexicalIndex, tmp_path: Path
) -> None:
    add(index, "needle")
    index.close()
    delete_index(tmp_path / "index" / "lexical.sqlite3")
    demand_unavailable(index, *["INDEX_DAMAGED"] * 3)
    index.reset()
    assert index.progress == Progress(0, "", 0)
    assert keys(index, "needle") == []
    add(index, "needle")
    assert keys(index, "needle") == ["needle"]


def test_an_index_that_is_overwritten_while_it_is_open_is_damaged_until_it_is_reset(
    index: LexicalIndex, tmp_path: Path
) -> None:
    add(index, *(f"needle {number}" for number in range(300)))
    index.close()
    damaged(tmp_path / "index" / "lexical.sqlite3", "garbage")
    demand_unavailable(index, *["INDEX_DAMAGED"] * 3)
    index.reset()
    add(index, "needle")
    assert keys(index, "needle") == ["needle"]


def test_an_index_that_cannot_be_reached_is_unavailable_and_not_damaged(
    index: LexicalIndex, tmp_path: Path
) -> None:
    add(index, "needle")
    index.close()
    aside = tmp_path / "aside"
    (tmp_path / "index").rename(aside)
    demand_unavailable(index, *["INDEX_UNAVAILABLE"] * 3)
    aside.rename(tmp_path / "index")
    assert keys(index, "needle") == ["needle"]
    assert index.progress == at(1)


def test_an_index_that_is_not_there_is_no_mistake_to_delete(tmp_path: Path) -> None:
    path = tmp_path / "lexical.sqlite3"
    index = LexicalIndex(path)
    add(index, "needle")
    delete_index(path)
    delete_index(path)
    assert list(tmp_path.iterdir()) == []
    index.close()
