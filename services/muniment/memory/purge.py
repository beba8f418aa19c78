"""Purging: everything of a project goes, for good, and a tombstone says that it was there.

A purge is marked in one transaction: the project and its pins are gone then, and its episodes are
not shown any more. What is left is taken away in portions, so that others are served meanwhile:
episodes, what the feed and kept outcomes of calls say of them, the files that still have their
words, the search index. The mark stays until all of it is done, and a service that starts
finishes what it finds marked.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from threading import Event
from typing import Any, TypeVar

import structlog
from google.protobuf.message import Message

from muniment.kit import faults
from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError, NotFoundError, TamperedError, UnavailableError
from muniment.kit.progress import Report
from muniment.kit.store import Once, Reader, Store, Table, Writer, unpack
from muniment.kit.store.folders import set_aside
from muniment.kit.store.keys import KeyPart
from muniment.kit.store.tables import CHANGES, REPLIES, REPLY_TIMES
from muniment.memory.counts import forget_costs, forget_counts
from muniment.memory.limits import PURGE_BATCH_EPISODES, PURGE_BATCH_ROWS
from muniment.memory.projects import as_purged
from muniment.memory.schema import (
    CONTENTS,
    EPISODE_IDS,
    EPISODES,
    PIN_SCOPES,
    PINS,
    PROJECTS,
    PURGES,
    SESSIONS,
    SUPERSESSIONS,
    TOMBSTONES,
)
from muniment.v1 import memory_pb2, store_pb2

__all__ = ["Purger"]

M = TypeVar("M", bound=Message)
T = TypeVar("T")

Key = tuple[KeyPart, ...]

_WRITTEN_BY = "purge"

_log = structlog.get_logger()


class Purger:
    """Purges one project after the other, in a thread of its own."""

    def __init__(
        self, store: Store, rebuild_index: Callable[[Report], object], clock: Clock
    ) -> None:
        """`rebuild_index` makes the index anew, and returns when it is whole."""
        self._store = store
        self._rebuild_index = rebuild_index
        self._clock = clock
        self._closing = Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="purge")

    def resume(self) -> None:
        """Finish, in the background, what was begun before this process."""
        with self._store.read() as reader:
            found = [str(key[0]) for key, _ in _believed(reader, PURGES)]
        for project_id in found:
            _log.info("a purge goes on", project=project_id)
            self._thread.submit(self._finish_and_log, project_id)

    def purge(
        self, context: CallContext, request: memory_pb2.PurgeProjectRequest, report: Report
    ) -> Future[memory_pb2.PurgeProjectResult]:
        """Purge the project, after those that were asked for before.

        The future raises NotFoundError for a project of which nothing was ever kept, and
        LimitError where the disk is full.

        Raises:
            UnavailableError: The service stops.
        """
        self._check_open()
        return self._thread.submit(self._purge, context, request, report)

    def close(self) -> None:
        """Stop at the next portion; the next start goes on."""
        self._closing.set()
        self._thread.shutdown(cancel_futures=True)

    def _finish_and_log(self, project_id: str) -> None:
        try:
            self._finish(project_id, lambda step, done, total: None)
        except MunimentError as error:
            _log.error("a purge is not finished", project=project_id, error=str(error))
        except Exception:
            _log.exception("a purge is not finished", project=project_id)

    def _purge(
        self, context: CallContext, request: memory_pb2.PurgeProjectRequest, report: Report
    ) -> memory_pb2.PurgeProjectResult:
        project_id = request.project_id
        seqs, through = self._seqs(project_id, report)

        def mark(writer: Writer) -> memory_pb2.PurgeProjectResult:
            later = range(through + 1, writer.newest_number(EPISODES) + 1)
            return _mark(writer, self._clock, project_id, seqs | _of_project(writer, later))

        def _of_project(writer: Writer, some: Iterable[int]) -> set[int]:
            found = ((seq, _readable(writer, EPISODES, seq)) for seq in some)
            return {seq for seq, one in found if one is not None and one.project_id == project_id}

        # Kept for the host: what is kept for the project goes with it.
        of_host = replace(context, project_id="")
        once = Once(of_host, request, memory_pb2.PurgeProjectResult, mark, self._clock)
        written_by = f"{context.caller} {request.DESCRIPTOR.full_name}"
        marking = self._store.write(once.run, written_by=written_by, remember=once.remember)
        result = marking.result()
        faults.reach("purge.marked")
        self._finish(project_id, report)
        return result

    def _seqs(self, project_id: str, report: Report) -> tuple[set[int], int]:
        """The project's episodes, and up to which all were looked at."""
        with self._store.read() as reader:
            through, total = reader.last_number(EPISODES), reader.count(EPISODES)
            found = {reference.seq for _, reference in _believed(reader, SESSIONS, project_id)}
            if not found and not _has_row(reader, PROJECTS, project_id):
                return found, through
        # The list of its episodes may have been cut; they say themselves whose they are.
        for looked_at, ((seq,), episode) in enumerate(self._rows(EPISODES)):
            if episode.project_id == project_id:
                found.add(int(seq))
            if looked_at % PURGE_BATCH_ROWS == 0:
                report("looking for episodes", looked_at, total)
        return found, through

    def _finish(self, project_id: str, report: Report) -> None:
        """Do what is left of a purge that is marked; nothing, where it is finished."""
        with self._store.read() as reader:
            purge, tombstone = reader.get(PURGES, project_id), reader.get(TOMBSTONES, project_id)
        if purge is None or tombstone is None:
            return

        def going_on(step: str, done: int, total: int) -> None:
            self._check_open()
            report(step, done, total)

        seqs = [seq for run in tombstone.seqs for seq in range(run.first, run.last + 1)]
        self._take_episodes(project_id, seqs, going_on)
        self._take_outcomes(project_id, purge, going_on)
        self._empty_feed(project_id, purge, going_on)
        faults.reach("purge.emptied")
        self._store.compact(going_on)
        for copy in set_aside(self._store.path):
            _log.info("a copy of the store that was set aside is removed", folder=str(copy))
            shutil.rmtree(copy)
        faults.reach("purge.compacted")
        self._rebuild_index(going_on)
        faults.reach("purge.indexed")
        self._write(lambda writer: writer.delete(PURGES, project_id))
        _log.info("purged", project=project_id, episodes=purge.episodes, pins=purge.pins)

    def _take_episodes(self, project_id: str, seqs: Sequence[int], report: Report) -> None:
        """Take the rows of the episodes away; those that are gone already cost little."""
        unreadable: set[int] = set()
        for done, batch in _batches(seqs, PURGE_BATCH_EPISODES):
            unreadable |= self._write(_taking(project_id, batch))
            report("removing episodes", done, len(seqs))
        # What an episode that cannot be read would have said of itself is looked for.
        every = set(seqs) if unreadable else set()
        with self._store.read() as reader:
            listed = [key for key, _ in _believed(reader, SESSIONS, project_id) if key[2] in every]
        self._delete(SESSIONS, listed)
        if unreadable:
            named = [key for key, one in self._rows(EPISODE_IDS) if one.seq in unreadable]
            self._delete(EPISODE_IDS, named)

    def _take_outcomes(self, project_id: str, purge: store_pb2.StoredPurge, report: Report) -> None:
        """Take away what is kept of calls for the project before the purge."""
        report("removing outcomes of calls", 0, 0)
        begun = purge.begun_at.ToNanoseconds()
        found: list[tuple[int, Key]] = []
        for key, reply in self._rows(REPLIES):
            at = reply.created_at.ToNanoseconds()
            if key[0] == project_id and at <= begun:
                found.append((at, key))
        self._delete(REPLIES, [key for _, key in found])
        self._delete(REPLY_TIMES, [(at, *key) for at, key in found])

    def _empty_feed(self, project_id: str, purge: store_pb2.StoredPurge, report: Report) -> None:
        """Take the project's texts and names out of the feed, whose chain goes over digests."""
        found: list[tuple[int, bool]] = []
        for (position,), change in self._rows(CHANGES):
            if int(position) > purge.through_position:
                break
            names, tells = _names_project(change, project_id), _tells_of(change, project_id)
            if names or tells:
                found.append((int(position), names))
        for done, batch in _batches(found, PURGE_BATCH_ROWS):
            self._write(_emptying(batch))
            report("emptying the feed", done, len(found))

    def _delete(self, table: Table[Any], keys: Sequence[Key]) -> None:
        for _, batch in _batches(keys, PURGE_BATCH_ROWS):
            self._write(_deleting(table, batch))

    def _rows(self, table: Table[M]) -> Iterator[tuple[Key, M]]:
        """All rows of the table that can be believed, in portions with a moment for each."""
        after: bytes | None = None
        while True:
            self._check_open()
            found = []
            with self._store.read() as reader:
                portion = list(islice(reader.raw_rows(table, after), PURGE_BATCH_ROWS))
                for address, raw in portion:
                    try:
                        row = reader.open_row(table, address, raw)
                    except TamperedError:
                        continue
                    found.append((row.key, table.message.FromString(row.payload.value)))
            yield from found
            if len(portion) < PURGE_BATCH_ROWS:
                return
            after = portion[-1][0]

    def _write(self, change: Callable[[Writer], T]) -> T:
        self._check_open()
        return self._store.write(change, written_by=_WRITTEN_BY).result()

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise UnavailableError(
                "the service stops; the purge goes on when it is started again",
                reason="PURGE_INTERRUPTED",
                fix="call again",
            )


