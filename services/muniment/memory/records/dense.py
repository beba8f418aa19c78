"""The dense index of a tenant's records: what is embedded of them, and what search asks of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import structlog

from muniment.kit.errors import MunimentError, TamperedError
from muniment.kit.index.dense import DenseIndex
from muniment.kit.index.dense_filling import DenseFollower, DensePage, DenseText
from muniment.kit.index.embedding import Embedder
from muniment.kit.store import Reader, Store, Writer
from muniment.memory.records.entities import entities_in_order
from muniment.memory.records.indexing import RecordSource, changed_keys
from muniment.memory.records.meaning import Near
from muniment.memory.records.naming import (
    index_key,
    kind_name,
    split_key,
)
from muniment.memory.records.order import counted_down
from muniment.memory.records.reading import words_of
from muniment.memory.records.schema import JOURNAL, REFERENCES, STATES
from muniment.memory.records.totals import read_totals
from muniment.v1 import records_pb2, store_pb2

if TYPE_CHECKING:
    from muniment.kit.index.embedding import Vectors

__all__ = ["RecordDense", "open_dense"]

_PAGE_RECORDS = 100
_WORDS_REMEMBERED = 8192
_QUESTIONS_REMEMBERED = 256

_log = structlog.get_logger()


@dataclass(frozen=True)
class _Source:
    """Which texts of a tenant are searched by meaning: those that are searched by words."""

    records: RecordSource

    def changed(
        self, reader: Reader, changes: Sequence[store_pb2.StoredChange]
    ) -> Iterator[DenseText]:
        for key in changed_keys(changes):
            yield self._text(reader, key)

    def everything(self, reader: Reader, after: str) -> DensePage:
        """Entities, newest first; then events; then the documents, of which there are few."""
        phase, _, place = after.partition(":")
        behind = int(place) if place else None
        if phase in ("", "entities"):
            keys, last = self._entities(reader, behind)
            following = "journal:" if last is None else f"entities:{last}"
        elif phase == "journal":
            keys, last = self._events(reader, behind)
            following = "documents:" if last is None else f"journal:{last}"
        else:
            keys, following = self._documents(reader), ""
        return DensePage([self._text(reader, key) for key in keys], following or None)

    def count(self, reader: Reader) -> int:
        try:
            totals = read_totals(reader)
        except TamperedError:
            return 0
        return totals.entities + totals.states + totals.references + totals.events

    def _entities(self, reader: Reader, behind: int | None) -> tuple[list[str], int | None]:
        keys: list[str] = []
        for stored in entities_in_order(reader, None, behind):
            if isinstance(stored, TamperedError):
                continue
            entity = stored.entity
            keys.append(index_key(records_pb2.RECORD_KIND_ENTITY, entity.category, entity.name))
            if len(keys) == _PAGE_RECORDS:
                return keys, counted_down(stored.order)
        return keys, None

    def _events(self, reader: Reader, behind: int | None) -> tuple[list[str], int | None]:
        keys: list[str] = []
        after = None if behind is None else (behind,)
        for key, event in reader.survey(JOURNAL, after=after):
            if isinstance(event, TamperedError):
                continue
            order = counted_down(int(key[0]))
            keys.append(index_key(records_pb2.RECORD_KIND_JOURNAL, str(order)))
            if len(keys) == _PAGE_RECORDS:
                return keys, int(key[0])
        return keys, None

    def _documents(self, reader: Reader) -> list[str]:
        states = [str(key[0]) for key, _ in reader.survey(STATES) if key]
        references = [str(key[0]) for key, _ in reader.survey(REFERENCES) if key]
        return [
            *(index_key(records_pb2.RECORD_KIND_STATE, key) for key in states),
            *(index_key(records_pb2.RECORD_KIND_REFERENCE, key) for key in references),
        ]

    def _text(self, reader: Reader, key: str) -> DenseText:
        document = self.records.document(reader, key)
        kind, _ = split_key(key)
        return DenseText(key, kind_name(kind), None if document.gone else document.text)


class _Words:
    """Vectors of single words, made when their texts are embedded, or when they are asked for.

    As an `Embedder` it makes those of texts, and remembers those of their words by the way: a
    question whose words no record has compares them with many.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self._known: OrderedDict[str, Vectors] = OrderedDict()
        self._questions: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        made = self._embedder.embed(texts)
        if len(self._known) < _WORDS_REMEMBERED:
            words = dict.fromkeys(word for text in texts for word in words_of(text))
            self.vectors(list(words)[:_WORDS_REMEMBERED])
        return made

    def of_question(self, text: str) -> Vectors:
        """The vector of a question."""
        with self._lock:
            known = self._questions.get(text)
        if known is None:
            known = self._embedder.embed([text])[0]
            with self._lock:
                self._questions[text] = known
                if len(self._questions) > _QUESTIONS_REMEMBERED:
                    self._questions.popitem(last=False)
        return known

    def vectors(self, words: Sequence[str]) -> dict[str, Vectors]:
        """The vector of each word."""
        with self._lock:
            known = {word: self._known[word] for word in words if word in self._known}
        new = [word for word in dict.fromkeys(words) if word not in known]
        if new:
            made = dict(zip(new, self._embedder.embed(new), strict=True))
            known |= made
            with self._lock:
                self._known.update(made)
                while len(self._known) > _WORDS_REMEMBERED:
                    self._known.popitem(last=False)
        return known

    def forget(self) -> None:
        """Remember nothing."""
        with self._lock:
            self._known.clear()
            self._questions.clear()


class RecordDense:
    """What search asks by meaning (`search.Dense`), and what keeps it up."""

    def __init__(self, index: DenseIndex, follower: DenseFollower, words: _Words) -> None:
        self._index = index
        self.follower = follower
        self._words = words

    @property
    def model(self) -> str:
        """What makes the vectors."""
        return self._words.model

    @property
    def vectors(self) -> int:
        """How many records can be found by meaning.

        Raises:
            UnavailableError: The index cannot be read.
        """
        return self._index.count

    def nearest(
        self, text: str, limit: int, kinds: Sequence[records_pb2.RecordKind.ValueType]
    ) -> Sequence[Near]:
        """The records nearest to the text, nearest first; none where that cannot be told."""
        try:
            vector = self._words.of_question(text)
            names = {kind_name(kind) for kind in kinds}
            found = self._index.search(vector, limit, kinds=names)
        except MunimentError as error:
            _log.warning("search goes without meaning", error=str(error))
            return []
        return [Near(match.key, match.similarity) for match in found]

    def similarities(self, asked: Sequence[str], texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """By asked word: how near each of the other words is, from -1 to 1; 0 for not known."""
        try:
            vectors = self._words.vectors([*asked, *texts])
        except MunimentError as error:
            _log.warning("search goes without meaning", error=str(error))
            return [[0.0] * len(texts) for _ in asked]
        return [[float(vectors[one] @ vectors[other]) for other in texts] for one in asked]

    def forget(self, writer: Writer, text: str) -> None:
        """Delete what a purged text left."""
        self.follower.forget(writer, text)
        self._words.forget()

    def close(self) -> None:
        """Stop following, and close the index; before the store."""
        self.follower.close()
        self._index.close()


def open_dense(store: Store, folder: Path, embedder: Embedder) -> RecordDense:
    """The dense index of the tenant's store; that of a sealed one is in memory."""
    place = None if store.protection.sealed else folder
    words = _Words(embedder)
    index = DenseIndex(place, words.model, words.dimensions)
    follower = DenseFollower(store, index, _Source(RecordSource()), words)
    store.follow(follower)
    return RecordDense(index, follower, words)
