"""Eight writers in a process that somebody kills: `python -m tests.support.store_writers`.

The process waits for orders, one JSON object a line, and forks a child for each, so that a new
child costs no start of Python. The child opens the store and writes until it is killed, telling
each step on its standard output in one short line: what it is about to ask for, and how that ended.
"""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import sys
import threading
import traceback
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import lmdb

from muniment.kit.clock import SystemClock
from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError
from muniment.kit.ids import IdMaker
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.logging import configure_logging
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store import Once, Protection, Store, StoreOptions, Writer
from muniment.kit.store.disk import SystemDisk
from muniment.memory.episodes import append_episode, prepare_episode
from muniment.memory.indexing import EpisodesAndPins
from muniment.memory.schema import SCHEMA
from muniment.v1 import memory_pb2

__all__ = ["CONTEXT", "KEY", "WRITERS", "Order", "content_of"]

WRITERS = 8
KEY = b"k" * 32
CONTEXT = CallContext(project_id="proj_kill", session_id="s")

_WORDS = ("harbour", "lantern", "quorum", "anchor", "ledger")
_WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.01


@dataclass(frozen=True)
class Order:
    """What a child is to do."""

    folder: str
    first: list[int]
    """By writer: the number of its next episode."""
    retried: list[int | None]
    """By writer: the number of one whose outcome it never learnt, which it asks for again."""
    map_limit_bytes: int = 1024**3
    first_map_bytes: int = 1024**2
    failing: float = 0.0
    """How often the disk refuses a commit."""
    file_limit_bytes: int = 0
    """Longest file that the kernel lets the child write, where not 0."""
    content_bytes: int = 200
    seed: int = 0
    retention_changes: int = field(default=1000)

    def to_line(self) -> str:
        """The order as it is sent."""
        return json.dumps(asdict(self)) + "\n"


def content_of(writer: int, number: int, size_bytes: int) -> str:
    """What the writer's episode of that number says."""
    words = random.Random(writer * 1_000_003 + number).choices(_WORDS, k=size_bytes // 7)
    return f"w{writer}n{number} " + " ".join(words)


class FailingDisk(SystemDisk):
    """Refuses commits now and then."""

    def __init__(self, failing: float, seed: int) -> None:
        self._failing = failing
        self._random = random.Random(seed)

    def committing(self, environment: lmdb.Environment) -> None:
        if self._random.random() < self._failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def tell(*words: object) -> None:
    """Say one line, at once: a killed process has said all that it has done."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def open_store(order: Order) -> Store:
    """The store with its index in step."""
    folder = Path(order.folder)
    store = Store(
        folder / "store",
        SCHEMA,
        Protection(KEY, sealed=False, randomness=SystemRandomness()),
        StoreOptions(
            map_limit_bytes=order.map_limit_bytes,
            first_map_bytes=order.first_map_bytes,
            retention_changes=order.retention_changes,
            disk=FailingDisk(order.failing, order.seed),
        ),
    )
    store.follow(
        IndexFollower(LexicalIndex(folder / "index" / "lexical.sqlite3"), EpisodesAndPins())
    )
    return store


def write_for_ever(order: Order) -> None:
    """Open the store and let the writers write."""
    if order.file_limit_bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (order.file_limit_bytes, resource.RLIM_INFINITY))
    clock, ids = SystemClock(), IdMaker(SystemClock(), SystemRandomness())
    try:
        store = open_store(order)
    except MunimentError as error:
        tell("unready", error.reason)
        return
    tell("ready")

    pause = threading.Event()

    def write(writer: int, number: int) -> None:
        content = content_of(writer, number, order.content_bytes)
        request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=content)
        new = prepare_episode(CONTEXT, request)

        def change(transaction: Writer) -> memory_pb2.CommitEpisodeResponse:
            episode = append_episode(transaction, clock, ids, CONTEXT, new)
            return memory_pb2.CommitEpisodeResponse(episode=episode)

        context = replace(CONTEXT, idempotency_key=f"w{writer}n{number}")
        once = Once(context, request, memory_pb2.CommitEpisodeResponse, change, clock)
        tell("ask", writer, number)
        try:
            response = store.write(once.run, remember=once.remember).result(_WAIT_SECONDS)
        except MunimentError as error:
            tell("refused", writer, number, error.reason)
            pause.wait(_PAUSE_SECONDS)
            return
        tell("done", writer, number, response.episode.seq)

    def run(writer: int) -> None:
        retried = order.retried[writer]
        if retried is not None:
            write(writer, retried)
        number = order.first[writer]
        while True:
            write(writer, number)
            number += 1

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Fork a child for each order, and tell how it ended."""
    configure_logging("writers", "critical")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                write_for_ever(Order(**json.loads(line)))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        tell("child", child)
        _, status = os.waitpid(child, 0)
        tell("end", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
