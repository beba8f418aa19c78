"""The ranking and its candidates, through the index."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from muniment.kit.index import searching
from muniment.kit.index.analysis import query_terms
from muniment.kit.index.lexical import Document, LexicalIndex, Progress, Within


@pytest.fixture
def index(tmp_path: Path) -> LexicalIndex:
    return LexicalIndex(tmp_path / "index.sqlite3")


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


def test_rare_words_tell_more_than_common_ones(index: LexicalIndex) -> None:
    fill(index, ["server port", "server log", "server zebra", "server disk"])
    assert found(index, "server zebra")[0] == "p3"


def test_words_are_found_by_their_stem_and_better_as_they_stand(index: LexicalIndex) -> None:
    fill(index, ["it deploys a thing", "the deployed thing", "nothing here"])
    assert found(index, "deployed") == ["p2", "p1"]


def test_identifiers_are_found_whole_and_by_their_parts(index: LexicalIndex) -> None:
    fill(index, ["see src/app/main.py", "the main road", "parse_config fails"])
    assert found(index, "src/app/main.py")[0] == "p1"
    assert set(found(index, "main")) == {"p1", "p2"}
    assert found(index, "parse_config") == ["p3"]


def test_pieces_of_cjk_runs_are_found(index: LexicalIndex) -> None:
    fill(index, ["\u7aef\u53e3\u662f 8080", "nothing"])
    assert found(index, "\u7aef\u53e3") == ["p1"]


def test_equals_come_newest_first(index: LexicalIndex) -> None:
    fill(index, ["same words"] * 4)
    assert found(index, "same words") == ["p4", "p3", "p2", "p1"]


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
        searching.count_in(packed, word) for word in ("a", "tests", "x.y", "~test", "~a", "b")
    ]
    assert counts == [1, 16, 2, 16, 0, 0]
    assert searching.words_in(packed) == {"a", "test", "x.y"}
