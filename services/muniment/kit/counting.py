"""Token counts where no model's own tokenizer is at hand: an estimate, and labelled as one.

A small vocabulary that the package carries cuts the text to pieces, and each piece costs what it
cost on average in the vocabularies of present-day models, which are too large to carry. So the
estimate lies between what those models count; it is never `exact`. Nothing heavy is imported with
this module: the vocabulary is loaded with the first text, in about 0.1 seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

__all__ = ["DATA_FOLDER", "ERROR_PERCENT", "TOKENIZER", "WEIGHT_STEPS", "estimate_tokens"]

TOKENIZER = "muniment-spm-1"
"""Names the counter and its version: another vocabulary, or other costs, are another one."""

ERROR_PERCENT = {"prose": 5, "code": 8, "json": 12, "cjk": 7, "latin": 13, "scripts": 27}
"""How far off it is on average, in percent of what a present-day model counts, by kind of text:
English prose, code, JSON, Chinese with Japanese and Korean, other languages in Latin letters, other
scripts. Measured by `benchmarks/counting` on turns of 2,000 characters that it was not made of,
against o200k and the vocabularies of Qwen 3, Llama 3 and Gemma 3, which differ from each other by
about as much. A model of English alone needs more tokens for the last three, up to two and a half
times as many."""

DATA_FOLDER = "data"
"""Where the vocabulary is, beside this module; its README says what it was made of, and how."""

WEIGHT_STEPS = 64
"""A piece's cost is kept in so many parts of a token."""

_BLOCK_CHARACTERS = 8192
"""So much is cut at once, in about a millisecond; other threads may have to wait for so long."""

_BLOCKS = 64
"""Of a text that has more, so many are counted, and stand for the rest."""

_GOLDEN_16BIT = 40_503
"""2**16 over the golden ratio: its multiples spread evenly, and meet no period of a text."""


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens a present-day model counts; 0 only for empty text.

    Any text is taken, and any thread may ask. 2,000 characters take about 0.2 milliseconds. From
    half a million characters on, blocks from all over the text are counted for the whole of it, so
    that 16 MiB take no longer than that half million.
    """
    if not text:
        return 0
    starts = _block_starts(len(text))
    steps = sum(_steps(text[start : start + _BLOCK_CHARACTERS]) for start in starts)
    counted = min(len(text), len(starts) * _BLOCK_CHARACTERS)
    return max(round(steps * len(text) / counted / WEIGHT_STEPS), 1)


def _block_starts(length: int) -> Sequence[int]:
    """Where the blocks begin that are counted: one after the other, or one in each 64th part."""
    if length <= _BLOCKS * _BLOCK_CHARACTERS:
        return range(0, length, _BLOCK_CHARACTERS)
    part = length / _BLOCKS
    spare = part - _BLOCK_CHARACTERS
    return [
        int(block * part + spare * (block * _GOLDEN_16BIT % 2**16) / 2**16)
        for block in range(_BLOCKS)
    ]


def _steps(text: str) -> int:
    processor, weights = _vocabulary()
    # A lone surrogate has no UTF-8; what stands for it costs about as much.
    pieces = processor.encode(text.encode(errors="replace"))
    return sum(map(weights.__getitem__, pieces))


@cache
def _vocabulary() -> tuple[SentencePieceProcessor, bytes]:
    # Threads that ask for it at once may load one each, and keep one: they are the same.
    from sentencepiece import SentencePieceProcessor

    folder = files("muniment.kit") / DATA_FOLDER
    model = (folder / f"{TOKENIZER}.model").read_bytes()
    weights = (folder / f"{TOKENIZER}.weights").read_bytes()
    return SentencePieceProcessor(model_proto=model), weights
