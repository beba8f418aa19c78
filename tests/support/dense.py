"""Small parts for tests of the dense index: a quick embedder, entries, a store of notes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from muniment.kit.errors import PreconditionError
from muniment.kit.index.dense import DenseEntry, DenseIndex
from muniment.kit.index.dense_filling import DensePage, DenseText
from muniment.kit.index.dense_vectors import VECTORS, text_digest
from muniment.kit.index.embedding import unit_rows
from muniment.kit.store import Reader, Schema, Store, StoreOptions, Writer, unpack
from muniment.v1 import store_pb2
from tests.support.stores import NOTES, QuickDisk, protection, text

if TYPE_CHECKING:
    from muniment.kit.index.embedding import Vectors

__all__ = [
    "DIMENSIONS",
    "MODEL",
    "NOTES_SCHEMA",
    "HashedEmbedder",
    "NotesSource",
    "an_index",
    "entries",
    "notes_store",
    "put",
    "take",
    "vectors_of",
]

MODEL = "hashed/1"
DIMENSIONS = 16
NOTES_SCHEMA = Schema(version=3, tables=(NOTES, VECTORS))

_PAGE_NOTES = 5
_ABSENT = "-"


class HashedEmbedder:
    """Vectors that differ where texts do, and are near where texts share words."""

    def __init__(self, model: str = MODEL) -> None:
        self.model = model
        self.dimensions = DIMENSIONS
        self.asked = 0
        self.embedded: list[str] = []
        self.trouble: str | None = None
        self.begins = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The sum of the words' random directions."""
        self.begins.set()
        assert self.may_go_on.wait(20.0)
        if self.trouble is not None:
            self.asked += 1
            raise PreconditionError(self.trouble, reason="EMBEDDER_UNUSABLE")
        self.embedded.extend(texts)
        return unit_rows(np.array([_sum_of_words(one) for one in texts], dtype=np.float32))


def _sum_of_words(value: str) -> Vectors:
    directions = [_direction(word) for word in [value, *value.split()]]
    return np.asarray(np.sum(directions, axis=0), dtype=np.float32)


def _direction(word: str) -> Vectors:
    digest = hashlib.blake2b(word.encode(), digest_size=2 * DIMENSIONS).digest()
    return np.frombuffer(digest, dtype="<u2").astype(np.float32) - 32767.5


def an_index(folder: Path | None, model: str = MODEL) -> DenseIndex:
    """An index of the small vectors."""
    return DenseIndex(folder, model, DIMENSIONS)


def vectors_of(index: DenseIndex, keys: Iterable[str]) -> dict[str, Vectors]:
    """The vectors of those keys that are indexed, as Chroma has them."""
    found: dict[str, Vectors] = {}
    wanted = set(keys)
    with index._using() as opened:
        rows = opened.collection.get(include=["metadatas", "embeddings"])
        for row, vector in zip(rows["metadatas"], rows["embeddings"], strict=True):
            if row["key"] in wanted:
                found[str(row["key"])] = np.asarray(vector, dtype=np.float32)
    return found


def entries(*texts: str, kind: str = "note") -> list[DenseEntry]:
    """The texts, each under itself."""
    rows = HashedEmbedder().embed(texts)
    return [
        DenseEntry(one, kind, text_digest(MODEL, one), row)
        for one, row in zip(texts, rows, strict=True)
    ]


class NotesSource:
    """Notes by name; those that say `-` are not searched."""

    def changed(
        self, reader: Reader, changes: Sequence[store_pb2.StoredChange]
    ) -> Iterable[DenseText]:
        """What the notes say now."""
        for change in changes:
            if change.table == NOTES.name:
                (name,) = unpack(change.key)
                row = reader.get(NOTES, str(name))
                yield _as_text(str(name), None if row is None else row.text)

    def everything(self, reader: Reader, after: str) -> DensePage:
        """A few notes."""
        found: list[DenseText] = []
        for key, row in reader.survey(NOTES, after=(after,) if after else None):
            if len(found) == _PAGE_NOTES:
                return DensePage(found, found[-1].key)
            assert isinstance(row, store_pb2.StoredContent)
            found.append(_as_text(str(key[0]), row.text))
        return DensePage(found, None)

    def count(self, reader: Reader) -> int:
        """How many notes there are."""
        return reader.count(NOTES)


def _as_text(name: str, value: str | None) -> DenseText:
    kind = "note" if value is None else f"kind-{value[:1]}"
    return DenseText(name, kind, None if value == _ABSENT else value)


def notes_store(folder: Path, *, sealed: bool = False, retention_changes: int = 1000) -> Store:
    """A store of notes and vectors."""
    options = StoreOptions(
        map_limit_bytes=64 * 1024**2, disk=QuickDisk(), retention_changes=retention_changes
    )
    return Store(folder, NOTES_SCHEMA, protection(sealed=sealed), options)


def put(store: Store, **notes: str) -> None:
    """Write the notes in one change."""

    def change(writer: Writer) -> None:
        for name, value in notes.items():
            writer.put(NOTES, name, value=text(value))

    store.write(change).result(20.0)


def take(store: Store, *names: str) -> None:
    """Take the notes away in one change."""

    def change(writer: Writer) -> None:
        for name in names:
            writer.delete(NOTES, name)

    store.write(change).result(20.0)
