"""Group commit: one writer gathers the writes that wait into one transaction.

While a batch goes to the disk the next one gathers, and while it is being followed (indexed) the
next is committed: two threads, in order. The loop is handed to the store, so that a test can run
batches one by one in its own thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from muniment.kit.clock import Clock, SystemClock
from muniment.kit.errors import MunimentError, UnavailableError
from muniment.kit.store.transaction import Writer

__all__ = ["Commit", "Follow", "Job", "ThreadedLoop", "WriterLoop"]

BATCH_LIMIT_JOBS = 256
"""Most writes in one transaction."""

LEAST_GATHER_SECONDS, MOST_GATHER_SECONDS = 0.0005, 0.004
"""Bounds of how long a batch waits for writers that may come back, in seconds."""

_GATHER_SHARE = 0.5
"""That wait, as a share of what the last batch took: a slow disk is worth a longer one."""

_log = structlog.get_logger()


@dataclass(eq=False)
class Job:
    """One write that waits for its turn."""

    change: Callable[[Writer], Any]
    written_by: str
    remember: Callable[[Writer, MunimentError], None] | None = None
    """Keeps an error as the call's outcome, in a transaction of its own."""
    work: Callable[[], Any] | None = None
    """Runs in place of `change`, between transactions."""
    future: Future[Any] = field(default_factory=Future)
    result: Any = None
    error: Exception | None = None

    def do_work(self) -> None:
        """Run what runs between transactions."""
        try:
            self.result = self.work() if self.work else None
        except Exception as error:
            self.error = error


Commit = Callable[[Sequence[Job]], None]
Follow = Callable[[Sequence[Job]], None]


class WriterLoop(Protocol):
    """Runs jobs in order, in batches: first `commit`, then `follow`, which ends them."""

    def start(self, commit: Commit, follow: Follow) -> None:
        """Begin to run jobs."""
        ...

    def submit(self, job: Job) -> None:
        """Take a job."""
        ...

    def stop(self) -> None:
        """Run what was taken, then end."""
        ...


class ThreadedLoop:
    """The loop of a service: a thread that commits and one that follows."""

    def __init__(
        self, clock: Clock | None = None, *, batch_limit_jobs: int = BATCH_LIMIT_JOBS
    ) -> None:
        self._clock = clock or SystemClock()
        self._batch_limit_jobs = batch_limit_jobs
        self._following = 0
        """Jobs that are on disk and not yet answered."""
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._committed: queue.SimpleQueue[Sequence[Job] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._stopped = False

    def start(self, commit: Commit, follow: Follow) -> None:
        """Begin to run jobs."""
        for name, target in (
            ("store-writer", lambda: self._write(commit)),
            ("store-follower", lambda: self._follow(follow)),
        ):
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def submit(self, job: Job) -> None:
        """Take a job."""
        with self._lock:
            if self._stopped:
                raise UnavailableError(
                    "the store is closing", reason="STORE_CLOSING", fix="call again"
                )
            self._jobs.put(job)

    def stop(self) -> None:
        """Run what was taken, then end."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _write(self, commit: Commit) -> None:
        last_jobs, patience = 1, LEAST_GATHER_SECONDS
        while True:
            batch, is_last = self._gather(last_jobs, patience)
            if batch:
                began = self._clock.monotonic()
                _guarded(commit, batch)
                taken = _GATHER_SHARE * (self._clock.monotonic() - began)
                patience = min(max(taken, LEAST_GATHER_SECONDS), MOST_GATHER_SECONDS)
                last_jobs = len(batch)
                with self._lock:
                    self._following += last_jobs
                self._committed.put(batch)
            if is_last:
                self._committed.put(None)
                return

    def _gather(self, last_jobs: int, patience: float) -> tuple[list[Job], bool]:
        """The next batch, and whether it is the last.

        Writers that wait for their answers before they write again come back together; a short
        wait for as many as came last, and for those that are about to be answered, brings them
        into one batch and keeps them there.
        """
        batch: list[Job] = []
        expected, end = 1, 0.0
        while len(batch) < self._batch_limit_jobs:
            try:
                if not batch:
                    job = self._jobs.get()
                    expected = max(last_jobs, 1 + self._jobs.qsize() + self._following)
                    end = self._clock.monotonic() + patience
                elif len(batch) < expected and (left := end - self._clock.monotonic()) > 0:
                    job = self._jobs.get(timeout=left)
                else:
                    job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return batch, True
            batch.append(job)
        return batch, False

    def _follow(self, follow: Follow) -> None:
        is_last = False
        while not is_last:
            done: list[Job] = []
            item = self._committed.get()
            while item is not None:
                done.extend(item)
                if self._committed.empty():
                    break
                item = self._committed.get()
            is_last = item is None
            if done:
                _guarded(follow, done)
                with self._lock:
                    self._following -= len(done)


def _guarded(run: Commit | Follow, jobs: Sequence[Job]) -> None:
    """Run it; after a defect whoever waits for the jobs is told, and the loop goes on."""
    try:
        run(jobs)
    except Exception as error:
        _log.exception("store's loop is disturbed")
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(error)