def _mark(
    writer: Writer, clock: Clock, project_id: str, seqs: Collection[int]
) -> memory_pb2.PurgeProjectResult:
    """Let the project be gone for all who look, and note what is still to be done.

    Raises:
        NotFoundError: Nothing was ever kept for it.
    """
    tombstone = _readable(writer, TOMBSTONES, project_id)
    under_way = writer.get(PURGES, project_id)
    if tombstone is not None and under_way is not None:
        return _result(tombstone, under_way)
    scopes = [key for key, _ in _believed(writer, PIN_SCOPES, project_id)]
    pins = _pins_of(writer, project_id)
    if not (seqs or pins or scopes) and not _has_row(writer, PROJECTS, project_id):
        if tombstone is None:
            raise NotFoundError(
                f"this host remembers nothing of a project {project_id}",
                reason="PROJECT_UNKNOWN",
                field="project_id",
                fix="`muniment projects` lists those that it knows",
            )
        return memory_pb2.PurgeProjectResult(purged=as_purged(tombstone), already_purged=True)
    now = timestamp(clock)
    tombstone = tombstone or store_pb2.StoredTombstone(project_id=project_id)
    runs = _runs(sorted({*seqs, *_seqs_in(tombstone.seqs)}))
    del tombstone.seqs[:]
    tombstone.seqs.extend(runs)
    tombstone.purged_at.CopyFrom(now)
    tombstone.ClearField("revived_at")
    tombstone.episodes += len(seqs)
    tombstone.pins += len(scopes)
    writer.put(TOMBSTONES, project_id, value=tombstone)
    for key in scopes:
        writer.purge(PIN_SCOPES, *key)
    for pin_id in pins:
        writer.purge(PINS, pin_id)
    forget_costs(writer, project_id)
    writer.delete(PROJECTS, project_id)
    purge = store_pb2.StoredPurge(
        begun_at=now,
        through_seq=writer.newest_number(EPISODES),
        through_position=writer.new_state.position,
        episodes=len(seqs),
        pins=len(scopes),
    )
    writer.put(PURGES, project_id, value=purge)
    return _result(tombstone, purge)


