"""A memory without its service: its store, its index, and what is done to them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.ids import IdMaker
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.progress import Report
from muniment.kit.store import Store, StoreOptions, Writer
from muniment.kit.store.idempotency import Once
from muniment.kit.store.jobs import ThreadedLoop, WriterLoop
from muniment.memory.counts import Serving
from muniment.memory.episodes import append_episode, find_episode, prepare_episode
from muniment.memory.exporting import Export
from muniment.memory.importing import Import
from muniment.memory.indexing import EpisodesAndPins
from muniment.memory.pins import add_pin, list_pins, remove_pin
from muniment.memory.purge import Purger
from muniment.memory.recall import recall
from muniment.memory.schema import SCHEMA
from muniment.v1 import memory_pb2
from tests.support.seams import FakeClock, SeededRandomness
from tests.support.stores import QuickDisk, protection

__all__ = ["BareMemory", "Imported", "a_bare_memory"]

_MAP_LIMIT_BYTES = 256 * 1024**2
_STEP_NS = 1_000_000
_keys = itertools.count(1)
_seeds = itertools.count(1)


@dataclass(frozen=True)
class Imported:
    """What came of an import."""

    result: memory_pb2.ImportResult
    remarks: list[memory_pb2.ImportRemark]

    @property
    def refused(self) -> list[tuple[int, str]]:
        """Line and field of what was refused."""
        return [(one.line, one.field) for one in self.remarks if one.refused]


@dataclass(frozen=True)
class BareMemory:
    """A memory that is open."""

    store: Store
    index: LexicalIndex
    follower: IndexFollower
    purger: Purger
    clock: Clock
    ids: IdMaker

    def commit(
        self,
        project_id: str,
        content: str,
        *,
        session_id: str = "",
        role: memory_pb2.Role.ValueType = memory_pb2.ROLE_USER,
        tool_name: str | None = None,
        corrects: str | None = None,
        slot_id: int = 0,
        root: str = "",
    ) -> memory_pb2.Episode:
        """Append a turn, as a call does."""
        context = CallContext(
            project_id=project_id,
            project_root=root,
            session_id=session_id,
            slot_id=slot_id,
            caller="test",
            idempotency_key=f"key-{next(_keys)}",
        )
        request = memory_pb2.CommitEpisodeRequest(
            role=role, content=content, tool_name=tool_name, corrects=corrects
        )
        new = prepare_episode(context, request)

        def change(writer: Writer) -> memory_pb2.CommitEpisodeResponse:
            episode = append_episode(writer, self.clock, self.ids, context, new)
            return memory_pb2.CommitEpisodeResponse(episode=episode)

        once = Once(context, request, memory_pb2.CommitEpisodeResponse, change, self.clock)
        return self.store.write(once.run, written_by="test").result().episode

    def pin(
        self,
        project_id: str,
        content: str,
        *,
        session_id: str | None = None,
        kind: memory_pb2.PinKind.ValueType = memory_pb2.PIN_KIND_TASK_CONTRACT,
    ) -> str:
        """Pin a rule; the pin's id."""
        context = CallContext(project_id, caller="test", idempotency_key=f"key-{next(_keys)}")
        request = memory_pb2.PinRequest(content=content, session_id=session_id, kind=kind)

        def change(writer: Writer) -> memory_pb2.PinResponse:
            return add_pin(writer, self.clock, self.ids, context, request)

        once = Once(context, request, memory_pb2.PinResponse, change, self.clock)
        return self.store.write(once.run, written_by="test").result().pin.pin_id

    def unpin(self, project_id: str, pin_id: str) -> None:
        """Take a pin away."""
        context = CallContext(project_id)
        self.store.write(lambda writer: remove_pin(writer, self.clock, context, pin_id)).result()

    def pins(self, project_id: str, session_id: str | None = None) -> list[memory_pb2.PinnedRule]:
        """The pins in force."""
        with self.store.read() as reader:
            return list(list_pins(reader, project_id, session_id).pins)

    def episode(self, project_id: str, episode_id: str) -> memory_pb2.Episode | None:
        """The project's episode of that id."""
        with self.store.read() as reader:
            return find_episode(reader, project_id, episode_id)

    def recall(self, project_id: str, query: str) -> memory_pb2.RecallResponse:
        """What answers the query."""
        request = memory_pb2.RecallRequest(query=query)
        with self.store.read() as reader:
            return recall(reader, self.index, CallContext(project_id), request)

    def export(self, project_id: str | None = None) -> bytes:
        """The lines of the project, or of all."""
        with self.store.read() as reader:
            export = Export(reader, project_id, "muniment test", timestamp(self.clock), Serving())
        lines = b""
        while not export.done:
            with self.store.read() as reader:
                lines += export.page(reader)
        with self.store.read() as reader:
            return lines + export.end(reader)[0]

    def take(self, lines: bytes, *, revive: bool = False, chunk_bytes: int = 1 << 20) -> Imported:
        """Import the lines."""
        remarks: list[memory_pb2.ImportRemark] = []
        taking = Import(self.store, self.clock, "test import", remarks.append, revive=revive)
        for start in range(0, len(lines), chunk_bytes):
            taking.take(lines[start : start + chunk_bytes])
        return Imported(taking.end(), remarks)

    def purge(
        self,
        project_id: str,
        *,
        key: str | None = None,
        report: Report = lambda step, done, total: None,
    ) -> memory_pb2.PurgeProjectResult:
        """Purge the project."""
        context = CallContext(caller="test", idempotency_key=key or f"key-{next(_keys)}")
        request = memory_pb2.PurgeProjectRequest(project_id=project_id)
        return self.purger.purge(context, request, report).result()


@contextmanager
def a_bare_memory(
    folder: Path,
    *,
    sealed: bool = False,
    clock: Clock | None = None,
    loop: WriterLoop | None = None,
) -> Iterator[BareMemory]:
    """The memory in that folder, made where there is none; its threads end with the block."""
    seed = next(_seeds)
    if clock is None:
        clock = FakeClock(step_ns=_STEP_NS)
        # Who is opened later lives later.
        clock.move(3600 * seed)
    folder.mkdir(exist_ok=True)
    options = StoreOptions(
        map_limit_bytes=_MAP_LIMIT_BYTES,
        clock=clock,
        disk=QuickDisk(),
        loop=loop or ThreadedLoop(),
    )
    store = Store(folder / "store", SCHEMA, protection(sealed=sealed, seed=seed), options)
    index = LexicalIndex(None if sealed else folder / "lexical.sqlite3")
    follower = IndexFollower(index, EpisodesAndPins())

    def rebuild(report: Report) -> None:
        follower.rebuild(store.read)
        while follower.fill(store.read):
            report("indexing", 0, 0)

    purger = Purger(store, rebuild, clock)
    store.follow(follower)
    try:
        ids = IdMaker(clock, SeededRandomness(seed))
        yield BareMemory(store, index, follower, purger, clock, ids)
    finally:
        purger.close()
        follower.close()
        store.close()
        index.close()
