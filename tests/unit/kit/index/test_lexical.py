"""The lexical index finds what it was given, within its scopes, and mends itself."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.index import lexical
from muniment.kit.index.analysis import analyse, query_terms
from muniment.kit.index.lexical import (
    Document,
    LexicalIndex,
    Progress,
    Within,
    scope,
)
from tests.support.homes import a_folder
from tests.support.indexes import OURS, THEIRS, add, apply, at, keys


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LexicalIndex]:
    index = LexicalIndex(tmp_path / "index" / "lexical.sqlite3")
    yield index
    index.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[LexicalIndex]:
    """One that every example adds to, under a scope of its own."""
    with a_folder() as folder:
        index = LexicalIndex(folder / "lexical.sqlite3")
        yield index
        index.close()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("the port is 8443", "which port?"),
        ("Retries are capped at five.", "retry"),
        ("class HTTPServer", "httpserver"),
        ("class HTTPServer", "http server"),
        ("def getUserName(self)", "user name"),
        ("edit src/kit/app.py", "app.py"),
        ("edit src/kit/app.py", "src/kit/app.py"),
        ("MAX_RETRIES = 5", "max_retries"),
        ("MAX_RETRIES = 5", "max retries"),
        ("東京都庁の設定", "設定"),
        ("東京都庁の設定", "京"),
        ("Das Café in der Straße", "cafe strasse"),
        ("What was it?", "what was it"),
        ("don't", "don't"),
        ("\u1c90\u1c91", "\u1c90\u1c91"),
        ("\u19b3 \u19b9", "\u19b9"),
        ("\U0001e900\U0001e901", "\U0001e900\U0001e901"),
    ],
)
def test_a_text_is_found_by_its_words(index: LexicalIndex, text: str, query: str) -> None:
    add(index, "something else", text)
    assert keys(index, query) == [text]


examples = itertools.count()


@settings(max_examples=60)
@given(text=st.text(min_size=1, max_size=30))
def test_every_term_of_a_text_finds_it(shared: LexicalIndex, text: str) -> None:
    key = str(next(examples))
    partition = f"{key} {text}"
    apply(shared, [Document(key, text, partition)])
    for term in query_terms(text):
        assert keys(shared, term, partition=partition) == [key]
        (match,) = shared.search([term], [Within(partition)], 10)
        assert match.terms == (term,)


INJECTIONS = [
    '"', '""', "'", "(", ")", "((", "a AND", "NOT a", "NEAR(a b, 2)", "a*", "^a", "a^2", "{a}: b",
    "tokens: x", "tokens : a OR", "-a", "a -- b", "a; DROP TABLE terms", "\0", "a\0b", "%", "\\",
    'a" OR tokens:"x', "1~a", '" OR {tokens} : 2~secret OR "', 'x" OR "2~secret', "a + b",
    "AND OR NOT NEAR",
]  # fmt: skip


@pytest.mark.parametrize("query", INJECTIONS)
def test_no_query_is_taken_for_more_than_words(index: LexicalIndex, query: str) -> None:
    apply(
        index,
        [
            Document("words", "a b c and or not near", OURS),
            Document("query", query, OURS),
            Document("secret", "secret of another project", THEIRS),
            Document("same", query, THEIRS),
        ],
    )
    found = keys(index, query)
    assert set(found) <= {"words", "query"}
    if query_terms(query):
        assert "query" in found


@settings(max_examples=60)
@given(query=st.text(alphabet="ab\"'()*^:{}-+ANDORT\0\\;%é中", max_size=20))
def test_no_text_is_an_error(shared: LexicalIndex, query: str) -> None:
    for match in shared.search(query_terms(query), [Within(OURS)], 5):
        assert match.score > 0
        assert match.terms


@pytest.mark.parametrize("value", ["", "p", 'p"', "x" * 1000, "é", "a AND b", "p\0"])
def test_scopes_may_have_any_value(index: LexicalIndex, value: str) -> None:
    def found(kind: str, wanted: str) -> list[str]:
        return keys(index, "needle", Within(OURS, frozenset({scope(kind, wanted)})))

    apply(index, [Document("needle", "needle", OURS, frozenset({scope("session", value)}))])
    assert found("session", value) == ["needle"]
    assert found("session", value + "x") == []
    assert found("project", value) == []


@pytest.mark.parametrize("value", ["", "p", 'p"', "x" * 1000, "é", "a AND b", "p\0", "1", "~", "!"])
def test_partitions_may_have_any_name(index: LexicalIndex, value: str) -> None:
    add(index, "needle", partition=value)
    assert keys(index, "needle", partition=value) == ["needle"]
    assert keys(index, "needle", partition=value + "x") == []


def test_a_small_project_finds_its_own_among_many(index: LexicalIndex) -> None:
    crowd = [
        Document(f"crowd {number}", "port port port of the server", THEIRS)
        for number in range(2000)
    ]
    few = [
        Document(f"own {number}", f"our port, mentioned once in {number}", OURS)
        for number in range(5)
    ]
    apply(index, [*crowd[:1000], *few, *crowd[1000:]])
    assert sorted(keys(index, "port")) == [f"own {number}" for number in range(5)]
    assert len(keys(index, "port", partition=THEIRS, limit=7)) == 7


def test_filters_combine(index: LexicalIndex) -> None:
    one, two, path = scope("session", "1"), scope("session", "2"), scope("path", "a.py")
    apply(
        index,
        [
            Document("a", "needle", OURS, frozenset({one})),
            Document("b", "needle", OURS, frozenset({two, path})),
            Document("c", "needle", THEIRS, frozenset({one, path})),
        ],
    )

    def found(*within: Within) -> list[str]:
        return sorted(keys(index, "needle", *within))

    def ours(*scopes: str) -> Within:
        return Within(OURS, frozenset(scopes))

    assert found(ours()) == ["a", "b"]
    assert found(ours(path)) == ["b"]
    assert found(ours(two, path)) == ["b"]
    assert found(ours(one, path)) == []
    assert found(Within(OURS), Within(THEIRS)) == ["a", "b", "c"]
    assert found(ours(two), Within(THEIRS, frozenset({path}))) == ["b", "c"]
    assert found(ours(path), Within(THEIRS, frozenset({two}))) == ["b"]


def test_what_was_taken_out_is_not_found_until_it_is_back(index: LexicalIndex) -> None:
    add(index, "needle one", "needle two")
    apply(index, [Document("needle one", "", gone=True)])
    assert keys(index, "needle") == ["needle two"]
    apply(index, [Document(key, "", gone=True) for key in ("never there", "needle one")])
    assert keys(index, "needle one") == ["needle two"]
    add(index, "needle one")
    assert keys(index, "needle one") == ["needle one", "needle two"]
    # Twice the same is the same.
    add(index, "needle one")
    assert keys(index, "needle one") == ["needle one", "needle two"]
    assert sorted(index.keys()) == ["needle one", "needle two"]


def test_more_telling_words_come_first(index: LexicalIndex) -> None:
    add(index, *(f"the server said {number}" for number in range(20)))
    add(index, "the server uses port 8443", "a timeout of 30 s")
    assert keys(index, "server timeout")[0] == "a timeout of 30 s"
    assert keys(index, "server port")[0] == "the server uses port 8443"


def test_a_word_as_it_stands_comes_before_its_stem(index: LexicalIndex) -> None:
    add(index, "it retried once", "it retries once")
    assert keys(index, "retries") == ["it retries once", "it retried once"]


def test_of_equals_the_newest_comes_first(index: LexicalIndex) -> None:
    texts = [f"needle in haystack {letter}" for letter in "abc"]
    apply(index, [Document(text, text, OURS, place=place) for place, text in enumerate(texts)])
    assert keys(index, "needle") == texts[::-1]
    assert keys(index, "needle", limit=2) == texts[:0:-1]


def test_the_answer_is_a_function_of_the_index(tmp_path: Path) -> None:
    documents = [
        Document(f"d{number}", f"port {number % 7} of server {number % 5} in {number}", OURS)
        for number in range(200)
    ]

    def answer(index: LexicalIndex) -> list[lexical.Match]:
        return index.search(query_terms("port 3 server 2 in 17"), [Within(OURS)], 50)

    answers = []
    for name, portion in (("one", 200), ("two", 7)):
        index = LexicalIndex(tmp_path / name)
        for start in range(0, len(documents), portion):
            apply(index, documents[start : start + portion])
        answers.append(answer(index))
        index.close()
        reopened = LexicalIndex(tmp_path / name)
        answers.append(answer(reopened))
        reopened.close()
    assert answers[0] == answers[1] == answers[2] == answers[3]
    assert len(answers[0]) == 50
    scores = [match.score for match in answers[0]]
    assert scores == sorted(scores, reverse=True)


def test_a_match_says_which_terms_it_has(index: LexicalIndex) -> None:
    add(index, "port of the server", "the port")
    first, second = index.search(["server", "absent", "port"], [Within(OURS)], 10)
    assert (first.key, first.terms) == ("port of the server", ("server", "port"))
    assert (second.key, second.terms) == ("the port", ("port",))


def test_nothing_to_search_for_finds_nothing(index: LexicalIndex) -> None:
    assert index.search([], [Within(OURS)], 10) == []
    assert index.search(["needle"], [Within(OURS)], 10) == []
    add(index, "needle")
    assert index.search([], [Within(OURS)], 10) == []
    assert index.search(["needle"], [], 10) == []


def test_documents_and_progress_are_taken_together(index: LexicalIndex) -> None:
    assert index.progress == Progress(0, "", 0)
    add(index, "needle one", position=7)
    assert index.progress == at(7)

    def breaks() -> Iterator[Document]:
        yield Document("needle two", "needle two", OURS)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        index.apply(breaks(), at(8))
    assert index.progress == at(7)
    assert keys(index, "needle") == ["needle one"]


def test_it_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "lexical.sqlite3"
    index = LexicalIndex(path)
    index.apply([Document("needle", "needle", OURS)], Progress(5, "another life", 3))
    index.close()
    index = LexicalIndex(path)
    assert index.progress == Progress(5, "another life", 3)
    assert keys(index, "needle") == ["needle"]
    index.close()


@pytest.mark.parametrize("in_memory", [False, True], ids=["file", "memory"])
def test_a_reset_forgets_everything(tmp_path: Path, in_memory: bool) -> None:
    index = LexicalIndex(None if in_memory else tmp_path / "lexical.sqlite3")
    add(index, "needle", position=5)
    index.reset()
    assert index.progress == Progress(0, "", 0)
    assert keys(index, "needle") == []
    assert list(index.keys()) == []
    add(index, "needle")
    assert keys(index, "needle") == ["needle"]
    index.close()


def test_an_index_in_memory_touches_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    index = LexicalIndex(None)
    add(index, *(f"needle {number}" for number in range(300)))
    assert len(keys(index, "needle", limit=300)) == 200
    assert list(tmp_path.iterdir()) == []
    index.close()


def test_it_is_private(index: LexicalIndex, tmp_path: Path) -> None:
    assert (tmp_path / "index").stat().st_mode & 0o777 == 0o700


class Reader(threading.Thread):
    """Searches in a thread of its own whenever it is asked to."""

    def __init__(self, index: LexicalIndex) -> None:
        super().__init__()
        self._index = index
        self._ask, self._answered = threading.Event(), threading.Event()
        self._answer: list[str] = []
        self._over = False
        self.start()

    def run(self) -> None:
        while self._ask.wait(20) and not self._over:
            self._ask.clear()
            self._answer = sorted(keys(self._index, "needle", limit=100))
            self._answered.set()

    def answer(self) -> list[str]:
        """What it finds now."""
        self._answered.clear()
        self._ask.set()
        assert self._answered.wait(20)
        return self._answer

    def end(self) -> None:
        """End the thread."""
        self._over = True
        self._ask.set()
        self.join()


def test_threads_see_what_was_taken_and_live_through_resets(index: LexicalIndex) -> None:
    readers = [Reader(index) for _ in range(2)]
    try:
        for round_ in range(3):
            add(index, "needle one")
            assert [reader.answer() for reader in readers] == [["needle one"]] * 2
            add(index, f"needle {round_}")
            assert [len(reader.answer()) for reader in readers] == [2, 2]
            index.reset()
            assert [reader.answer() for reader in readers] == [[], []]
    finally:
        for reader in readers:
            reader.end()


def test_readers_do_not_wait_for_a_writer(index: LexicalIndex) -> None:
    add(index, "needle one")
    reader = Reader(index)

    def slowly() -> Iterator[Document]:
        yield Document("needle two", "needle two", OURS, place=1)
        assert reader.answer() == ["needle one"]

    try:
        index.apply(slowly(), at(2))
        assert reader.answer() == ["needle one", "needle two"]
    finally:
        reader.end()


def test_many_threads_at_once_do_not_disturb_each_other(index: LexicalIndex) -> None:
    texts = [f"needle number {number} of getUserName{number}" for number in range(60)]
    failures: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                found = keys(index, "needle", limit=100)
                assert set(found) <= set(texts)
                assert analyse("getUserName").exact.keys() >= {"user"}
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for text in texts:
        add(index, text)
    done.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(keys(index, "needle", limit=100)) == 60
