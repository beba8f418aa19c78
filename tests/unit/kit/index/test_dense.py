"""The dense index through its doors, with the real Chroma."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from muniment.kit.errors import UnavailableError
from muniment.kit.index.dense import DenseIndex, DenseProgress
from tests.support.dense import MODEL, HashedEmbedder, an_index, entries, vectors_of

AT_7 = DenseProgress(7, "life", "cursor")


@pytest.fixture(params=["folder", "memory"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DenseIndex]:
    made = an_index(tmp_path / "dense" if request.param == "folder" else None)
    yield made
    made.close()


def found(
    index: DenseIndex, query: str, limit: int = 10, kinds: list[str] | None = None
) -> list[str]:
    vector = HashedEmbedder().embed([query])[0]
    return [match.key for match in index.search(vector, limit, kinds=kinds)]


def test_the_nearest_come_first_with_their_cosine(index: DenseIndex) -> None:
    listed = entries("harbour", "lantern", "quorum", "harbour lantern")
    index.apply(listed, (), AT_7)
    asked = listed[0].vector
    matches = index.search(asked, 3)
    exact = sorted(((float(one.vector @ asked), one.key) for one in listed), reverse=True)[:3]
    assert [match.key for match in matches] == [key for _, key in exact]
    assert [match.similarity for match in matches] == pytest.approx(
        [cosine for cosine, _ in exact], abs=1e-4
    )
    assert index.search(asked, 0) == []


def test_an_empty_one_finds_nothing(index: DenseIndex) -> None:
    assert index.progress == DenseProgress(0, "", None)
    assert found(index, "harbour") == []
    assert index.count == 0
    assert not index.holders([])


def test_entries_are_replaced_and_go(index: DenseIndex) -> None:
    index.apply(entries("harbour", "lantern", "quorum"), (), AT_7)
    (other,) = entries("something else")
    index.apply([replace(other, key="harbour", kind="other")], ["lantern", "never there"], None)
    assert index.progress == AT_7
    assert sorted(index.keys()) == ["harbour", "quorum"]
    assert index.known(["harbour", "lantern"]) == {"harbour": ("other", other.digest)}
    assert index.holders([other.digest, "0" * 64]) == {
        other.digest: {"harbour"},
        "0" * 64: set(),
    }
    assert index.digests() == {other.digest, entries("quorum")[0].digest}
    vectors = vectors_of(index, ["harbour", "lantern"])
    assert list(vectors) == ["harbour"]
    assert np.allclose(vectors["harbour"], other.vector, atol=1e-6)
    # Of two with the same key the last counts, and what is there is not gone.
    (first,) = entries("first")
    index.apply([other, replace(first, key=other.key)], [other.key], None)
    assert index.known([other.key]) == {other.key: ("note", first.digest)}


def test_a_search_within_kinds(index: DenseIndex) -> None:
    common = [one for number in range(60) for one in entries(f"common {number}", kind="common")]
    index.apply([*common, *entries("common rarity", kind="rare")], (), AT_7)
    assert found(index, "common", 1, ["rare"]) == ["common rarity"]
    assert found(index, "common", 5, ["rare"]) == ["common rarity"]
    assert len(found(index, "common", 50, ["common"])) == 50
    assert len(found(index, "common", 500, ["common", "rare"])) == 61
    assert found(index, "common", 5, ["unknown"]) == []
    assert found(index, "common", 5, []) == []


def test_keys_are_any_text(index: DenseIndex) -> None:
    long = "k\u00e9y " * 3000
    listed = [replace(one, key=key) for one, key in zip(entries("a", "b"), [long, ""], strict=True)]
    index.apply(listed, (), AT_7)
    assert set(index.keys()) == {long, ""}
    assert found(index, "a", 1) == [long]


def test_a_reset_forgets_everything(index: DenseIndex) -> None:
    index.apply(entries("harbour"), (), AT_7)
    index.reset()
    assert (index.progress, index.count) == (DenseProgress(0, "", None), 0)
    index.apply(entries("lantern"), (), AT_7)
    assert found(index, "lantern") == ["lantern"]


def test_a_closed_one_says_so(index: DenseIndex) -> None:
    index.apply(entries("harbour"), (), AT_7)
    index.close()
    with pytest.raises(UnavailableError, match="closed"):
        found(index, "harbour")


def test_it_is_there_after_it_was_closed(tmp_path: Path) -> None:
    for number in range(3):
        index = an_index(tmp_path / "dense")
        assert index.count == number
        index.apply(entries(f"note {number}"), (), DenseProgress(number, "life", None))
        index.close()
    index = an_index(tmp_path / "dense")
    assert index.progress == DenseProgress(2, "life", None)
    assert found(index, "note 1", 1) == ["note 1"]
    index.reset()
    index.close()
    index = an_index(tmp_path / "dense")
    assert (index.progress, index.count) == (DenseProgress(0, "", None), 0)
    index.close()


@pytest.mark.parametrize(("model", "dimensions"), [("other", 16), (MODEL, 8)])
def test_that_of_another_model_is_made_anew(tmp_path: Path, model: str, dimensions: int) -> None:
    index = an_index(tmp_path / "dense")
    index.apply(entries("harbour"), (), AT_7)
    index.close()
    index = DenseIndex(tmp_path / "dense", model, dimensions)
    assert (index.progress, index.count) == (DenseProgress(0, "", None), 0)
    index.close()


def test_those_in_memory_share_nothing_and_touch_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("CHROMA_API_IMPL=nonsense\nPERSIST_DIRECTORY=elsewhere\n")
    one, other = an_index(None), an_index(None)
    texts = [f"note {number}" for number in range(1200)]
    one.apply(entries(*texts), (), AT_7)
    assert (one.count, other.count) == (1200, 0)
    assert sum(1 for _ in one.keys()) == 1200  # noqa: SIM118 - it is no dict
    opened = [str(path.resolve()) for path in Path("/proc/self/fd").iterdir()]
    assert not [path for path in opened if "etilqs" in path or str(tmp_path) in path]
    one.close()
    assert other.count == 0
    other.close()
    assert [path.name for path in tmp_path.iterdir()] == [".env"]


def test_nobody_else_may_read_the_files(tmp_path: Path) -> None:
    index = an_index(tmp_path / "dense")
    index.apply(entries(*(f"note {number}" for number in range(1100))), (), AT_7)
    modes = {True: set[int](), False: set[int]()}
    for path in (tmp_path / "dense").rglob("*"):
        modes[path.is_dir()].add(path.stat().st_mode & 0o777)
    assert modes == {True: {0o700}, False: {0o600}}
    index.close()


def test_many_search_while_one_writes_and_resets(index: DenseIndex) -> None:
    index.apply(entries("harbour"), (), AT_7)
    wrong: list[object] = []
    done = threading.Event()

    def searching() -> None:
        try:
            while not done.is_set():
                assert len(found(index, "harbour", 1)) <= 1
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=searching) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(5):
        index.apply(entries(*(f"note {number} {one}" for one in range(20))), (), AT_7)
        index.reset()
    done.set()
    for thread in threads:
        thread.join(20.0)
    assert not wrong
