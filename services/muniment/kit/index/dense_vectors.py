"""The vectors that were made of texts, kept in the store, so that none is made twice.

A row's key is the digest of model and text: it tells nothing of who has the text. The table is
outside the feed, so what is written here wakes nobody for more than a glance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import structlog

from muniment.kit.errors import TamperedError
from muniment.kit.store import Reader, Store, Table, Writer
from muniment.v1 import store_pb2

if TYPE_CHECKING:
    from muniment.kit.index.embedding import Vectors

__all__ = ["VECTORS", "KeptVectors", "StoppedError", "text_digest"]

VECTORS: Table[store_pb2.StoredVector] = Table("vectors", store_pb2.StoredVector)
"""By the SHA-256 of model and text. A schema that has this table can be followed."""

_BATCH_ROWS = 64
"""Most rows that are written at once, so that no caller's write waits long behind them."""

_SWEPT_ROWS = 1000
"""What is looked at in one reading."""

_GLANCE_SECONDS = 0.1
"""How often who waits for a write looks whether it is to stop."""

_log = structlog.get_logger()


class StoppedError(Exception):
    """The follower is closing, so nothing is waited for any more."""


def text_digest(model: str, text: str) -> str:
    """What the text's vector by that model is found by: 64 hex digits."""
    found = hashlib.sha256(model.encode() + b"\0")
    found.update(text.encode(errors="surrogatepass"))
    return found.hexdigest()


class KeptVectors:
    """The table of vectors, for one model."""

    def __init__(self, store: Store, dimensions: int, is_stopping: Callable[[], bool]) -> None:
        self._store = store
        self._dimensions = dimensions
        self._is_stopping = is_stopping

    def find(self, digests: Iterable[str]) -> dict[str, Vectors]:
        """Those of them that are kept and can be believed."""
        found: dict[str, Vectors] = {}
        with self._store.read() as reader:
            for digest in digests:
                try:
                    row = reader.get(VECTORS, bytes.fromhex(digest))
                except TamperedError as error:
                    _log.error("a vector cannot be believed and is made anew", error=str(error))
                    continue
                vector = None if row is None else self._unpacked(row.values)
                if vector is not None:
                    found[digest] = vector
        return found

    def as_kept(self, vectors: Vectors) -> Vectors:
        """The rows as `find` will give them: kept with half the precision."""
        import numpy as np

        from muniment.kit.index.embedding import unit_rows

        return unit_rows(np.asarray(vectors, dtype="<f2").astype(np.float32))

    def keep(
        self, vectors: Mapping[str, Vectors], still_wanted: Callable[[Writer], Collection[str]]
    ) -> None:
        """Write the vectors whose digests are still wanted when it comes to it.

        Raises:
            MunimentError: The store cannot be written.
        """
        import numpy as np

        packed = {
            digest: np.asarray(vector, dtype="<f2").tobytes() for digest, vector in vectors.items()
        }

        def change(writer: Writer, some: Sequence[str]) -> None:
            wanted = still_wanted(writer)
            for digest in some:
                if digest in wanted:
                    row = store_pb2.StoredVector(values=packed[digest])
                    writer.put(VECTORS, bytes.fromhex(digest), value=row)

        self._write(change, list(packed))

    def drop(self, digests: Collection[str]) -> None:
        """Delete the vectors.

        Raises:
            MunimentError: The store cannot be written.
        """

        def change(writer: Writer, some: Sequence[str]) -> None:
            for digest in some:
                writer.delete(VECTORS, bytes.fromhex(digest))

        self._write(change, list(digests))

    def sweep(self, wanted: Collection[str]) -> None:
        """Delete all vectors but the wanted ones, those of other models included.

        Raises:
            MunimentError: The store cannot be written.
        """
        protection = self._store.protection
        addresses = {protection.address(bytes.fromhex(digest)) for digest in wanted}
        after: bytes | None = None
        while True:
            with self._store.read() as reader:
                page = list(islice(reader.raw_rows(VECTORS, after), _SWEPT_ROWS))
                spare = [one for one in page if one[0] not in addresses]
                digests = list(_digests(reader, spare))
            self.drop(digests)
            if len(page) < _SWEPT_ROWS:
                return
            after = page[-1][0]

    def _unpacked(self, values: bytes) -> Vectors | None:
        import numpy as np

        if len(values) != 2 * self._dimensions:
            return None
        rows = np.frombuffer(values, dtype="<f2").astype(np.float32)[None]
        vector: Vectors = self.as_kept(rows)[0]
        return vector

    def _write(self, change: Callable[[Writer, Sequence[str]], None], digests: list[str]) -> None:
        for start in range(0, len(digests), _BATCH_ROWS):
            some = digests[start : start + _BATCH_ROWS]
            future = self._store.write(partial(_apply, change, some), written_by="dense index")
            while not wait([future], _GLANCE_SECONDS).done:
                if self._is_stopping():
                    raise StoppedError
            future.result()


def _apply(
    change: Callable[[Writer, Sequence[str]], None], digests: Sequence[str], writer: Writer
) -> None:
    change(writer, digests)


def _digests(reader: Reader, rows: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    for address, raw in rows:
        try:
            (digest,) = reader.open_row(VECTORS, address, raw).key
        except TamperedError as error:
            _log.error("a vector cannot be believed and stays", error=str(error))
            continue
        if isinstance(digest, bytes):
            yield digest.hex()
