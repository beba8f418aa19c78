"""Commits in the store's own process: domain functions, store and index as the service has them."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.store.setups import Setup, Shape, disk_of
from benchmarks.tables import percentile
from muniment.kit.clock import SystemClock
from muniment.kit.context import CallContext
from muniment.kit.ids import IdMaker
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store import Once, Protection, Store, StoreOptions, Writer
from muniment.kit.store.jobs import BATCH_LIMIT_JOBS, ThreadedLoop
from muniment.memory.episodes import append_episode, prepare_episode
from muniment.memory.indexing import EpisodesAndPins
from muniment.memory.schema import SCHEMA
from muniment.v1 import memory_pb2

__all__ = ["Measured", "commits_in_process"]

_MAP_BYTES = 8 * 1024**3


@dataclass(frozen=True)
class Measured:
    """One run: its rate, latencies and cost."""

    per_second: float
    p50_ms: float
    p95_ms: float
    cpu_us: float
    """Processor time of the measured process, by call."""

    @classmethod
    def of(cls, latencies: Sequence[float], seconds: float, cpu_seconds: float) -> Measured:
        """From latencies in seconds."""
        return cls(
            len(latencies) / seconds,
            percentile(latencies, 0.5) * 1e3,
            percentile(latencies, 0.95) * 1e3,
            cpu_seconds / len(latencies) * 1e6,
        )


def commits_in_process(
    setup: Setup, shape: Shape, texts: Sequence[str], seconds: float, folder: Path
) -> Measured:
    """Commit episodes for about so long."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        run = _Run(setup, Path(place), texts)
        try:
            return run.measure(shape, seconds)
        finally:
            run.close()


class _Run:
    def __init__(self, setup: Setup, folder: Path, texts: Sequence[str]) -> None:
        randomness = SystemRandomness()
        self._clock = SystemClock()
        self._ids = IdMaker(self._clock, randomness)
        self._texts = texts
        limit = BATCH_LIMIT_JOBS if setup.batches else 1
        options = StoreOptions(
            map_limit_bytes=_MAP_BYTES,
            disk=disk_of(setup),
            loop=ThreadedLoop(batch_limit_jobs=limit),
        )
        protection = Protection(randomness.token(32), setup.sealed, randomness)
        self._store = Store(folder / "store", SCHEMA, protection, options)
        index = LexicalIndex(None if setup.sealed else folder / "lexical.sqlite3")
        self._follower = IndexFollower(index, EpisodesAndPins())
        self._store.follow(self._follower)

    def measure(self, shape: Shape, seconds: float) -> Measured:
        latencies: list[float] = []
        began, cpu_began = time.perf_counter(), time.process_time()
        threads = [
            threading.Thread(
                target=self._write, args=(writer, shape.in_flight, began + seconds, latencies)
            )
            for writer in range(shape.writers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ended, cpu_ended = time.perf_counter(), time.process_time()
        return Measured.of(latencies, ended - began, cpu_ended - cpu_began)

    def close(self) -> None:
        self._follower.close()
        self._store.close()

    def _write(self, writer: int, in_flight: int, end: float, latencies: list[float]) -> None:
        under_way: deque[tuple[float, Future[Any]]] = deque()
        number = 0
        while time.perf_counter() < end:
            if len(under_way) == in_flight:
                _wait(under_way, latencies)
            under_way.append((time.perf_counter(), self._commit(writer, number)))
            number += 1
        while under_way:
            _wait(under_way, latencies)

    def _commit(self, writer: int, number: int) -> Future[memory_pb2.CommitEpisodeResponse]:
        text = self._texts[(writer * 7919 + number) % len(self._texts)]
        request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=text)
        context = CallContext(
            project_id="proj_bench",
            session_id=f"session-{writer}",
            caller="bench",
            idempotency_key=f"{writer}-{number}",
        )
        new = prepare_episode(context, request)

        def change(store_writer: Writer) -> memory_pb2.CommitEpisodeResponse:
            episode = append_episode(store_writer, self._clock, self._ids, context, new)
            return memory_pb2.CommitEpisodeResponse(episode=episode)

        once = Once(context, request, memory_pb2.CommitEpisodeResponse, change, self._clock)
        return self._store.write(once.run, written_by="bench CommitEpisode", remember=once.remember)


def _wait(under_way: deque[tuple[float, Future[Any]]], latencies: list[float]) -> None:
    began, future = under_way.popleft()
    future.result()
    latencies.append(time.perf_counter() - began)
