"""Candidates with their neighbours, and the vocabulary."""

from __future__ import annotations

import pytest

from muniment.kit.index.lexical import Document, LexicalIndex, Progress, Within, whole_value

HERE = [Within("here")]


@pytest.fixture
def index() -> LexicalIndex:
    index = LexicalIndex(None)
    texts = ["alpha one", "beta two", "gamma alphas", "delta", "alpha epsilon"]
    documents = [
        Document(
            f"p{number}",
            text,
            partition="here",
            number=number * 10,
            series="odd" if number % 2 else "even",
            values=frozenset({text.split()[-1]}),
        )
        for number, text in enumerate(texts, start=1)
    ]
    index.apply(documents, Progress(1, "test", 0))
    return index


def test_candidates_come_with_their_neighbours_of_the_series(index: LexicalIndex) -> None:
    found = index.gather(["epsilon"], HERE, 10)
    assert found.candidates == {50}
    assert sorted(found.documents) == [10, 30, 50]
    assert found.before == {50: 30, 30: 10}
    assert found.after == {30: 50, 10: 30}


def test_neighbours_are_left_out_where_documents_are_wanted_alone(index: LexicalIndex) -> None:
    found = index.gather(["epsilon"], HERE, 10, alone=True)
    assert sorted(found.documents) == [50]


def test_counts_are_of_all_terms_in_order(index: LexicalIndex) -> None:
    found = index.gather(["alpha"], HERE, 10, ["epsilon", whole_value("epsilon")])
    assert found.documents[50].counts == (1.6, 1.6, 1.0)
    # By the stem alone.
    assert found.documents[30].counts == (0.6, 0.0, 0.0)


def test_documents_are_gathered_by_key_too(index: LexicalIndex) -> None:
    found = index.gather([], HERE, 10, ["delta"], keys=["p4", "unknown"])
    assert found.documents[40].counts == (1.6,)
    assert not index.gather([], [Within("elsewhere")], 10, keys=["p4"]).documents


def test_lists_tell_how_many_documents_have_a_word(index: LexicalIndex) -> None:
    assert index.lists(["alpha", "alphas", "zeta", whole_value("two")], HERE) == {
        "alpha": 3,
        "alphas": 3,
        whole_value("two"): 1,
    }
    assert index.lists_from("al", HERE, 5) == {"alpha": 3}
    assert index.lists_from("", [Within("elsewhere")], 5) == {}
    assert index.count(HERE) == 5
    assert index.average_length(HERE) == pytest.approx(9 / 5)
    index.apply([Document("p5", "", partition="here", gone=True)], Progress(2, "test", 0))
    assert index.lists(["alpha", "epsilon"], HERE) == {"alpha": 2}
    assert whole_value("epsilon") not in index.lists([whole_value("epsilon")], HERE)
