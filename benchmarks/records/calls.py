"""One way through the calls for every side. Standard library only: peers run it too."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from benchmarks.records.corpus import CALLS, Corpus

__all__ = ["Side", "measure"]


class Side(Protocol):
    """What is measured."""

    def fill(self, corpus: Corpus, size: int) -> None:
        """Have the first so many records."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any]) -> object:
        """Make a call of the tools' names and arguments; it has its result."""
        ...


def measure(side: Side, size: int, samples: int) -> dict[str, list[float]]:
    """Milliseconds of each call, at that size."""
    corpus = Corpus()
    began = time.perf_counter()
    side.fill(corpus, size)
    print(f"  filled {size} in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    chance = random.Random(size)
    there = [chance.randrange(size) for _ in range(samples)]
    makers: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
        "remember": lambda at: _remember(corpus, size + at),
        "update": lambda at: _remember(corpus, there[at], note=f"update{at}"),
        "recall": lambda at: ("memory_recall", _named(corpus, there[at])),
        "search word": lambda at: ("memory_search", {"query": corpus.word(there[at])}),
        "search question": lambda at: ("memory_search", {"query": corpus.question(there[at])}),
        "list": lambda at: ("memory_list", {"limit": 50}),
        "forget": lambda at: ("memory_forget", _named(corpus, size + at)),
    }
    return {name: _times(side, makers[name], samples) for name in CALLS}


def _times(
    side: Side, make: Callable[[int], tuple[str, dict[str, Any]]], samples: int
) -> list[float]:
    found = []
    for at in range(samples):
        name, arguments = make(at)
        began = time.perf_counter()
        side.call(name, arguments)
        found.append((time.perf_counter() - began) * 1000)
    return found


def _named(corpus: Corpus, number: int) -> dict[str, Any]:
    category, name, _ = corpus.record(number)
    return {"category": category, "name": name}


def _remember(corpus: Corpus, number: int, **more: str) -> tuple[str, dict[str, Any]]:
    category, name, body = corpus.record(number)
    return "memory_remember", {"category": category, "name": name, "body": body | more}
