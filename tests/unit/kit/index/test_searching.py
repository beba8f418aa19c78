"""The ranking and its candidates, through the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from muniment.kit.index import searching
from muniment.kit.index.analysis import query_terms
from muniment.kit.index.lexical import Document, LexicalIndex, Progress, Within


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LexicalIndex]:
    index = LexicalIndex(tmp_path / "index.sqlite3")
    yield index
    index.close()


def fill(index: LexicalIndex, texts: Iterable[str], partition: str = "p", first: int = 1) -> int:
    numbered = list(enumerate(texts, first))
    documents = [
        Document(f"{partition}{number}", text, partition, place=number, number=number)
        for number, text in numbered
    ]
    index.apply(documents, Progress(first + len(documents), "life", 0))
    return first + len(documents)


def found(index: LexicalIndex, query: str, *within: Within, limit: int = 5) -> list[str]:
    matches = index.search(query_terms(query), within or [Within("p")], limit)
    return [match.key for match in matches]


def test_identifiers_are_found_whole_and_by_their_parts(index: LexicalIndex) -> None:
    fill(index, ["see src/app/main.py", "the main road", "parse_config fails"])
    assert found(index, "src/app/main.py")[0] == "p1"
    assert set(found(index, "main")) == {"p1", "p2"}
    assert found(index, "parse_config") == ["p3"]


def test_partitions_do_not_see_each_other(index: LexicalIndex) -> None:
    behind = fill(index, ["the port is taken"] * 50)
    fill(index, ["the port is 8080", "a ship"], "small", behind)
    assert found(index, "port", Within("small")) == [f"small{behind}"]
    assert found(index, "port", Within("none")) == []
    alone = index.search(["port"], [Within("small")], 5)[0]
    beside = LexicalIndex(None)
    fill(beside, ["the port is 8080", "a ship"], "small")
    assert beside.search(["port"], [Within("small")], 5)[0].score == alone.score


def test_filters_hold_before_any_limit(index: LexicalIndex) -> None:
    documents = [
        Document(
            f"d{number}",
            "the same text",
            "p",
            frozenset({"mine"} if number == 1 else {"theirs"}),
            place=number,
            number=number,
        )
        for number in range(1, 2 * searching._LIST_DOCUMENTS)
    ]
    index.apply(documents, Progress(1, "life", 0))
    assert found(index, "same", Within("p", frozenset({"mine"}))) == ["d1"]


def test_an_old_text_with_all_the_common_words_is_found(index: LexicalIndex) -> None:
    many = searching._LIST_DOCUMENTS
    texts = ["alpha beta gamma"]
    texts += ["alpha only"] * many + ["beta only"] * many + ["gamma only"] * many
    fill(index, texts)
    assert found(index, "alpha beta gamma")[0] == "p1"


def test_common_words_are_combined_until_few_have_them_all(
    index: LexicalIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    newest = searching.Partition.newest

    def watched(
        one: searching.Partition, connection: sqlite3.Connection, tokens: Iterable[str]
    ) -> list[int]:
        wanted = list(tokens)
        asked.append(len(wanted))
        return newest(one, connection, wanted)

    monkeypatch.setattr(searching.Partition, "newest", watched)
    many = searching._LIST_DOCUMENTS
    # The rarer of the common words is the more telling one: alpha, then beta, then gamma.
    others = ["beta and more"] * many + ["gamma and more"] * 2 * many + ["of other things"] * many
    end = fill(index, ["alpha beta gamma", *["alpha beta too"] * many, *others])
    assert found(index, "gamma alpha beta")[0] == "p1"
    assert asked == [1, 1, 1, 2, 3]
    # Where few have the two most telling ones, nobody looks for the third.
    fill(index, ["alpha beta gamma", *["alpha or so"] * many, *others], "other", end)
    asked.clear()
    assert found(index, "gamma alpha beta", Within("other"))[0] == f"other{end}"
    assert asked == [1, 1, 1, 2]


def test_rare_and_common_words_together_are_found_among_many(index: LexicalIndex) -> None:
    many = 2 * searching._LIST_DOCUMENTS
    fill(index, ["common zebra", *["common thing"] * many, "zebra alone"])
    assert found(index, "common zebra", limit=2) == ["p1", f"p{many + 2}"]


def test_what_is_gone_leaves_nothing_behind(index: LexicalIndex) -> None:
    fill(index, ["zebra crossing", "zebra stripes", "plain getUserName text"])
    untouched = LexicalIndex(None)
    fill(untouched, ["zebra crossing", "", ""])
    gone = [Document(key, "", gone=True) for key in ("p2", "p3")]
    index.apply(gone, Progress(9, "life", 0))
    untouched.apply([Document(key, "", gone=True) for key in ("p2", "p3")], Progress(9, "life", 0))
    assert index.search(["zebra"], [Within("p")], 5) == untouched.search(
        ["zebra"], [Within("p")], 5
    )
    assert found(index, "stripes user name plain") == []


def test_a_key_taken_again_has_its_new_text_alone(index: LexicalIndex) -> None:
    fill(index, ["old words"])
    fill(index, ["new words"])
    assert found(index, "old") == []
    assert found(index, "new") == ["p1"]


def test_the_order_of_indexing_makes_no_difference(index: LexicalIndex) -> None:
    texts = [f"word{number % 7} shared thing{number % 3}" for number in range(60)]
    fill(index, texts)
    backwards = LexicalIndex(None)
    for number in range(len(texts), 0, -1):
        fill(backwards, [texts[number - 1]], first=number)
    for query in ("word3 shared", "thing1", "word5 thing2 shared"):
        terms = query_terms(query)
        within = [Within("p")]
        assert index.search(terms, within, 20) == backwards.search(terms, within, 20)


def test_counts_can_be_read_back() -> None:
    packed = searching.packed_counts({"a": 1, "tests": 16, "x.y": 2}, {"a": 1, "test": 16})
    counts = [
        searching.count_in(packed, f" {word} ")
        for word in ("a", "tests", "x.y", "~test", "~a", "b", "test", "x", "y")
    ]
    # Parts of words are no words, and a stem that is a word itself is counted as that alone.
    assert counts == [1, 16, 2, 16, 0, 0, 0, 0, 0]
    assert searching.words_in(packed) == {"a", "test", "x.y"}
