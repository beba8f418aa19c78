"""Texts of every kind to count: all scripts, code, JSON, emoji, look-alikes of special tokens."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable, Sequence

__all__ = ["many_texts"]

# First and last code point of blocks, from the Unicode Character Database (Blocks.txt).
_BLOCKS = (
    (0x0020, 0x007E),  # Latin
    (0x00A0, 0x017F),
    (0x0250, 0x02AF),
    (0x0300, 0x036F),  # combining marks
    (0x0370, 0x03FF),  # Greek
    (0x0400, 0x04FF),  # Cyrillic
    (0x0530, 0x058F),  # Armenian
    (0x0590, 0x05FF),  # Hebrew
    (0x0600, 0x06FF),  # Arabic
    (0x0900, 0x097F),  # Devanagari
    (0x0980, 0x09FF),  # Bengali
    (0x0B80, 0x0BFF),  # Tamil
    (0x0E00, 0x0E7F),  # Thai
    (0x0F00, 0x0FFF),  # Tibetan
    (0x10A0, 0x10FF),  # Georgian
    (0x1200, 0x137F),  # Ethiopic
    (0x13A0, 0x13FF),  # Cherokee
    (0x1780, 0x17FF),  # Khmer
    (0x1800, 0x18AF),  # Mongolian
    (0x2000, 0x206F),  # spaces and marks of direction
    (0x2190, 0x22FF),  # arrows and mathematics
    (0x2580, 0x25FF),
    (0x3040, 0x30FF),  # Kana
    (0x4E00, 0x9FFF),  # Han
    (0xAC00, 0xD7A3),  # Hangul
    (0xE000, 0xE0FF),  # private
    (0xFE00, 0xFE0F),  # variation selectors
    (0x12000, 0x123FF),  # Cuneiform
    (0x1F300, 0x1F6FF),  # pictures
    (0x1F900, 0x1F9FF),
    (0x20000, 0x2A6DF),  # rare Han
)

_SPECIAL = (
    "<s>",
    "</s>",
    "<unk>",
    "<0x0A>",
    "<|im_start|>user",
    "<|im_end|>",
    "<|endoftext|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<bos>",
    "<eos>",
    "[INST]",
    "▁",
    "▁▁the",
    "<s",
    "s>",
)

_EMOJI = ("🦊", "👩‍💻", "🇨🇭", "👍🏽", "❤️", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "1️⃣", "🫠")

_CODE = (
    "def f(x: int) -> str:\n    return f'{x:>8}' if x else \"none\"  # {}\n",
    "for (int i = 0; i < n; ++i) { a[i] ^= 0x{}; }\r\n",
    "SELECT * FROM t WHERE a = '{}' -- x\n",
    "diff --git a/{} b/{}\n@@ -1,2 +1,2 @@\n-\told\n+\tnew\n",
    "curl -sS 'https://example.org/?q={}' | jq '.[] | .a'\n",
    "\\begin{equation} x_{} = \\frac{a}{b} \\end{equation}\n",
)

_LONG_WORDS = 10_000


def many_texts(count: int, seed: int = 1) -> Sequence[str]:
    """So many texts, the same for the same seed; some are empty, some long, none is twice there."""
    chance = random.Random(seed)
    makers = (_script, _mixture, _code, _json, _special, _emoji, _spaces)
    texts = dict.fromkeys(("", " ", "\n", "\0", *_SPECIAL, *_EMOJI, _long(chance)))
    while len(texts) < count:
        texts[chance.choice(makers)(chance)] = None
    return list(texts)[:count]


def _character(chance: random.Random, block: tuple[int, int]) -> str:
    while unicodedata.category(one := chr(chance.randint(*block))) == "Cs":
        pass
    return one


def _word(chance: random.Random, block: tuple[int, int]) -> str:
    return "".join(_character(chance, block) for _ in range(chance.randint(1, 9)))


def _script(chance: random.Random) -> str:
    block = chance.choice(_BLOCKS)
    return " ".join(_word(chance, block) for _ in range(chance.randint(1, 30)))


def _mixture(chance: random.Random) -> str:
    return _join(chance, lambda: _word(chance, chance.choice(_BLOCKS)))


def _code(chance: random.Random) -> str:
    return "".join(
        chance.choice(_CODE).replace("{}", _word(chance, _BLOCKS[0]))
        for _ in range(chance.randint(1, 6))
    )


def _json(chance: random.Random) -> str:
    value = {
        _word(chance, chance.choice(_BLOCKS)): [chance.random(), None, _script(chance)]
        for _ in range(chance.randint(0, 5))
    }
    return json.dumps(
        value, ensure_ascii=chance.random() < 0.5, indent=chance.choice((None, 2, "\t"))
    )


def _special(chance: random.Random) -> str:
    return _join(
        chance, lambda: chance.choice(_SPECIAL) + chance.choice(("", _word(chance, _BLOCKS[0])))
    )


def _emoji(chance: random.Random) -> str:
    return _join(chance, lambda: chance.choice(_EMOJI))


def _spaces(chance: random.Random) -> str:
    return _join(chance, lambda: chance.choice((" ", "  ", "\t", "\n", "\r\n", "\u3000", "a")))


def _long(chance: random.Random) -> str:
    return " ".join(_word(chance, chance.choice(_BLOCKS)) for _ in range(_LONG_WORDS))


def _join(chance: random.Random, piece: Callable[[], str]) -> str:
    between = chance.choice(("", " ", "\n"))
    return between.join(piece() for _ in range(chance.randint(1, 40)))
