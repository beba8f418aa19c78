"""The longest beginning that fits, by few countings, whatever the tokenizer does at line ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.code.fitting import fit
from muniment.kit.counting import estimate_tokens

LINES = st.lists(
    st.text("abcdefghij_(),: .é漢", max_size=60) | st.sampled_from(("", "x", "class A(B)")),
    max_size=60,
)


def characters(text: str) -> int:
    return len(text)


def words(text: str) -> int:
    """Joins what stands on both sides of a line's end, and so counts less than the sum."""
    return len(text.split(".")) if text else 0


def joined(text: str) -> int:
    """Far less than the sum: a fixed cost, as for a mark at the beginning of each text."""
    return 10 + len(text) // 4 if text else 0


TOKENIZERS = st.sampled_from([estimate_tokens, characters, words, joined])


class Counting:
    """Counts, and counts how often it is asked."""

    def __init__(self, tokenizer: Callable[[str], int]) -> None:
        self.requests = 0
        self._tokenizer = tokenizer

    def __call__(self, texts: Sequence[str]) -> Sequence[int]:
        assert texts, "a request for nothing"
        self.requests += 1
        return [self._tokenizer(text) for text in texts]


@settings(deadline=None)
@given(lines=LINES, budget=st.integers(0, 400), tokenizer=TOKENIZERS)
def test_the_longest_that_fits(
    lines: list[str], budget: int, tokenizer: Callable[[str], int]
) -> None:
    found = fit(lines, budget, Counting(tokenizer))
    text = "".join(f"{line}\n" for line in lines[: found.lines])
    assert found.text == text
    assert found.tokens == tokenizer(text) <= budget
    assert found.is_all == (found.lines == len(lines))
    if not found.is_all:
        assert found.next_tokens == tokenizer(f"{text}{lines[found.lines]}\n") > budget


@settings(deadline=None)
@given(
    lines=LINES, budgets=st.tuples(st.integers(0, 400), st.integers(0, 400)), tokenizer=TOKENIZERS
)
def test_less_is_a_prefix_of_more(
    lines: list[str], budgets: tuple[int, int], tokenizer: Callable[[str], int]
) -> None:
    smaller, larger = (fit(lines, budget, Counting(tokenizer)).text for budget in sorted(budgets))
    assert larger.startswith(smaller)


@pytest.mark.parametrize("tokenizer", [estimate_tokens, characters, joined])
@pytest.mark.parametrize("budget", [500, 1000, 2000, 4000, 8000])
def test_few_requests_are_made(tokenizer: Callable[[str], int], budget: int) -> None:
    lines = [f" def method_{number}(self, *args, **kwargs)" for number in range(2000)]
    count = Counting(tokenizer)
    fit(lines, budget, count)
    assert count.requests <= 5


def test_no_more_lines_are_asked_for_than_the_budget_needs() -> None:
    made = 0

    def lines() -> Iterator[str]:
        nonlocal made
        while True:
            made += 1
            yield f"def function_{made}(one, other)"

    found = fit(lines(), 1000, Counting(estimate_tokens))
    assert found.tokens > 950
    assert made < 2 * found.lines
