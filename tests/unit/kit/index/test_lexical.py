"""The lexical index finds what it was given, within its scopes, and mends itself."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.errors import UnavailableError
from muniment.kit.index import lexical
from muniment.kit.index.analysis import analyse, query_terms
from muniment.kit.index.lexical import Document, LexicalIndex, all_of, any_of, scope
from tests.support.homes import a_folder

ALL = scope("project", "p")
OTHER = scope("project", "q")


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


def add(index: LexicalIndex, *texts: str, within: str = ALL, position: int | None = None) -> None:
    index.apply(
        [Document(text, text, frozenset({within})) for text in texts],
        index.position + 1 if position is None else position,
    )


def keys(index: LexicalIndex, query: str, within: str = ALL, limit: int = 10) -> list[str]:
    return [match.key for match in index.search(query_terms(query), within, limit)]


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


@settings(max_examples=60)
@given(text=st.text(min_size=1, max_size=30), examples=st.shared(st.builds(itertools.count)))
def test_every_term_of_a_text_finds_it(
    shared: LexicalIndex, text: str, examples: Iterator[int]
) -> None:
    within = scope("example", f"{id(examples)} {next(examples)} {text}")
    add(shared, text, within=within)
    for term in query_terms(text):
        assert keys(shared, term, within) == [text]
        (match,) = shared.search([term], within, 10)
        assert match.terms == (term,)


INJECTIONS = [
    '"', '""', "'", "(", ")", "((", "a AND", "NOT a", "NEAR(a b, 2)", "a*", "^a", "a^2", "{a}: b",
    "scopes: x", "exact : a OR", "-a", "a -- b", "a; DROP TABLE terms", "\0", "a\0b", "%", "\\",
    'a" OR scopes:"x', ALL, f'" OR {{scopes}} : {OTHER} OR "', "a + b", "AND OR NOT NEAR",
]  # fmt: skip


@pytest.mark.parametrize("query", INJECTIONS)
def test_no_query_is_taken_for_more_than_words(index: LexicalIndex, query: str) -> None:
    add(index, "a b c and or not near", query)
    add(index, "secret of another project", query + " ", within=OTHER)
    found = keys(index, query)
    assert set(found) <= {"a b c and or not near", query}
    if query_terms(query):
        assert query in found


@settings(max_examples=60)
@given(query=st.text(alphabet="ab\"'()*^:{}-+ANDORT\0\\;%é中", max_size=20))
def test_no_text_is_an_error(shared: LexicalIndex, query: str) -> None:
    for match in shared.search(query_terms(query), ALL, 5):
        assert match.score > 0
        assert match.terms


@pytest.mark.parametrize("value", ["", "p", 'p"', "x" * 1000, "é", "a AND b", "p\0"])
def test_scopes_may_have_any_value(index: LexicalIndex, value: str) -> None:
    add(index, "needle", within=scope("session", value))
    assert keys(index, "needle", scope("session", value)) == ["needle"]
    assert keys(index, "needle", scope("session", value + "x")) == []
    assert keys(index, "needle", scope("project", value)) == []


def test_a_small_project_finds_its_own_among_many(index: LexicalIndex) -> None:
    crowd = [
        Document(f"crowd {number}", "port port port of the server", frozenset({OTHER}))
        for number in range(2000)
    ]
    few = [
        Document(f"own {number}", f"our port, mentioned once in {number}", frozenset({ALL}))
        for number in range(5)
    ]
    index.apply([*crowd[:1000], *few, *crowd[1000:]], 1)
    assert sorted(keys(index, "port")) == [f"own {number}" for number in range(5)]
    assert len(keys(index, "port", OTHER, limit=7)) == 7


def test_filters_combine(index: LexicalIndex) -> None:
    one, two, path = scope("session", "1"), scope("session", "2"), scope("path", "a.py")
    index.apply(
        [
            Document("a", "needle", frozenset({ALL, one})),
            Document("b", "needle", frozenset({ALL, two, path})),
            Document("c", "needle", frozenset({OTHER, one, path})),
        ],
        1,
    )
    assert set(keys(index, "needle", all_of(ALL, any_of(one, two)))) == {"a", "b"}
    assert keys(index, "needle", all_of(ALL, path)) == ["b"]
    assert keys(index, "needle", all_of(ALL, any_of(all_of(one, path), two))) == ["b"]
    assert set(keys(index, "needle", any_of(ALL, OTHER))) == {"a", "b", "c"}


def test_what_was_taken_out_is_not_found_until_it_is_back(index: LexicalIndex) -> None:
    add(index, "needle one", "needle two")
    index.apply([Document("needle one", None)], 2)
    assert keys(index, "needle") == ["needle two"]
    index.apply([Document("never there", None), Document("needle one", None)], 3)
    assert keys(index, "needle one") == ["needle two"]
    add(index, "needle one")
    assert keys(index, "needle one") == ["needle one", "needle two"]
    # Twice the same is the same.
    add(index, "needle one")
    assert keys(index, "needle one") == ["needle one", "needle two"]


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
    add(index, *texts)
    assert keys(index, "needle") == texts[::-1]
    assert keys(index, "needle", limit=2) == texts[:0:-1]


def test_the_answer_is_a_function_of_the_index(tmp_path: Path) -> None:
    texts = [f"port {number % 7} of server {number % 5} in {number}" for number in range(200)]
    answers = []
    for name, portion in (("one", 200), ("two", 7)):
        index = LexicalIndex(tmp_path / name)
        for start in range(0, len(texts), portion):
            add(index, *texts[start : start + portion])
        answers.append(index.search(query_terms("port 3 server 2 in 17"), ALL, 50))
        index.close()
        reopened = LexicalIndex(tmp_path / name)
        answers.append(reopened.search(query_terms("port 3 server 2 in 17"), ALL, 50))
        reopened.close()
    assert answers[0] == answers[1] == answers[2] == answers[3]
    assert len(answers[0]) == 50
    scores = [match.score for match in answers[0]]
    assert scores == sorted(scores, reverse=True)


def test_a_match_says_which_terms_it_has(index: LexicalIndex) -> None:
    add(index, "port of the server", "the port")
    first, second = index.search(["server", "absent", "port"], ALL, 10)
    assert (first.key, first.terms) == ("port of the server", ("server", "port"))
    assert (second.key, second.terms) == ("the port", ("port",))


def test_nothing_to_search_for_finds_nothing(index: LexicalIndex) -> None:
    assert index.search([], ALL, 10) == []
    assert index.search(["needle"], ALL, 10) == []


def test_documents_and_position_are_taken_together(index: LexicalIndex) -> None:
    assert index.position == 0
    add(index, "needle one", position=7)
    assert index.position == 7

    def breaks() -> Iterator[Document]:
        yield Document("needle two", "needle two", frozenset({ALL}))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        index.apply(breaks(), 8)
    assert index.position == 7
    assert keys(index, "needle") == ["needle one"]


def test_it_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "lexical.sqlite3"
    index = LexicalIndex(path)
    add(index, "needle", position=5)
    index.close()
    index = LexicalIndex(path)
    assert index.position == 5
    assert keys(index, "needle") == ["needle"]
    index.close()


def test_a_reset_forgets_everything(index: LexicalIndex) -> None:
    add(index, "needle", position=5)
    index.reset()
    assert index.position == 0
    assert keys(index, "needle") == []
    add(index, "needle")
    assert keys(index, "needle") == ["needle"]


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
    assert index.position == 0
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
    with pytest.raises(sqlite3.OperationalError):
        LexicalIndex(path)
    monkeypatch.setattr(lexical, "_TABLES", tables)
    index = LexicalIndex(path)
    add(index, "needle")
    assert keys(index, "needle") == ["needle"]
    index.close()


def test_an_index_that_vanished_is_unavailable(index: LexicalIndex, tmp_path: Path) -> None:
    add(index, "needle")
    index.close()
    (tmp_path / "index" / "lexical.sqlite3").unlink()
    for use in (
        lambda: keys(index, "needle"),
        lambda: index.position,
        lambda: add(index, "x", position=1),
    ):
        with pytest.raises(UnavailableError) as refused:
            use()
        assert refused.value.reason == "INDEX_UNAVAILABLE"
    index.reset()
    assert index.position == 0


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
            self._answer = keys(self._index, "needle", limit=100)
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
        yield Document("needle two", "needle two", frozenset({ALL}))
        assert reader.answer() == ["needle one"]

    try:
        index.apply(slowly(), 2)
        assert reader.answer() == ["needle two", "needle one"]
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