def _result(
    tombstone: store_pb2.StoredTombstone, purge: store_pb2.StoredPurge
) -> memory_pb2.PurgeProjectResult:
    """What the purge takes away, and not those before it."""
    purged = as_purged(tombstone)
    purged.episodes, purged.pins = purge.episodes, purge.pins
    return memory_pb2.PurgeProjectResult(purged=purged)


def _pins_of(writer: Writer, project_id: str) -> set[str]:
    """The project's pins, those that were taken away too."""
    named = {reference.pin_id for _, reference in _believed(writer, PIN_SCOPES, project_id)}
    own = (key for key, stored in _believed(writer, PINS) if stored.pin.project_id == project_id)
    return named | {str(key[0]) for key in own}


def _taking(project_id: str, seqs: Sequence[int]) -> Callable[[Writer], set[int]]:
    """Takes the episodes' rows away; gives those of which the description could not be read."""

    def take(writer: Writer) -> set[int]:
        unreadable = set()
        for seq in seqs:
            try:
                episode = writer.get(EPISODES, seq)
            except TamperedError:
                episode = None
                unreadable.add(seq)
            if episode is not None:
                writer.delete(SESSIONS, project_id, episode.session_id, seq)
                reference = _readable(writer, EPISODE_IDS, episode.episode_id)
                if reference is not None and reference.seq == seq:
                    writer.delete(EPISODE_IDS, episode.episode_id)
            writer.purge(EPISODES, seq)
            writer.delete(CONTENTS, seq)
            writer.purge(SUPERSESSIONS, seq)
        forget_counts(writer, seqs)
        return unreadable

    return take


