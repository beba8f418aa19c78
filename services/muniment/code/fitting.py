"""The longest beginning of a row of lines that fits a budget of tokens, by few countings.

Nothing but the row decides what stands first, so a smaller budget gives a prefix of what a larger
one gives. Tokens are counted of the whole text: those of its lines apart are only where the search
begins, since a tokenizer may join what stands on both sides of a line's end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Count", "Fitted", "fit"]

Count = Callable[[Sequence[str]], Sequence[int]]
"""Tokens of each text. One call may be a request to another process, so few are made."""

_CHARACTERS_A_TOKEN = 5
"""More than code has: so much text will do, as a rule, to pass a budget."""

_OVERSHOOT = 17 / 16
"""Texts have fewer tokens than their lines apart; so much more is taken at once."""

_GUESSES = 4
"""So often the counts of the lines are asked where the end might be; then halves are tried."""


@dataclass(frozen=True)
class Fitted:
    """A beginning of the lines."""

    text: str
    tokens: int
    """Of the whole text."""
    lines: int
    is_all: bool
    """No line is left out."""
    next_tokens: int
    """What the text would have with one more line; `tokens` where there is none."""


def fit(lines: Iterable[str], budget: int, count: Count) -> Fitted:
    """The longest beginning of the lines that takes `budget` tokens at most; it may be empty.

    Each line gets a line feed behind it.
    """
    return _Search(lines, budget, count).fitted()


class _Search:
    """Between a beginning that fits and one that does not."""

    def __init__(self, lines: Iterable[str], budget: int, count: Count) -> None:
        self._left = iter(lines)
        self._budget = budget
        self._count = count
        self._lines: list[str] = []
        self._sums = [0]
        """Of the lines' own counts, up to each line."""
        self._known = {0: 0}
        """Tokens of beginnings, by their number of lines."""
        self._is_all = False

    def fitted(self) -> Fitted:
        self._take()
        while True:
            end = self._end()
            if end < len(self._lines) or self._is_all:
                break
            self._take()
        following = min(end + 1, len(self._lines))
        return Fitted(
            text="".join(self._lines[:end]),
            tokens=self._known[end],
            lines=end,
            is_all=end == len(self._lines),
            next_tokens=self._known[following],
        )

    def _take(self) -> None:
        """Take lines until they are all, or pass the budget as far as their own counts tell."""
        goal = self._budget * _OVERSHOOT
        while not self._is_all:
            missing = (goal - self._sums[-1] * self._ratio()) * _CHARACTERS_A_TOKEN
            new, characters = list[str](), 0
            while not new or characters <= missing:
                line = next(self._left, None)
                if line is None:
                    self._is_all = True
                    break
                new.append(f"{line}\n")
                characters += len(line) + 1
            self._lines += new
            for tokens in self._count(new) if new else ():
                self._sums.append(self._sums[-1] + tokens)
            if self._sums[-1] * self._ratio() > goal:
                break

    def _ratio(self) -> float:
        """Tokens of the longest beginning that was counted, to those of its lines apart."""
        measured = max(self._known)
        return self._known[measured] / max(self._sums[measured], 1) or 1.0

    def _end(self) -> int:
        """The number of lines that fit, of those that were taken."""
        guesses = 0
        while True:
            fits = max(lines for lines, tokens in self._known.items() if tokens <= self._budget)
            beyond = min(
                (lines for lines, tokens in self._known.items() if tokens > self._budget),
                default=len(self._lines) + 1,
            )
            if beyond - fits <= 1:
                return fits
            if guesses < _GUESSES:
                guess = min(max(self._guess(fits), fits + 1), beyond - 1)
            else:
                guess = (fits + beyond) // 2
            guesses += 1
            self._learn({guess, min(guess + 1, len(self._lines))})

    def _guess(self, fits: int) -> int:
        """Where the budget ends if the lines weigh as they did up to the last that is known."""
        spare = (self._budget - self._known[fits]) / self._ratio()
        return bisect_right(self._sums, self._sums[fits] + spare) - 1

    def _learn(self, ends: set[int]) -> None:
        asked = sorted(ends - self._known.keys())
        counts = self._count(["".join(self._lines[:end]) for end in asked])
        self._known.update(zip(asked, counts, strict=True))
