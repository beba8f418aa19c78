"""Texts of every kind become terms by which they are found."""

from __future__ import annotations

import base64
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.index.analysis import (
    QUERY_LIMIT_TERMS,
    REPEATS_LIMIT,
    TERM_LIMIT_CHARACTERS,
    analyse,
    query_terms,
    stem,
)

ALPHABET = "aZ9_ ./:-'\"*()é\u0301ßİǅ中文あ한🙂\0\n"
any_text = st.text(max_size=60) | st.text(alphabet=ALPHABET, max_size=40)


def terms(text: str) -> set[str]:
    return set(analyse(text).exact)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", {"getusername", "get", "user", "name"}),
        ("HTTPServer", {"httpserver", "http", "server"}),
        ("parseHTTPResponse", {"parsehttpresponse", "parse", "http", "response"}),
        ("utf8Text", {"utf8text", "utf8", "text"}),
        ("größeMax", {"grossemax", "grosse", "max"}),
        ("søren", {"soren"}),
        ("Łódź", {"lodz"}),
        ("parse_config", {"parse_config", "parse", "config"}),
        ("__init__", {"init"}),
        ("MAX_RETRIES", {"max_retries", "max", "retries"}),
        ("src/app.py", {"src/app.py", "src", "app", "py"}),
        ("std::vector", {"std::vector", "std", "vector"}),
        ("a-b", {"a-b", "a", "b"}),
        ("v1.2.3", {"v1.2.3", "v1", "2", "3"}),
        ("127.0.0.1:8080", {"127.0.0.1:8080", "127", "0", "1", "8080"}),
        ("--force", {"force"}),
        ("$PATH", {"path"}),
        ("user@example.org", {"user", "example.org", "example", "org"}),
        ("https://example.org/a?b=c", {"https", "example", "org", "a", "b", "c"}
         | {"https://example.org/a"}),
        ("C++", {"c"}),
        ("", set()),
        ("?!…", set()),
        ("___", set()),
        ("🙂", set()),
    ],
)  # fmt: skip
def test_code_and_paths(text: str, expected: set[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京都", {"東", "京", "都", "東京", "京都"}),
        ("東", {"東"}),
        ("東京Tower", {"東", "京", "東京", "tower"}),
        ("設定は config.toml", {"設", "定", "は", "設定", "定は", "config.toml", "config", "toml"}),
        ("カタカナ", {"カ", "タ", "ナ", "カタ", "タカ", "カナ"}),
        ("한국어", {"한", "국", "어", "한국", "국어"}),
        ("東、京", {"東", "京"}),
        ("﨑", {"﨑"}),
    ],
)
def test_cjk_becomes_characters_and_pairs(text: str, expected: set[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "CAFE"),
        ("café", "cafe\u0301"),
        ("Ångström", "angstrom"),
        ("STRASSE", "straße"),
        ("ﬁle", "file"),
        ("ｆｕｌｌ", "full"),
        ("Привет", "привет"),
        ("①", "1"),
        ("ﾊﾟｰﾄ", "パート"),
    ],
)
def test_the_same_word_in_other_letters(one: str, other: str) -> None:
    assert terms(one) == terms(other) != set()


@pytest.mark.parametrize(
    ("one", "other"), [("retries", "retry"), ("running", "runs"), ("connections", "connected")]
)
def test_inflections_share_their_stem(one: str, other: str) -> None:
    assert set(analyse(one).stems) == set(analyse(other).stems) == {stem(one)}


def test_compounds_are_not_stemmed() -> None:
    found = analyse("parse_settings")
    assert set(found.stems) == {stem("parse"), stem("settings")}
    assert "parse_settings" in found.exact


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What is the port of the server?", ["port", "server"]),
        ("what is it", ["what", "is", "it"]),
        ("don't", ["don", "t"]),
        ("the user's port", ["user", "port"]),
        ("port port PORT", ["port"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("東京都", ["東京", "京都"]),
        ("東", ["東"]),
        ("", []),
        ("¿?", []),
    ],
)
def test_what_is_searched_for(query: str, expected: list[str]) -> None:
    assert query_terms(query) == expected


@pytest.mark.parametrize("mark", ["'", "’"])
def test_apostrophes_part_words(mark: str) -> None:
    assert query_terms(f"user{mark}s port") == ["user", "port"]
    assert terms(f"O{mark}Brien") == {"o", "brien"}


def test_a_query_has_a_longest_length() -> None:
    asked = query_terms(" ".join(f"w{number}" for number in range(100)))
    assert asked == [f"w{number}" for number in range(QUERY_LIMIT_TERMS)]


def test_repetition_counts_up_to_a_limit() -> None:
    found = analyse("retry " * 1000 + "port port")
    assert found.exact["retry"] == found.stems[stem("retry")] == REPEATS_LIMIT
    assert found.exact["port"] == 2


def a_blob(size: int) -> str:
    return base64.b64encode(random.Random(1).randbytes(size)).decode()


def test_long_words_are_cut() -> None:
    word = "x" * 10_000
    assert terms(word) == {"x" * TERM_LIMIT_CHARACTERS}
    assert query_terms(word) == ["x" * TERM_LIMIT_CHARACTERS]
    assert max(map(len, terms(a_blob(3000)))) <= TERM_LIMIT_CHARACTERS


def test_blobs_and_digests_are_not_taken_to_pieces() -> None:
    digest = "3f2a9c81d0e7b64455aa90bc1f2d3e4c5b6a7988"
    assert terms(digest) == {digest}
    text = a_blob(30_000)
    assert len(terms(text)) < len(text) / 10
    # A long identifier is no blob.
    assert {"http", "redirect"} <= terms("AbstractHTTPRedirectHandlerFactoryV2")


def test_blobs_do_not_stay_in_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(4):
            analyse(f"{number}{'x' * 1_000_000}")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 500_000


@given(any_text)
def test_every_term_searched_for_is_one_of_the_text(text: str) -> None:
    found = analyse(text)
    asked = query_terms(text)
    assert set(asked) <= set(found.exact)
    assert len(asked) == len(set(asked)) <= QUERY_LIMIT_TERMS
    if any(character.isalnum() for character in text):
        assert asked


@settings(max_examples=50)
@given(any_text)
def test_terms_are_plain_words(text: str) -> None:
    found = analyse(text)
    for term in (*found.exact, *found.stems):
        assert 0 < len(term) <= TERM_LIMIT_CHARACTERS
        assert not set(term) & set("\"'*()^{}\0 \n")


@settings(max_examples=50)
@given(any_text, any_text)
def test_more_text_has_more_terms(one: str, other: str) -> None:
    assert terms(f"{one}\n{other}") == terms(one) | terms(other)
