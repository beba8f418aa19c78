"""One LMDB environment with typed tables, a single writer and a feed of changes.

A write is a function of a `Writer`. It runs on the store's writer, in one transaction with
everything it reads and with the other writes that waited; its future resolves after the
transaction is on disk and every follower (the lexical index) has taken the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeVar

import lmdb
import structlog

from muniment.kit import faults
from muniment.kit.clock import Clock, SystemClock
from muniment.kit.errors import (
    ConflictError,
    InvalidArgumentError,
    MunimentError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from muniment.kit.files import private_folder
from muniment.kit.progress import Report
from muniment.kit.store.compaction import compact_store
from muniment.kit.store.disk import Disk, SystemDisk
from muniment.kit.store.failures import require_whole, unreadable, write_error
from muniment.kit.store.folders import NEW_LIFE, settle
from muniment.kit.store.freshness import Entry, Freshness
from muniment.kit.store.gate import Gate
from muniment.kit.store.idempotency import forget_replies
from muniment.kit.store.jobs import Job, ThreadedLoop, WriterLoop
from muniment.kit.store.journal import Journal
from muniment.kit.store.opening import Opening
from muniment.kit.store.protection import Protection
from muniment.kit.store.schemas import begin_incarnation, check_schema
from muniment.kit.store.tables import META, Schema
from muniment.kit.store.transaction import Engine, Reader, Writer
from muniment.v1 import store_pb2

__all__ = ["Follower", "Store", "StoreOptions"]

T = TypeVar("T")

_KEPT_ERRORS = (ConflictError, InvalidArgumentError, NotFoundError, PreconditionError)
"""Errors that are a call's outcome: the same call would end so again."""

_HOUSEWORK_ROWS = 64
"""What a batch clears away of old replies and changes, besides twice as many as it adds."""

_log = structlog.get_logger()


class Follower(Protocol):
    """Something derived from the store that is brought up to date after each commit."""

    def catch_up(self, read: Callable[[], Any]) -> None:
        """Take what changed since the follower's position.

        `read` gives a context manager of a `Reader`, for as many moments as it takes.
        """
        ...


@dataclass(frozen=True)
class StoreOptions:
    """How a store is kept."""

    map_limit_bytes: int
    """Most that the store may grow to."""
    first_map_bytes: int = 256 * 1024 * 1024
    """What it may fill before it grows, by doubling."""
    retention_changes: int = 1_000_000
    """How many changes the feed keeps."""
    reply_life_seconds: float = 24 * 3600
    """How long the outcome of a call is kept for those who ask again."""
    disk: Disk = field(default_factory=SystemDisk)
    loop: WriterLoop = field(default_factory=ThreadedLoop)
    clock: Clock = field(default_factory=SystemClock)


class _HalfDoneError(Exception):
    """A change failed after it wrote, so its transaction must go."""


