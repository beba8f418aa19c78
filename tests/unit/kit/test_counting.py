"""The estimate of tokens: rough, and without surprises."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.counting import TOKENIZER, estimate_tokens

texts = st.text(alphabet=st.sampled_from("aé中 あ.0\n"), max_size=20) | st.text(max_size=60)


def test_it_names_itself_and_does_not_claim_to_be_exact() -> None:
    assert TOKENIZER.startswith("estimate-")


@pytest.mark.parametrize("text", [" ", "\0", "\x7f", "\u200b", "a", "\n"])
def test_what_is_not_empty_costs_something(text: str) -> None:
    assert estimate_tokens(text) >= 1


def test_only_nothing_is_free() -> None:
    assert estimate_tokens("") == 0


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("cat", 1),
        ("internationalisation", 5),
        ("the quick brown fox", 6),
        ("1234567", 3),
        ("x == y", 3),
        ("東京都", 3),
        ("안녕하세요", 5),
        ("привет", 3),
        ("        return", 4),
    ],
)
def test_kinds_of_text(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_cjk_costs_a_token_a_character_whatever_stands_before() -> None:
    assert estimate_tokens("é" + "中" * 100) >= estimate_tokens("中" * 100) == 100


@settings(max_examples=50)
@given(texts)
def test_it_is_positive_and_bounded(text: str) -> None:
    assert (estimate_tokens(text) == 0) == (text == "")
    assert estimate_tokens(text) <= len(text)


@settings(max_examples=150)
@given(texts, texts)
def test_more_text_never_costs_less(one: str, other: str) -> None:
    both = estimate_tokens(one + other)
    assert both >= max(estimate_tokens(one), estimate_tokens(other))


@settings(max_examples=50)
@given(texts)
def test_it_is_a_function_of_the_text(text: str) -> None:
    assert estimate_tokens(text) == estimate_tokens(str(text.encode(), "utf-8"))


def test_long_texts_are_counted_at_once() -> None:
    assert estimate_tokens("a" * 2**20) == 249_661
    assert estimate_tokens("x = [1, 2]\n" * 10_000) > 40_000
