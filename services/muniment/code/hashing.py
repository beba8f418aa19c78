"""A hash of syntax: formatting and comments leave it as it is, any other change does not.

White space and comments are taken away where they separate nothing. What a line's end or an
indentation says in some languages is kept: the former in the text, the latter as the places of
blocks, which are hashed behind it.
"""

from __future__ import annotations

import enum
from array import array
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from muniment.code.source import Places, Source, Span

__all__ = ["Layout", "SyntaxHasher"]


class Layout(enum.Enum):
    """What white space means in a language."""

    FREE = enum.auto()
    """Nothing, beyond separating words."""
    LINES = enum.auto()
    """The end of a line ends a statement."""
    INDENTED = enum.auto()
    """That, and indentation makes blocks."""
    EXACT = enum.auto()
    """All of it is content."""


def _table(characters: bytes) -> npt.NDArray[np.bool_]:
    table = np.zeros(256, dtype=np.bool_)
    table[list(characters)] = True
    return table


_SPACES = _table(b" \t\r\n\f\v")
_WORDS = _table(
    b"_$0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + bytes(range(128, 256))
)
_BLOCK_BEGINS, _BLOCK_ENDS = 2, 3
_DOUBLING = _table(b"+-&")
"""Of which two in a row are another operator."""
_ENDING = _WORDS | _table(b")]}\"'`")
"""With which a statement can end."""
_CONTINUING = _table(b")]}.,")
_COLON = ord(":")
_BACKSLASH = ord("\\")
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"([")] = 1
_STEPS[list(b")]")] = -1
_STEPS_WITH_BRACES = _STEPS.copy()
_STEPS_WITH_BRACES[ord("{")] = 1
_STEPS_WITH_BRACES[ord("}")] = -1


class SyntaxHasher:
    """Hashes spans of one file."""

    def __init__(self, source: Source, layout: Layout, blocks: Sequence[Span]) -> None:
        """`blocks` are asked for by `INDENTED` only."""
        self._margin: bytes | None = None
        if layout is Layout.EXACT:
            self._text = source.content
            self._offsets: Sequence[int] = range(len(source.content) + 1)
            return
        text, offsets = _without_formatting(source, layout)
        if layout is Layout.INDENTED and blocks:
            text, offsets = _with_blocks(text, offsets, blocks)
        self._text, self._offsets = text.tobytes(), array("q", offsets.tobytes())
        # What a block around begins with it, or ends with it.
        self._margin = bytes((_BLOCK_BEGINS, _BLOCK_ENDS))

    def hash(self, start: int, end: int) -> int:
        """64 bits of what stands there."""
        text = self._text[self._offsets[start] : self._offsets[end]]
        digest = blake2b(text.strip(self._margin), digest_size=8)
        return int.from_bytes(digest.digest(), "big")


def _with_blocks(
    text: npt.NDArray[np.uint8], offsets: Places, blocks: Sequence[Span]
) -> tuple[npt.NDArray[np.uint8], Places]:
    """The text with a byte where a block begins and one where it ends."""
    starts, ends = offsets[np.array(blocks, dtype=np.int64).T]
    edges = np.concatenate((starts, ends))
    signs = np.zeros(len(edges), dtype=np.uint8)
    signs[: len(starts)], signs[len(starts) :] = _BLOCK_BEGINS, _BLOCK_ENDS
    added = np.zeros(len(text) + 2, dtype=np.int64)
    np.add.at(added, starts + 1, 1)
    np.add.at(added, ends, 1)
    return np.insert(text, edges, signs), offsets + np.cumsum(added)[offsets]


def _without_formatting(source: Source, layout: Layout) -> tuple[npt.NDArray[np.uint8], Places]:
    """The text, and for each offset of the source the one in it."""
    content = source.bytes.copy()
    is_space = (_SPACES[content] & ~source.is_text) | source.is_comment
    kept = np.flatnonzero(~is_space)
    left_at, right_at = kept[:-1], kept[1:]
    gaps = np.flatnonzero(right_at - left_at > 1)
    left_at, right_at = left_at[gaps], right_at[gaps]
    left, right = content[left_at], content[right_at]
    apart = (_WORDS[left] & _WORDS[right]) | ((left == right) & _DOUBLING[left])
    is_space[left_at[apart] + 1] = False
    content[left_at[apart] + 1] = ord(" ")
    if layout in (Layout.LINES, Layout.INDENTED):
        ends = _statement_ends(source, layout, left_at, right_at)
        is_space[left_at[ends] + 1] = False
        content[left_at[ends] + 1] = ord("\n")
    stays = ~is_space
    offsets = np.zeros(len(content) + 1, dtype=np.int64)
    np.cumsum(stays, out=offsets[1:])
    return content[stays], offsets


def _statement_ends(
    source: Source, layout: Layout, left_at: Places, right_at: Places
) -> npt.NDArray[np.bool_]:
    """Which of the gaps end a statement."""
    content = source.bytes
    is_indented = layout is Layout.INDENTED
    lines = np.cumsum(content == ord("\n"))
    steps = (_STEPS_WITH_BRACES if is_indented else _STEPS)[content]
    steps[source.is_text | source.is_comment] = 0
    depth = np.cumsum(steps, dtype=np.int32)[left_at]
    has_end = (lines[right_at] > lines[left_at]) & (depth <= 0)
    left, right = content[left_at], content[right_at]
    if is_indented:
        return np.asarray(has_end & (left != _COLON) & (left != _BACKSLASH))
    return np.asarray(has_end & _ENDING[left] & ~_CONTINUING[right])
