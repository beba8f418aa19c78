"""Recall from the lexical index as the service has it: latency, size, rate and what it finds."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.store.texts import Corpus, Query
from benchmarks.tables import percentile
from muniment.kit.index.analysis import query_terms
from muniment.kit.index.lexical import Document, LexicalIndex, Progress, Within, scope

__all__ = ["CANDIDATES", "Index", "Searched", "index_of", "measure_recall", "search_again"]

CANDIDATES = 24
"""What a recall of eight hits asks the index for."""

_FIRST_HITS = 8
_PORTION = 200
_SESSION_TURNS = 200
_SMALL_PROJECT = 5


class Index(Protocol):
    """An index that is measured."""

    def add(self, project: int, first: int, texts: Sequence[str]) -> None:
        """Take texts, numbered from `first` in their project."""
        ...

    def search(self, project: int, terms: Sequence[str]) -> list[int]:
        """Numbers of the best texts of the project."""
        ...

    def finish(self) -> None:
        """Be done with adding."""
        ...

    def size_bytes(self) -> int:
        """Bytes on disk."""
        ...


@dataclass(frozen=True)
class Searched:
    """What one index of one size did."""

    engine: str
    episodes: int
    projects: int
    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float
    cpu_p95_ms: float
    """Processor time of the asking thread: what latency would be on an idle machine."""
    found: float
    """Share of questions whose text is among the first eight."""
    bytes_each: float
    added_per_second: float
    small_finds_own: bool
    """Whether a project of five texts beside these finds each of its own."""


class LexicalEngine:
    """The index of the memory service."""

    def __init__(self, folder: Path) -> None:
        """Make it in the folder."""
        self._path = folder / "lexical.sqlite3"
        self._index = LexicalIndex(self._path)
        self._position = 0

    def add(self, project: int, first: int, texts: Sequence[str]) -> None:
        """Take texts, numbered from `first` in their project."""
        documents = [
            Document(
                f"{project}:{number}",
                text,
                partition=f"project {project}",
                scopes=frozenset({scope("session", f"{project} {number // _SESSION_TURNS}")}),
                place=self._position + place,
                number=self._position + place + 1,
            )
            for place, (number, text) in enumerate(enumerate(texts, first))
        ]
        self._position += len(texts)
        self._index.apply(documents, Progress(self._position, "bench", 0))

    def search(self, project: int, terms: Sequence[str]) -> list[int]:
        """Numbers of the best texts of the project."""
        # As the service asks: episodes, pins of the project, pins of the session.
        within = [Within(f"project {project}"), Within("no pins"), Within("no pins here")]
        matches = self._index.search(terms, within, CANDIDATES)
        return [int(match.key.partition(":")[2]) for match in matches]

    def finish(self) -> None:
        """Be done with adding."""

    def size_bytes(self) -> int:
        """Bytes on disk."""
        return self._path.stat().st_size


def measure_recall(
    engine: str, index: Index, episodes: int, projects: int, queries: int
) -> Searched:
    """Fill the index evenly with the texts of the projects, then ask."""
    corpora = [Corpus(project + 1) for project in range(projects)]
    each = episodes // projects
    taken = 0.0
    for project, first, texts in _portions(corpora, each):
        began = time.process_time()
        index.add(project, first, texts)
        taken += time.process_time() - began
    small = Corpus(1000)
    index.add(projects, 0, list(small.texts(0, _SMALL_PROJECT)))
    index.finish()
    asked = [(0, query) for query in corpora[0].queries(each, queries)]
    latencies, cpu, found = search_again(index, asked)
    own = [(projects, query) for query in small.queries(_SMALL_PROJECT, _SMALL_PROJECT)]
    _, _, own_found = search_again(index, own)
    return Searched(
        engine=engine,
        episodes=episodes,
        projects=projects,
        p50_ms=percentile(latencies, 0.5) * 1e3,
        p95_ms=percentile(latencies, 0.95) * 1e3,
        cpu_p50_ms=percentile(cpu, 0.5) * 1e3,
        cpu_p95_ms=percentile(cpu, 0.95) * 1e3,
        found=found / len(asked),
        bytes_each=index.size_bytes() / episodes,
        added_per_second=episodes / taken,
        small_finds_own=own_found == len(own),
    )


def search_again(
    index: Index, asked: Sequence[tuple[int, Query]]
) -> tuple[list[float], list[float], int]:
    """Latencies, processor times, and how many questions found their text.

    Each question is asked three times, and the median counts.
    """
    latencies, cpu, found = [], [], 0
    for project, query in asked:
        tries = []
        for _ in range(3):
            began, cpu_began = time.perf_counter(), time.thread_time()
            hits = index.search(project, query_terms(query.text))
            tries.append((time.perf_counter() - began, time.thread_time() - cpu_began))
        latencies.append(sorted(one for one, _ in tries)[1])
        cpu.append(sorted(one for _, one in tries)[1])
        found += query.about in hits[:_FIRST_HITS]
    return latencies, cpu, found


def _portions(corpora: Sequence[Corpus], each: int) -> Iterator[tuple[int, int, list[str]]]:
    """Portions of each project in turn, as sessions of several projects would come."""
    for first in range(0, each, _PORTION):
        for project, corpus in enumerate(corpora):
            yield project, first, list(corpus.texts(first, min(_PORTION, each - first)))


def index_of(engine: str, folder: Path) -> Index:
    """The engine, in the folder."""
    if engine == "tantivy":
        from benchmarks.store.tantivy_peer import TantivyEngine

        return TantivyEngine(folder)
    if engine == "fts5 bm25":
        from benchmarks.store.bm25_peer import Bm25Engine

        return Bm25Engine(folder)
    return LexicalEngine(folder)


def main() -> None:
    """Measure one engine, and print what it did as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("muniment", "fts5 bm25", "tantivy"))
    parser.add_argument("episodes", type=int)
    parser.add_argument("projects", type=int)
    parser.add_argument("queries", type=int)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        index = index_of(options.engine, Path(place))
        searched = measure_recall(
            options.engine, index, options.episodes, options.projects, options.queries
        )
    print(json.dumps(asdict(searched)))


if __name__ == "__main__":
    main()
