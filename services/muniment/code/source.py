"""A file's text with its comments and texts found: where code is, and on which line.

All views are as long as the text itself, so that a place in one is the same place in the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Places", "Source", "Span", "places"]

Span = tuple[int, int]
"""Offsets of the first byte and of that behind the last."""

Places = npt.NDArray[np.int64]

_FILLER = 1
_QUOTE = ord('"')
_SPACE = ord(" ")
_LINE_FEED = ord("\n")


def places(values: Sequence[int]) -> Places:
    """Offsets as an array."""
    return np.array(values, dtype=np.int64)


class Source:
    """A text, its comments and its texts.

    Attributes:
        content: The bytes that were parsed.
        is_text: For each byte, whether it stands in a text (code within a text does not).
        is_comment: The same of comments.
        masked: `content` with comments as spaces and each text as `"`, filler, `"`.
        code: `content` with comments as spaces.
    """

    def __init__(
        self,
        content: bytes,
        comments: Sequence[Span] = (),
        texts: Sequence[Span] = (),
        holes: Sequence[Span] = (),
    ) -> None:
        """The text, and what was found in it; `holes` are code within texts."""
        self.content = content
        self.bytes = np.frombuffer(content, dtype=np.uint8)
        self.is_comment = self._within(comments)
        self.is_text = self._within(texts, holes)
        self.text_ends = dict(texts)
        masked = self.bytes.copy()
        masked[self.is_comment] = _SPACE
        self.code = masked.tobytes() if comments else content
        masked[self.is_text] = _FILLER
        if texts:
            edges = np.array(texts, dtype=np.int64)
            masked[edges[:, 0]] = _QUOTE
            masked[edges[:, 1] - 1] = _QUOTE
        self.masked = masked.tobytes()
        self._line_ends = np.flatnonzero(self.bytes == _LINE_FEED)
        self._closing: dict[int, int] | None = None

    def line_of(self, offset: int) -> int:
        """The number of an offset's line, from one."""
        return int(np.searchsorted(self._line_ends, offset)) + 1

    def lines_of(self, offsets: Places) -> Places:
        """The same of many."""
        return np.searchsorted(self._line_ends, offsets) + 1

    def text(self, start: int, end: int) -> str:
        """What stands there, comments left out."""
        return self.code[start:end].decode(errors="replace")

    def closing(self, opening: int) -> int | None:
        """Where the bracket that opens there is closed, if it is."""
        if self._closing is None:
            self._closing = self._pair_brackets()
        return self._closing.get(opening)

    def _within(self, spans: Sequence[Span], holes: Sequence[Span] = ()) -> npt.NDArray[np.bool_]:
        size = len(self.content)
        steps = np.zeros(size + 1, dtype=np.int32)
        for sign, some in ((1, spans), (-1, holes)):
            if some:
                starts, ends = np.array(some, dtype=np.int64).T
                np.add.at(steps, starts, sign)
                np.add.at(steps, ends, -sign)
        return np.asarray(np.cumsum(steps[:size]) > 0)

    def _pair_brackets(self) -> dict[int, int]:
        steps = _BRACKETS[np.frombuffer(self.masked, dtype=np.uint8)]
        at = np.flatnonzero(steps)
        opens = steps[at] > 0
        depth = np.cumsum(steps[at], dtype=np.int64)
        level = np.where(opens, depth, depth + 1)
        order = np.argsort(level, kind="stable")
        first, second = order[:-1], order[1:]
        pairs = opens[first] & ~opens[second] & (level[first] == level[second])
        return dict(zip(at[first[pairs]].tolist(), at[second[pairs]].tolist(), strict=True))


_BRACKETS = np.zeros(256, dtype=np.int8)
_BRACKETS[list(b"([{")] = 1
_BRACKETS[list(b")]}")] = -1