class Store:
    """A store, open until `close`. One process alone may hold it."""

    def __init__(
        self, folder: Path, schema: Schema, protection: Protection, options: StoreOptions
    ) -> None:
        """Open the store, and make it where there is none.

        Raises:
            PreconditionError: It has another schema version or key, or cannot be opened.
        """
        settle(folder)
        self.path = private_folder(folder)
        self._schema = schema
        self._options = options
        self._protection = protection
        self._followers: list[Follower] = []
        self._gate = Gate()
        self._committing = Lock()
        self._journal = Journal()
        self._copying = Lock()
        self.doubts: list[str] = []
        """What was found amiss on opening, for people; verification tells more."""
        self._open()
        self._loop = options.loop
        self._loop.start(self._commit, self._follow)

    @property
    def schema(self) -> Schema:
        """The store's tables."""
        return self._schema

    @property
    def protection(self) -> Protection:
        """How the store's rows are checked or sealed."""
        return self._protection

    @property
    def clock(self) -> Clock:
        """The store's time."""
        return self._options.clock

    @property
    def incarnation(self) -> str:
        """Identity of this life of the store."""
        return self._state.incarnation

    @property
    def position(self) -> int:
        """Position of the newest change that is on disk."""
        return self._state.position

    def size_bytes(self) -> int:
        """Disk that the store uses."""
        return (self.path / "data.mdb").stat().st_blocks * 512

    def follow(self, follower: Follower) -> None:
        """Keep the follower up to date, starting with what it has missed."""
        self._followers.append(follower)
        follower.catch_up(self.read)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """One moment of the store, for this thread."""
        # The transaction begins after `seen` is known, so it sees that much or more.
        with (
            self._gate.shared(),
            self._engine.freshness.reading() as seen,
            self._environment.begin(buffers=False) as transaction,
        ):
            yield Reader(self._engine, transaction, seen)

    @contextmanager
    def moment(self) -> Iterator[tuple[Reader, store_pb2.StoredState]]:
        """One moment of the store, and its account of that moment as this process has it.

        For long work, which looks at `is_wanted` and ends when that is true.
        """
        with self._gate.shared(), self._engine.freshness.reading() as seen:
            with self._committing:
                state, transaction = self._state, self._environment.begin(buffers=False)
            with transaction:
                yield Reader(self._engine, transaction, seen), state

    @property
    def is_wanted(self) -> bool:
        """Whether a write, or who closes the store, waits for the readers to leave."""
        return self._gate.is_wanted

    def write(
        self,
        change: Callable[[Writer], T],
        *,
        written_by: str = "store",
        remember: Callable[[Writer, MunimentError], None] | None = None,
    ) -> Future[T]:
        """Run the change after those that were asked for before.

        The future has the change's result once it is on disk and followed. When the change
        raises, nothing of it is kept, but what `remember` writes about an error that the same
        call would end with again. When only a follower failed, the change is kept and the error
        is one that a retry with the same idempotency key resolves.
        """
        job = Job(change, written_by, remember)
        self._loop.submit(job)
        return job.future

    def copy_to(self, descriptor: int) -> None:
        """Write the newest commit as one compact file to the descriptor; writers go on."""
        # A map that grows waits for readers, and so for the copy, and everybody for the map.
        self.between(self._make_room).result()
        with self._copying, self._gate.shared():
            self._environment.copyfd(descriptor, compact=True)

    def _make_room(self) -> None:
        pages, page_bytes = self._environment.info()["last_pgno"], self._environment.stat()["psize"]
        if 2 * pages * page_bytes > self._map_bytes:
            self._grow()

    def compact(self, report: Report) -> None:
        """Go on with a fresh copy of the files: what was deleted stands on no page of it.

        Raises:
            LimitError: The copy cannot be written; the old files stay.
        """
        with self._copying:  # Its last moment waits for readers, and everybody for that.
            compact_store(self, self._journal, self._options.disk, self._map_bytes, report)

    def between(self, work: Callable[[], T]) -> Future[T]:
        """Run the work on the writer in its turn, when no transaction is open."""
        job = Job(lambda _: None, "store", work=work)
        self._loop.submit(job)
        return job.future

    @contextmanager
    def standing_still(self) -> Iterator[lmdb.Environment]:
        """Keep readers out, for what rearranges the files. Called on the writer."""
        with self._gate.alone():
            yield self._environment

    def replace_files(self, swap: Callable[[lmdb.Environment], None]) -> None:
        """Let `swap` copy the environment and put other files in its place, then open those."""
        with self.standing_still() as environment:
            try:
                swap(environment)
            finally:
                environment.close()
                settle(self.path)
                self._open()

    def close(self) -> None:
        """Finish the writes that were asked for, and close."""
        self._loop.stop()
        with self.standing_still() as environment:
            environment.close()

    # --- Opening

    def _open(self) -> None:
        self.doubts.clear()
        tables = self._schema.all_tables()
        size = self.path / "data.mdb"
        used = size.stat().st_size if size.exists() else 0
        self._map_bytes = min(
            max(self._options.first_map_bytes, 2 * used), self._options.map_limit_bytes
        )
        try:
            self._environment = self._options.disk.open(
                folder=self.path, map_bytes=max(self._map_bytes, used), tables=len(tables) + 4
            )
        except lmdb.Error as error:
            raise unreadable(self.path, error) from error
        try:
            require_whole(self.path, self._environment)
            self._environment.reader_check()
            meta = self._environment.open_db(META.name.encode())
            # Before any table is made: a store of another version is left as it is.
            check_schema(self._environment, meta, self._schema.version, self._protection, self.path)
            self._engine = Engine(
                {table.name: self._environment.open_db(table.name.encode()) for table in tables},
                self._protection,
                self._schema.version,
                Freshness(),
                self._options.clock,
                self.doubts,
                self._journal,
            )
            self._state = self._read_state()
            self._learn_freshness()
        except lmdb.Error as error:
            self._environment.close()
            raise unreadable(self.path, error) from error
        except MunimentError:
            self._environment.close()
            raise
        for doubt in self.doubts:
            _log.error("store in doubt", store=str(self.path), doubt=doubt)

    def _read_state(self) -> store_pb2.StoredState:
        with self._environment.begin() as transaction:
            state, is_new = self._opening(transaction).state()
        begins = (self.path / NEW_LIFE).exists() or not state.incarnation
        if begins:
            begin_incarnation(state, self._protection)
        if begins or is_new:
            with self._environment.begin(write=True) as transaction:
                Writer(self._engine, transaction, state, {}, "store").finish()
        (self.path / NEW_LIFE).unlink(missing_ok=True)
        return state

    def _learn_freshness(self) -> None:
        with self._environment.begin() as transaction:
            opening = self._opening(transaction)
            opening.learn(self._state, self._engine.freshness)
        self._engine.freshness.reach(self._state.position)
        self.doubts.extend(opening.doubts)

    def _opening(self, transaction: lmdb.Transaction) -> Opening:
        return Opening(Reader(self._engine, transaction, seen=0), self._schema, self._protection)

    # --- Writing

    def _commit(self, jobs: Sequence[Job]) -> None:
        """Run the jobs in one transaction, which is on disk when this returns.

        What runs between transactions parts those before it from those behind it.
        """
        wanted = [job for job in jobs if job.future.set_running_or_notify_cancel()]
        for between, some in groupby(wanted, key=lambda job: job.work is not None):
            if between:
                for job in some:
                    job.do_work()
            else:
                self._commit_some(list(some))

    def _commit_some(self, jobs: Sequence[Job]) -> None:
        """Commit the jobs together; where that fails one by one, so that what fits gets in."""
        for job in jobs:
            job.result, job.error = None, None
        try:
            if jobs:
                with self._committing:
                    self._transact(jobs)
                faults.reach("store.after_commit")
        except lmdb.PanicError:
            self._reopen(jobs)
        except Exception as error:
            if isinstance(error, lmdb.MapFullError) and self._grow():
                self._commit_some(jobs)
            elif len(jobs) > 1:
                for job in jobs:
                    self._commit_some([job])
            else:
                jobs[0].error = write_error(error, self._options.map_limit_bytes)

    def _transact(self, jobs: Sequence[Job]) -> None:
        try:
            self._transact_by(self._run_together, jobs)
        except _HalfDoneError:
            for job in jobs:
                job.result, job.error = None, None
            self._transact_by(self._run_apart, jobs)

    def _transact_by(
        self, run: Callable[[lmdb.Transaction, Sequence[Job]], Writer | None], jobs: Sequence[Job]
    ) -> None:
        state, fresh = self._state, dict[tuple[str, bytes], Entry]()
        learnt = False
        try:
            with self._environment.begin(write=True, buffers=False) as transaction:
                writer = run(transaction, jobs)
                if writer is not None:
                    writer.written_by = "store"
                    self._keep_house(writer, len(jobs))
                    writer.finish()
                    state, fresh = writer.new_state, writer.fresh
                    learnt = True
                    self._learn(fresh)
                    # Who only asks for an outcome that is kept needs no room on the disk.
                    self._options.disk.committing(self._environment)
                faults.reach("store.before_commit")
            self._options.disk.committed(self._environment)
        except BaseException:
            if learnt:
                self._engine.freshness.unlearn(fresh)
            raise
        self._state = state
        self._engine.freshness.reach(state.position)

    def _run_together(self, transaction: lmdb.Transaction, jobs: Sequence[Job]) -> Writer | None:
        """Run the jobs one after the other. The writer, or None where nothing was written.

        Raises:
            _HalfDoneError: One failed after it wrote.
        """
        writer = Writer(self._engine, transaction, self._state, {}, "store")
        wrote = False
        for job in jobs:
            writer.written_by, writer.has_written = job.written_by, False
            try:
                job.result = job.change(writer)
            except lmdb.Error:
                raise
            except Exception as error:
                if writer.has_written:
                    raise _HalfDoneError from error
                job.error = error
                if job.remember is not None and isinstance(error, _KEPT_ERRORS):
                    job.remember(writer, error)
            wrote = wrote or writer.has_written
        return writer if wrote else None

    def _run_apart(self, transaction: lmdb.Transaction, jobs: Sequence[Job]) -> Writer | None:
        """As `_run_together`, each in a transaction within, which costs as much as a small job."""
        state, fresh = self._state, dict[tuple[str, bytes], Entry]()
        for job in jobs:
            state, fresh = self._run(transaction, job, state, fresh)
        if state is self._state:
            return None
        return Writer(self._engine, transaction, state, fresh, "store")

    def _run(
        self,
        transaction: lmdb.Transaction,
        job: Job,
        state: store_pb2.StoredState,
        fresh: dict[tuple[str, bytes], Entry],
    ) -> tuple[store_pb2.StoredState, dict[tuple[str, bytes], Entry]]:
        """One job in a transaction within the batch's. What it leaves, or what was before."""

        def attempt(change: Callable[[Writer], Any]) -> tuple[Any, Writer]:
            with self._environment.begin(parent=transaction, write=True, buffers=False) as nested:
                writer = Writer(self._engine, nested, state, fresh, job.written_by)
                return change(writer), writer

        try:
            job.result, writer = attempt(job.change)
        except lmdb.Error:
            raise
        except Exception as error:
            job.error = error
            remember = job.remember
            if remember is None or not isinstance(error, _KEPT_ERRORS):
                return state, fresh
            kept = error
            _, writer = attempt(lambda writer: remember(writer, kept))
        writer.settle()
        return writer.new_state, writer.fresh

    def _keep_house(self, writer: Writer, jobs: int) -> None:
        """Forget replies that nobody asks for any more and changes beyond the retention.

        It clears away more than the batch adds, so neither grows for ever, and not all at once.
        """
        options, state = self._options, writer.new_state
        most = _HOUSEWORK_ROWS + 2 * jobs
        forget_replies(writer, options.clock, options.reply_life_seconds, most)
        most = _HOUSEWORK_ROWS + 2 * (state.position - self._state.position)
        writer.forget_before(state.position - options.retention_changes + 1, most)

    def _learn(self, fresh: dict[tuple[str, bytes], Entry]) -> None:
        for (table, address), (position, present) in fresh.items():
            self._engine.freshness.learn(table, address, position, present=present)

    def _grow(self) -> bool:
        """Double the map, up to the limit. False where it is there already."""
        if self._map_bytes >= self._options.map_limit_bytes:
            return False
        self._map_bytes = min(2 * self._map_bytes, self._options.map_limit_bytes)
        with self.standing_still() as environment:
            environment.set_mapsize(self._map_bytes)
        _log.info("store grows", store=str(self.path), map_bytes=self._map_bytes)
        return True

    def _reopen(self, jobs: Sequence[Job]) -> None:
        """Open the files anew: LMDB does not know which of two states the disk has."""
        _log.error("store is opened anew", store=str(self.path))
        try:
            self.replace_files(lambda environment: None)
        except MunimentError:
            _log.exception("store cannot be opened anew")
        for job in jobs:
            job.error = UnavailableError(
                "the store could not be written, and whether this was kept is not known",
                reason="STORE_OPENED_ANEW",
                fix="call again with the same idempotency key",
            )

    def _follow(self, jobs: Sequence[Job]) -> None:
        """Bring the followers up to date, then tell those who wait."""
        failure: Exception | None = None
        try:
            for follower in self._followers:
                follower.catch_up(self.read)
        except Exception as error:
            failure = error
        faults.reach("store.after_follow")
        for job in jobs:
            if job.future.done():
                # It was cancelled, or told of a defect.
                continue
            outcome = job.error or failure
            if outcome is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(outcome)