def _deleting(table: Table[Any], keys: Sequence[Key]) -> Callable[[Writer], None]:
    def delete(writer: Writer) -> None:
        for key in keys:
            writer.delete(table, *key)

    return delete


def _emptying(changes: Sequence[tuple[int, bool]]) -> Callable[[Writer], None]:
    def empty(writer: Writer) -> None:
        for position, with_key in changes:
            writer.purge_change(position, with_key=with_key)

    return empty


def _names_project(change: store_pb2.StoredChange, project_id: str) -> bool:
    """Whether the key has the project, and with it a session and the digest of a text."""
    is_scope = change.table == PIN_SCOPES.name and change.key
    return bool(is_scope) and unpack(change.key)[0] == project_id


def _tells_of(change: store_pb2.StoredChange, project_id: str) -> bool:
    """Whether the value before is a pin of the project."""
    if change.table != PINS.name or not change.HasField("before"):
        return False
    return store_pb2.StoredPin.FromString(change.before).pin.project_id == project_id


def _runs(seqs: Sequence[int]) -> list[store_pb2.SeqRun]:
    """Ascending seqs as runs."""
    runs: list[store_pb2.SeqRun] = []
    for seq in seqs:
        if runs and seq == runs[-1].last + 1:
            runs[-1].last = seq
        else:
            runs.append(store_pb2.SeqRun(first=seq, last=seq))
    return runs


def _seqs_in(runs: Iterable[store_pb2.SeqRun]) -> Iterator[int]:
    for run in runs:
        yield from range(run.first, run.last + 1)


def _batches(items: Sequence[T], size: int) -> Iterator[tuple[int, Sequence[T]]]:
    """How many are done with each batch, and the batch."""
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        yield start + len(batch), batch


def _readable(reader: Reader, table: Table[M], *key: KeyPart) -> M | None:
    """The row of that key; None where it cannot be believed, too."""
    try:
        return reader.get(table, *key)
    except TamperedError:
        return None


def _has_row(reader: Reader, table: Table[M], *key: KeyPart) -> bool:
    """Whether there is or should be a row, be it believed or not."""
    try:
        return reader.get(table, *key) is not None
    except TamperedError:
        return True


def _believed(reader: Reader, table: Table[M], *prefix: KeyPart) -> Iterator[tuple[Key, M]]:
    """The rows under the prefix that can be believed."""
    for key, value in reader.survey(table, *prefix):
        if not isinstance(value, TamperedError):
            yield key, value
