"""Keeps a lexical index in step with its store.

What is indexed of the store's rows is the source's to say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Protocol

import structlog

from muniment.kit.errors import TamperedError, UnavailableError
from muniment.kit.index.lexical import Document, LexicalIndex, Progress
from muniment.kit.progress import Report
from muniment.kit.store import FeedPage, Reader, read_feed
from muniment.v1 import store_pb2

__all__ = ["IndexFollower", "LexicalSource"]

_FROM_FEED_CHANGES = 1000
"""What an index may lack when it is opened and still catch up before anybody is answered; and how
much of the feed is taken at once."""

_PORTION_DOCUMENTS = 50
"""Numbers that are filled while writers wait."""

_log = structlog.get_logger()


class LexicalSource(Protocol):
    """What a store has to be found: documents, most of them with a number that grows with time."""

    def changed(self, reader: Reader, page: FeedPage) -> Iterable[Document]:
        """The documents that these changes made, changed or took away."""
        ...

    def at_once(self, reader: Reader) -> Iterable[Document]:
        """What a new index has before anybody is answered."""
        ...

    def numbered(self, reader: Reader, numbers: range) -> Iterable[Document]:
        """The documents that have one of these numbers."""
        ...

    def newest_number(self, reader: Reader) -> int:
        """The greatest number of a document; 0 where there is none."""
        ...

    def is_gone(self, reader: Reader, document: Document) -> bool:
        """Whether what was read as there is not there any more."""
        ...


class IndexFollower:
    """Brings the index up to the store's newest change.

    It takes what changed from the feed before anybody who waits for it is answered. An index that
    lacks much when it is opened, is ahead of the store or belongs to another life of it is made
    anew: what has no number and what is new from now on at once, the rest in the background, newest
    first.
    """

    def __init__(
        self, index: LexicalIndex, source: LexicalSource, *, fill_in_background: bool = True
    ) -> None:
        """Without a background, the caller fills the index with `fill`."""
        self._index = index
        self._source = source
        self._in_background = fill_in_background
        self._in_step = False
        self._lock = threading.Lock()
        self._turn = threading.Condition()
        self._writers_waiting = 0
        self._worker: threading.Thread | None = None
        self._closing = threading.Event()

    def catch_up(self, read: Callable[[], AbstractContextManager[Reader]]) -> None:
        """Index what changed since the index's position.

        Raises:
            UnavailableError: The index cannot be written.
        """
        with self._first_in_line():
            try:
                self._catch_up(read)
            except UnavailableError as error:
                if error.reason != "INDEX_DAMAGED":
                    raise
                _log.warning("search index is damaged and is made anew", error=str(error))
                self._index.reset()
                self._catch_up(read)
            if self._in_background and self._worker is None and not self._closing.is_set():
                self._start_filling(read)

    def rebuild(self, read: Callable[[], AbstractContextManager[Reader]]) -> None:
        """Make the index anew."""
        with self._first_in_line():
            self._index.reset()
        self.catch_up(read)

    def rebuild_whole(
        self, read: Callable[[], AbstractContextManager[Reader]], step: str, report: Report
    ) -> int:
        """Make the index anew, to its end. How many documents it has then."""
        self.rebuild(read)
        total = self._index.progress.below
        while self.fill(read):
            report(step, total - self._index.progress.below, total)
        documents = self._index.keys()
        return sum(1 for _ in documents)

    def fill(self, read: Callable[[], AbstractContextManager[Reader]]) -> bool:
        """Index a portion of what waits, newest first. False where nothing did."""
        with self._turn:
            # A lock alone would let this thread in again and again.
            self._turn.wait_for(lambda: not self._writers_waiting)
        with self._lock:
            progress = self._index.progress
        # What takes long is done while nobody has to wait for it.
        documents = self._older(read, progress.below)
        with self._lock:
            return self._fill(read, progress, documents)

    def close(self) -> None:
        """Stop filling; the next start goes on."""
        self._closing.set()
        worker = self._worker
        if worker is not None:
            worker.join()

    @contextmanager
    def _first_in_line(self) -> Iterator[None]:
        """Hold the index, before who fills it in the background."""
        with self._turn:
            self._writers_waiting += 1
        try:
            with self._lock:
                yield
        finally:
            with self._turn:
                self._writers_waiting -= 1
                self._turn.notify_all()

    def _catch_up(self, read: Callable[[], AbstractContextManager[Reader]]) -> None:
        with read() as reader:
            state, progress = reader.state(), self._index.progress
            lacking = state.position - progress.position
            if (
                progress.incarnation != state.incarnation
                or lacking < 0
                or progress.position < state.floor
                or (lacking > _FROM_FEED_CHANGES and not self._in_step)
            ):
                self._begin_anew(reader, state)
            elif lacking:
                try:
                    self._take_feed(reader, progress, state.position)
                except TamperedError as error:
                    _log.error("the feed cannot be followed", error=str(error))
                    self._begin_anew(reader, state)
        self._in_step = True

    def _take_feed(self, reader: Reader, progress: Progress, last: int) -> None:
        while progress.position < last:
            page = read_feed(reader, progress.position, _FROM_FEED_CHANGES)
            progress = replace(progress, position=page.position)
            self._index.apply(self._source.changed(reader, page), progress)

    def _begin_anew(self, reader: Reader, state: store_pb2.StoredState) -> None:
        _log.info("search index is made anew", position=state.position)
        self._index.reset()
        below = self._source.newest_number(reader) + 1
        documents = list(self._source.at_once(reader))
        self._index.apply(documents, Progress(state.position, state.incarnation, below))

    def _older(
        self, read: Callable[[], AbstractContextManager[Reader]], below: int
    ) -> list[Document]:
        numbers = range(below - 1, max(0, below - _PORTION_DOCUMENTS - 1), -1)
        with read() as reader:
            documents = list(self._source.numbered(reader, numbers))
        return [document.prepared() for document in documents]

    def _start_filling(self, read: Callable[[], AbstractContextManager[Reader]]) -> None:
        if self._index.progress.below:
            self._worker = threading.Thread(
                target=self._fill_all, args=(read,), name="index-filler", daemon=True
            )
            self._worker.start()

    def _fill_all(self, read: Callable[[], AbstractContextManager[Reader]]) -> None:
        try:
            while not self._closing.is_set() and self.fill(read):
                pass
        except Exception:
            _log.exception("search index cannot be filled")
            with self._lock:
                self._worker = None

    def _fill(
        self,
        read: Callable[[], AbstractContextManager[Reader]],
        progress: Progress,
        documents: Sequence[Document],
    ) -> bool:
        """Take the documents, which were read when the index was so far."""
        now = self._index.progress
        if not now.below:
            # Under the lock, so that who begins anew after this starts another worker. Others who
            # fill leave the worker to find out for itself: `close` must wait for it.
            if threading.current_thread() is self._worker:
                self._worker = None
            return False
        if (now.incarnation, now.below) != (progress.incarnation, progress.below):
            return True
        if now.position != progress.position:
            # What was purged meanwhile is not brought back.
            with read() as reader:
                documents = [one for one in documents if not self._source.is_gone(reader, one)]
        below = max(0, now.below - _PORTION_DOCUMENTS)
        self._index.apply(documents, replace(now, below=below if below > 1 else 0))
        return True
