"""How long a memory service takes to be of use again after a restart: `make bench-restart`.

A store with so many episodes is made; then the service is started as its supervisor does, and a
client measures from that moment: until health says SERVING, until a commit is acknowledged, until
a recall finds that commit, until a recall finds the newest of the old episodes. While the index is
made anew (a sealed store's lives in memory), one client commits and recalls in turns, so that the
cost for those who work meanwhile is seen. It is over when a recall's notes say nothing of it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2

from benchmarks.stamp import load, stamp
from benchmarks.store.texts import Corpus
from benchmarks.tables import percentile, table
from muniment.kit.channels import open_channel
from muniment.kit.clock import SystemClock
from muniment.kit.context import CallContext
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.ids import IdMaker
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store import Store, StoreOptions, Writer
from muniment.kit.stores import MEMORY_STORE
from muniment.memory.episodes import NewEpisode, append_episode, prepare_episode
from muniment.memory.schema import SCHEMA
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients, open_clients
from muniment.workflows.episodes import commit_episode
from muniment.workflows.recall import recall

_CONTEXT = CallContext(project_id="proj_bench", session_id="bench", caller="bench")
_PORTION = 500
_MORE_TEXTS = 1000
_LONGEST_SECONDS = 3600
_PAUSE_SECONDS = 0.05
_MARK = "restartmark"


@dataclass
class Restart:
    """What one restart took, in seconds since the process was started."""

    health: float = 0.0
    first_commit: float = 0.0
    first_recall: float = 0.0
    newest_old: float = 0.0
    whole: float = 0.0
    commits: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    memory_mib: float = 0.0
    """Of the process, when the index was whole."""


def make_store(home: Home, keys: Path, corpus: Corpus, episodes: int, *, sealed: bool) -> None:
    """A store with so many episodes."""
    clock, randomness = SystemClock(), SystemRandomness()
    shelf = KeyShelf(home, "file", str(keys))
    key = HomeKey.make(randomness, sealed=sealed)
    shelf.keep(key, randomness)
    folder = MEMORY_STORE.folder(home)
    folder.parent.mkdir(parents=True)
    options = StoreOptions(map_limit_bytes=64 * 1024**3)
    store = Store(folder, SCHEMA, key.protection(randomness), options)
    ids = IdMaker(clock, randomness)
    for first in range(0, episodes, _PORTION):
        texts = corpus.texts(first, min(_PORTION, episodes - first))
        requests = (
            memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=text)
            for text in texts
        )
        prepared = [prepare_episode(_CONTEXT, request) for request in requests]

        def append(writer: Writer, prepared: list[NewEpisode] = prepared) -> None:
            for new in prepared:
                append_episode(writer, clock, ids, _CONTEXT, new)

        store.write(append).result()
    store.close()


@contextmanager
def memory(home: Home, keys: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The memory service, from the moment when its process is started."""
    environment = {
        "PATH": os.environ["PATH"],
        "MUNIMENT_HOME": str(home.path),
        "MUNIMENT_KEY_FOLDER": str(keys),
        "MUNIMENT_LOG_LEVEL": "warning",
    }
    command = [sys.executable, "-P", "-m", "muniment.memory"]
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


async def measure(home: Home, keys: Path, newest: str, more: Sequence[str]) -> Restart:
    """Restart once; `newest` is the newest text of the store, and `more` are others to commit."""
    found = Restart()
    began = time.perf_counter()
    with memory(home, keys) as process:
        await _until_serving(home)
        found.health = time.perf_counter() - began
        async with open_clients(home) as clients:
            await _commit(clients, f"{_MARK} {began}")
            found.first_commit = time.perf_counter() - began
            hits, _ = await _recall(clients, _MARK)
            assert hits, "the commit was not found"
            found.first_recall = time.perf_counter() - began
            await _use_until_whole(clients, found, began, newest, more)
        found.memory_mib = _memory_mib(process.pid)
    return found


async def _use_until_whole(
    clients: Clients, found: Restart, began: float, newest: str, more: Sequence[str]
) -> None:
    words = " ".join(newest.split()[:20])
    for text in itertools.cycle(more):
        assert time.perf_counter() - began < _LONGEST_SECONDS, "it takes too long"
        at = time.perf_counter()
        await _commit(clients, text)
        found.commits.append(time.perf_counter() - at)
        at = time.perf_counter()
        hits, notes = await _recall(clients, words)
        found.recalls.append(time.perf_counter() - at)
        if not found.newest_old and newest in hits:
            found.newest_old = time.perf_counter() - began
        if not any("made anew" in note for note in notes):
            found.whole = time.perf_counter() - began
            return
        await asyncio.sleep(_PAUSE_SECONDS)


async def _commit(clients: Clients, text: str) -> None:
    context = CallContext(
        project_id=_CONTEXT.project_id,
        session_id=_CONTEXT.session_id,
        caller=_CONTEXT.caller,
        idempotency_key=f"key {time.perf_counter_ns()}",
    )
    request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=text)
    await commit_episode(clients, context, request)


async def _recall(clients: Clients, query: str) -> tuple[list[str], list[str]]:
    response = await recall(clients, _CONTEXT, memory_pb2.RecallRequest(query=query))
    return [hit.text for hit in response.hits], list(response.notes)


async def _until_serving(home: Home) -> None:
    while True:
        async with open_channel(home, "memory") as channel:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                health_pb2.HealthCheckRequest.SerializeToString,
                health_pb2.HealthCheckResponse.FromString,
            )
            try:
                await check(health_pb2.HealthCheckRequest(), timeout=1)
                return
            except grpc.aio.AioRpcError:
                await asyncio.sleep(_PAUSE_SECONDS / 5)


def _memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return float("nan")
    (line,) = (one for one in status.read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _row(name: str, episodes: int, one: Restart) -> list[object]:
    return [
        name,
        episodes,
        one.health,
        one.first_commit,
        one.first_recall,
        one.newest_old,
        one.whole,
        *(
            f"{percentile(samples, 0.5) * 1e3:.0f} / {percentile(samples, 0.95) * 1e3:.0f}"
            for samples in (one.commits, one.recalls)
        ),
        one.memory_mib,
    ]


_HEADS = (
    *("store", "episodes", "health s", "commit s", "recall s", "newest old s", "whole index s"),
    *("commit ms p50 / p95", "recall ms p50 / p95", "memory MiB"),
)


def main() -> None:
    """Measure, and print a table with the method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--plain", action="store_true", help="measure a plain store beside it")
    options = parser.parse_args()
    corpus, rows = Corpus(), []
    newest = corpus.text(options.episodes - 1)
    more = [*corpus.texts(options.episodes, _MORE_TEXTS)]
    for sealed in (True, False) if options.plain else (True,):
        with tempfile.TemporaryDirectory(prefix="mu-") as folder:
            place = Path(folder).resolve()
            home, keys = Home(place / "home"), place / "keys"
            home.path.mkdir()
            print(f"load before: {load()}", file=sys.stderr)
            make_store(home, keys, corpus, options.episodes, sealed=sealed)
            kinds = ("sealed",) if sealed else ("plain, no index yet", "plain, index on disk")
            for kind in kinds:
                one = asyncio.run(measure(home, keys, newest, more))
                rows.append(_row(kind, options.episodes, one))
            facts = stamp(place)
    print(__doc__)
    print(f"Texts {corpus.digest()}; {', '.join(f'{k} {v}' for k, v in facts.items())}\n")
    print(table(_HEADS, rows))


if __name__ == "__main__":
    main()
