"""Keeps the lexical index in step with the store: what is indexed of an episode and of a pin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TypeVar

import structlog
from google.protobuf.message import Message

from muniment.kit.errors import TamperedError, UnavailableError
from muniment.kit.index.lexical import Document, LexicalIndex, Progress, scope
from muniment.kit.store import FeedPage, Reader, Table, read_feed, unpack
from muniment.kit.store.keys import KeyPart
from muniment.memory.episodes import read_content
from muniment.memory.projects import was_purged
from muniment.memory.schema import EPISODES, PINS
from muniment.memory.shown_paths import path_suffixes, shown_paths
from muniment.v1 import store_pb2

__all__ = [
    "IndexFollower",
    "episode_key",
    "episodes_of",
    "path_scope",
    "pin_key",
    "pins_of",
    "session_scope",
]

_FROM_FEED_CHANGES = 1000
"""What an index may lack when it is opened and still catch up before anybody is answered; and how
much of the feed is taken at once."""

_PORTION_EPISODES = 50
"""What is filled while writers wait."""

_log = structlog.get_logger()
M = TypeVar("M", bound=Message)


def episodes_of(project_id: str) -> str:
    """The partition of the project's episodes."""
    return scope("episodes", project_id)


def pins_of(project_id: str, session_id: str | None) -> str:
    """The partition of the pins that hold in the session alone, or in the whole project."""
    return scope("pins", f"{project_id}\0{session_id or ''}")


def session_scope(session_id: str) -> str:
    """The filter for what belongs to the session."""
    return scope("session", session_id)


def path_scope(path: str) -> str:
    """The filter for what shows the path, or one that ends in it."""
    return scope("path", path)


def episode_key(seq: int) -> str:
    """The index's key for the episode of that place."""
    return f"episode:{seq}"


def pin_key(pin_id: str) -> str:
    """The index's key for the pin."""
    return f"pin:{pin_id}"


class IndexFollower:
    """Brings the index up to the store's newest change.

    It takes what changed from the feed before anybody who waits for it is answered. An index that
    lacks much when it is opened, is ahead of the store or belongs to another life of it is made
    anew: pins and what is new from now on at once, older episodes in the background, newest first.
    """

    def __init__(self, index: LexicalIndex, *, fill_in_background: bool = True) -> None:
        """Without a background, the caller fills the index with `fill`."""
        self._index = index
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

    def fill(self, read: Callable[[], AbstractContextManager[Reader]]) -> bool:
        """Index a portion of the older episodes that wait, newest first. False where none did."""
        with self._turn:
            # A lock alone would let this thread in again and again.
            self._turn.wait_for(lambda: not self._writers_waiting)
        with self._lock:
            progress = self._index.progress
        # What takes long is done while nobody has to wait for it.
        documents = _older_documents(read, progress.below)
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
            self._index.apply(_changed(reader, page), progress)

    def _begin_anew(self, reader: Reader, state: store_pb2.StoredState) -> None:
        _log.info("search index is made anew", position=state.position)
        self._index.reset()
        pins = [_pin_document(reader, str(key[0])) for key, _ in _believed(reader, PINS)]
        below = reader.last_number(EPISODES) + 1
        self._index.apply(pins, Progress(state.position, state.incarnation, below))

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
                documents = [one for one in documents if not _is_gone(reader, one)]
        below = max(0, now.below - _PORTION_EPISODES)
        self._index.apply(documents, replace(now, below=below if below > 1 else 0))
        return True


def _older_documents(
    read: Callable[[], AbstractContextManager[Reader]], below: int
) -> list[Document]:
    seqs = range(below - 1, max(0, below - _PORTION_EPISODES - 1), -1)
    with read() as reader:
        documents = [_episode_document(reader, seq) for seq in seqs]
    return [document.prepared() for document in documents]


def _is_gone(reader: Reader, document: Document) -> bool:
    """Whether what was read as there is not there any more."""
    if document.gone or document.number is None:
        return document.gone
    try:
        episode = reader.get(EPISODES, document.number)
        return episode is None or was_purged(reader, episode.project_id, document.number)
    except TamperedError:
        return True


def _changed(reader: Reader, page: FeedPage) -> Iterator[Document]:
    keys = dict.fromkeys((change.table, change.key) for _, change in page.changes)
    for table, packed in keys:
        # The key of what was purged is gone from the feed.
        for part in unpack(packed)[:1]:
            if table == EPISODES.name and isinstance(part, int):
                yield _episode_document(reader, part)
            elif table == PINS.name and isinstance(part, str):
                yield _pin_document(reader, part)


def _believed(reader: Reader, table: Table[M]) -> Iterator[tuple[tuple[KeyPart, ...], M]]:
    for key, value in reader.survey(table):
        if not isinstance(value, TamperedError):
            yield key, value


def _episode_document(reader: Reader, seq: int) -> Document:
    """What is indexed of an episode; gone where it was purged or cannot be believed."""
    gone = Document(episode_key(seq), "", gone=True)
    try:
        episode = reader.get(EPISODES, seq)
        if episode is None or was_purged(reader, episode.project_id, seq):
            return gone
        content = read_content(reader, seq)
    except TamperedError as error:
        _log.error("an episode cannot be indexed", seq=seq, error=str(error))
        return gone
    return Document(
        episode_key(seq),
        content,
        partition=episodes_of(episode.project_id),
        scopes=frozenset((session_scope(episode.session_id), *_path_scopes(episode.paths))),
        place=seq,
        number=seq,
    )


def _pin_document(reader: Reader, pin_id: str) -> Document:
    try:
        stored = reader.get(PINS, pin_id)
    except TamperedError as error:
        _log.error("a pin cannot be indexed", pin=pin_id, error=str(error))
        stored = None
    if stored is None:
        return Document(pin_key(pin_id), "", gone=True)
    pin = stored.pin
    return Document(
        pin_key(pin_id),
        pin.content,
        partition=pins_of(pin.project_id, pin.session_id),
        scopes=frozenset(_path_scopes(shown_paths(pin.content, "/", lambda _: True))),
        place=pin.created_at.ToNanoseconds(),
        gone=stored.HasField("removed_at"),
    )


def _path_scopes(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from map(path_scope, path_suffixes(path))
