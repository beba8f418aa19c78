"""Keeps a dense index in step with its store, in the background.

Making vectors takes long, so nobody who writes waits for it: who searches meanwhile is told how
much the index lacks. The steps are such that, wherever they end, doing them again sets all right:
vectors that nothing needs any more leave the store before the index forgets of which text they
were, and new ones are kept after it knows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from muniment.kit.errors import PreconditionError, TamperedError, UnavailableError
from muniment.kit.index.dense import DenseEntry, DenseIndex, DenseProgress
from muniment.kit.index.dense_vectors import VECTORS, KeptVectors, StoppedError, text_digest
from muniment.kit.index.embedding import Embedder
from muniment.kit.store import Reader, Store, Writer, read_feed
from muniment.kit.store.tables import CHANGES
from muniment.v1 import store_pb2

if TYPE_CHECKING:
    from muniment.kit.index.embedding import Vectors

__all__ = ["DenseFollower", "DensePage", "DenseSource", "DenseText"]

_STEP_CHANGES = 64
"""How much of the feed is taken at once."""

_EMBEDDED_TEXTS = 16
"""What is embedded between two looks at whether to stop."""

_NICENESS = 5
"""How far the thread stands back behind those that somebody waits for."""

_log = structlog.get_logger()


@dataclass(frozen=True)
class DenseText:
    """What is found under a key, by what it means."""

    key: str
    kind: str
    """A small label that a search may be restricted to."""
    text: str | None
    """None where it is to be found no more."""


@dataclass(frozen=True)
class DensePage:
    """A part of all texts, and where the next begins."""

    texts: Sequence[DenseText]
    after: str | None
    """What to ask for next; None when these were the last."""


class DenseSource(Protocol):
    """Knows which texts of a store are searched by meaning."""

    def changed(
        self, reader: Reader, changes: Sequence[store_pb2.StoredChange]
    ) -> Iterable[DenseText]:
        """What the keys that the changes concern have now, by the reader; a key may recur."""
        ...

    def everything(self, reader: Reader, after: str) -> DensePage:
        """About a hundred texts from behind there; the first, where that is empty."""
        ...

    def count(self, reader: Reader) -> int:
        """About how many texts there are."""
        ...


class DenseFollower:
    """Brings the index up to the store's newest change, by a thread of its own.

    It takes what changed from the feed. An index that is ahead of the store, belongs to another
    life of it or lacks changes that were dropped is made anew from what the store has, with the
    vectors that it keeps; then those that nothing needs are deleted.
    """

    def __init__(
        self, store: Store, index: DenseIndex, source: DenseSource, embedder: Embedder
    ) -> None:
        """Follow with `store.follow`; the store's schema must have the table `VECTORS`."""
        self._store = store
        self._index = index
        self._source = source
        self._embedder = embedder
        self._kept = KeptVectors(store, embedder.dimensions, lambda: self._closing)
        self._turn = threading.Condition()
        self._woken = self._busy = self._anew = self._closing = False
        self._seen: tuple[str, int] | None = None
        """The store's life and position when the thread was last told of a change."""
        self._trouble = ""
        self._reached: DenseProgress | None = None
        self._unfilled = 0
        self._worker: threading.Thread | None = None

    @property
    def trouble(self) -> str:
        """Why the index does not get on, for people; empty where it does."""
        return self._trouble

    def catch_up(self, read: Callable[[], Any]) -> None:
        """Let the thread know of what changed; what it writes itself is not in the feed."""
        if not self._store.position:
            return  # Nothing was ever written: the model and the index can wait.
        seen = self._store.incarnation, self._store.position
        with self._turn:
            if seen == self._seen:
                return
            self._seen = seen
            self._wake()

    def waiting(self) -> int:
        """How many changes, and texts that were there before them, the index lacks."""
        reached, position = self._reached, self._store.position
        if reached is None or reached.incarnation != self._store.incarnation:
            return position
        behind = max(position - reached.position, 0)
        return behind if reached.filling is None else behind + max(self._unfilled, 1)

    def settle(self, timeout_seconds: float) -> bool:
        """Wait until the index has what the store has now.

        False where the time is over before, or the index does not get on: `trouble` tells why.
        """
        with self._turn:
            position = self._store.position
            self._wake()
            self._turn.wait_for(
                lambda: self._closing or self._has(position) or not (self._woken or self._busy),
                timeout_seconds,
            )
            return self._has(position)

    def rebuild(self) -> None:
        """Have the index made anew; `settle` waits for it."""
        with self._turn:
            self._anew = True
            self._wake()

    def forget(self, writer: Writer, text: str) -> None:
        """Delete the text's kept vector with what the writer does, as a purge must.

        The index loses it when it follows, but has its bytes on disk until `rebuild`.
        """
        writer.delete(VECTORS, bytes.fromhex(text_digest(self._embedder.model, text)))

    def close(self) -> None:
        """End the thread, at the latest after the batch that it is embedding. Before the store."""
        with self._turn:
            self._closing = True
            self._turn.notify_all()
        if self._worker is not None:
            self._worker.join()

    def _wake(self) -> None:
        if self._worker is None and not self._closing:
            self._worker = threading.Thread(target=self._run, name="dense-index", daemon=True)
            self._worker.start()
        self._woken = True
        self._turn.notify_all()

    def _has(self, position: int) -> bool:
        """Whether the index has all that the store had at that position of its present life."""
        reached = self._reached
        return (
            reached is not None
            and not self._anew
            and reached.incarnation == self._store.incarnation
            and reached.position >= position
            and reached.filling is None
        )

    # --- In the thread

    def _run(self) -> None:
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._woken or self._closing)
                if self._closing:
                    return
                self._woken, self._busy = False, True
            try:
                self._catch_up()
                trouble = ""
            except StoppedError:
                return
            except Exception as error:
                trouble = str(error) or type(error).__name__
                _log.warning("dense index does not get on", error=trouble)
            with self._turn:
                self._trouble = trouble
                self._busy = False
                self._turn.notify_all()

    def _catch_up(self) -> None:
        try:
            self._go_on()
        except UnavailableError as error:
            if error.reason != "INDEX_DAMAGED":
                raise
            _log.warning("dense index is damaged and is made anew", error=str(error))
            self._index.reset()
            self._go_on()

    def _go_on(self) -> None:
        while self._step():
            self._look_up()

    def _look_up(self) -> None:
        """End here if the follower is closing.

        Raises:
            StoppedError: It is.
        """
        if self._closing:
            raise StoppedError

    def _step(self) -> bool:
        """Take a part of what the index lacks. False where it lacks nothing."""
        progress = self._index.progress
        with self._turn:
            anew, self._anew = self._anew, False
            if anew:
                self._reached = None
        with self._store.read() as reader:
            state = reader.state()
            if anew or progress.incarnation != state.incarnation:
                texts, after = None, replace(progress, position=state.position)
            elif progress.position != state.position:
                texts, after = self._from_feed(reader, progress)
            elif progress.filling is not None:
                page = self._source.everything(reader, progress.filling)
                texts, after = page.texts, replace(progress, filling=page.after)
                self._unfilled = self._source.count(reader) - self._index.count
            else:
                self._tell(progress)
                return False
        if texts is None:
            self._begin_anew(DenseProgress(state.position, state.incarnation, ""))
            return True
        self._take(texts, state.position)
        if progress.filling is not None and after.filling is None:
            self._kept.sweep(self._index.digests())
        self._index.apply((), (), after)
        self._tell(after)
        return True

    def _from_feed(
        self, reader: Reader, progress: DenseProgress
    ) -> tuple[Sequence[DenseText] | None, DenseProgress]:
        """What the next changes are about; None where the feed does not tell."""
        try:
            page = read_feed(reader, progress.position, _STEP_CHANGES)
        except (PreconditionError, TamperedError) as error:
            _log.warning("the feed cannot be followed", error=str(error))
            return None, progress
        texts = list(self._source.changed(reader, [change for _, change in page.changes]))
        return texts, replace(progress, position=page.position)

    def _begin_anew(self, progress: DenseProgress) -> None:
        _log.info("dense index is made anew", position=progress.position)
        self._index.reset()
        self._index.apply((), (), progress)
        with self._store.read() as reader:
            self._unfilled = self._source.count(reader)
        self._tell(progress)

    def _tell(self, reached: DenseProgress) -> None:
        with self._turn:
            self._reached = reached
            self._turn.notify_all()

    def _take(self, texts: Iterable[DenseText], position: int) -> None:
        """Bring the index to have the texts, which were read at that position."""
        latest = {one.key: one for one in texts}
        known = self._index.known(latest)
        gone = [key for key, one in latest.items() if one.text is None]
        wanted = [
            _Wanted(one.key, one.kind, text_digest(self._embedder.model, one.text), one.text)
            for one in latest.values()
            if one.text is not None
        ]
        changed = [one for one in wanted if known.get(one.key) != (one.kind, one.digest)]
        replaced = {*gone, *(one.key for one in changed)}
        spare = {known[key][1] for key in replaced if key in known}
        spare -= {one.digest for one in wanted}
        self._kept.drop(
            [digest for digest, keys in self._index.holders(spare).items() if keys <= replaced]
        )
        self._index.apply((), gone, None)
        vectors = self._kept.find({one.digest for one in changed})
        self._index.apply(_entries(changed, vectors), (), None)
        self._embed([one for one in changed if one.digest not in vectors], position)

    def _embed(self, wanted: Sequence[_Wanted], position: int) -> None:
        for start in range(0, len(wanted), _EMBEDDED_TEXTS):
            self._look_up()
            some = wanted[start : start + _EMBEDDED_TEXTS]
            texts = {one.digest: one.text for one in some}
            rows = self._kept.as_kept(self._embedder.embed(list(texts.values())))
            vectors = dict(zip(texts, rows, strict=True))
            self._index.apply(_entries(some, vectors), (), None)

            def still_wanted(writer: Writer, some: Sequence[_Wanted] = some) -> set[str]:
                changed = self._changed_since(writer, position)
                if changed is None:
                    return set()
                return {one.digest for one in some if one.key not in changed}

            self._kept.keep(vectors, still_wanted)

    def _changed_since(self, writer: Writer, position: int) -> set[str] | None:
        """Keys that changed since the texts were read: what was purged meanwhile stays away."""
        try:
            changes = [
                writer.get(CHANGES, one)
                for one in range(position + 1, writer.new_state.position + 1)
            ]
            found = [change for change in changes if change is not None]
            if len(found) < len(changes):
                return None
            return {one.key for one in self._source.changed(writer, found)} if found else set()
        except TamperedError:
            return None


@dataclass(frozen=True)
class _Wanted:
    """A text that the index is to have."""

    key: str
    kind: str
    digest: str
    text: str


def _entries(wanted: Iterable[_Wanted], vectors: Mapping[str, Vectors]) -> Iterator[DenseEntry]:
    for one in wanted:
        if one.digest in vectors:
            yield DenseEntry(one.key, one.kind, one.digest, vectors[one.digest])
