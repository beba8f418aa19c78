"""The dense index: vectors in Chroma, found by their angle to another.

The index is derived. It remembers how far it has come with its store, written after the vectors;
what it lacks it takes from the store, and a folder that is damaged, or was made for another model,
is made anew.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import structlog

from muniment.kit.errors import MunimentError, UnavailableError
from muniment.kit.files import private_folder
from muniment.kit.index.dense_files import DenseFiles
from muniment.kit.store.gate import Gate

if TYPE_CHECKING:
    from muniment.kit.index.embedding import Vectors

__all__ = ["DenseEntry", "DenseIndex", "DenseMatch", "DenseProgress"]

_VERSION = 1
"""Raised when entries are kept in another way."""

_COLLECTION = "dense"

_GRAPH = {"space": "cosine", "ef_construction": 100, "max_neighbors": 16, "ef_search": 200}
"""Of 6,000 lines of code and prose 99.9 % of the ten nearest are found."""

_BATCH_ENTRIES = 500
"""What Chroma is given, or asked for, at once."""

_FILTERED_MATCHES = 400
"""Most matches that are asked for to leave out kinds; then Chroma filters, which takes longer."""

_PASSING_ERRORS = ("is full", "no space left", "disk i/o", "is locked", "too many open files")
"""What Chroma says of the machine, not of the index."""

_log = structlog.get_logger()


@dataclass(frozen=True)
class DenseEntry:
    """What is indexed under a key."""

    key: str
    kind: str
    """A small label that a search may be restricted to."""
    digest: str
    """What tells of which text the vector is."""
    vector: Vectors
    """Of length 1."""


@dataclass(frozen=True)
class DenseMatch:
    """An entry that was found."""

    key: str
    kind: str
    similarity: float
    """The cosine of the angle to what was asked, -1 to 1."""


@dataclass(frozen=True)
class DenseProgress:
    """How far the index is with its store."""

    position: int
    """The change that it has reached."""
    incarnation: str
    """The store's life to which that position belongs; empty for a new index."""
    filling: str | None
    """Up to where it has what was there before that; None where it has it all."""


_NOTHING = DenseProgress(0, "", None)


@dataclass(frozen=True)
class _Opened:
    """Chroma at work, apart from any other in the process."""

    system: Any
    collection: Any


class DenseIndex:
    """An index in a folder of its own. Written by one thread, read by any.

    Chroma is imported and the folder opened when the index is first used: about three seconds.
    """

    def __init__(self, folder: Path | None, model: str, dimensions: int) -> None:
        """An index of that model's vectors.

        Without a folder it lives in memory: for a sealed store, of which nothing may reach a disk.
        """
        self._files = None if folder is None else DenseFiles(private_folder(folder))
        self._made_by = f"{_VERSION}/{dimensions}/{model}"
        self._gate = Gate()
        self._opening = threading.Lock()
        self._opened: _Opened | None = None
        self._progress: DenseProgress = _NOTHING
        self._closed = False

    @property
    def progress(self) -> DenseProgress:
        """How far the index is.

        Raises:
            UnavailableError: The index cannot be read; reason INDEX_DAMAGED where it must be reset.
        """
        with self._using():
            return self._progress

    @property
    def count(self) -> int:
        """How many entries there are."""
        with self._using() as opened:
            return int(opened.collection.count())

    def apply(
        self, entries: Iterable[DenseEntry], gone: Collection[str], progress: DenseProgress | None
    ) -> None:
        """Drop what is gone, put the entries in the place of what is there, then the progress.

        After a crash in between some of it was done; doing it again does no harm. Without a
        progress the index stays where it is with its store. Chroma marks what is dropped and leaves
        its bytes in the files until `reset`.

        Raises:
            UnavailableError: The index cannot be written; reason INDEX_DAMAGED where it must be
                reset.
        """
        latest = {entry.key: entry for entry in entries}
        with self._using() as opened:
            for some in _batches([key for key in gone if key not in latest]):
                opened.collection.delete(ids=[_identity(key) for key in some])
            for batch in _batches(list(latest.values())):
                opened.collection.upsert(
                    ids=[_identity(entry.key) for entry in batch],
                    embeddings=[entry.vector for entry in batch],
                    metadatas=[
                        {"key": entry.key, "kind": entry.kind, "digest": entry.digest}
                        for entry in batch
                    ],
                )
                # Chroma takes what was written into its graph when it is next asked. Of thousands
                # at once that takes seconds, in which nobody else is answered.
                opened.collection.query(query_embeddings=[batch[0].vector], n_results=1)
            if progress is not None and progress != self._progress:
                opened.collection.modify(metadata=self._metadata(progress))
                self._progress = progress
            if self._files is not None:
                self._files.seal()

    def search(
        self, vector: Vectors, limit: int, *, kinds: Collection[str] | None = None
    ) -> list[DenseMatch]:
        """The entries whose vectors are nearest, of those kinds if any are named; nearest first.

        Approximate: of a large index one of a hundred may be missed.

        Raises:
            UnavailableError: The index cannot be read.
        """
        wanted = None if kinds is None else sorted(set(kinds))
        if limit < 1 or wanted == []:
            return []
        with self._using() as opened:
            if wanted is None:
                return _nearest(opened, vector, limit, None)[:limit]
            # Leaving out what is not wanted is quicker than to let Chroma do it, unless it is most.
            asked = min(8 * limit, _FILTERED_MATCHES)
            if limit <= asked:
                found = _nearest(opened, vector, asked, None)
                matches = [match for match in found if match.kind in wanted]
                if len(matches) >= limit or len(found) < asked:
                    return matches[:limit]
            return _nearest(opened, vector, limit, {"kind": {"$in": wanted}})[:limit]

    def known(self, keys: Collection[str]) -> dict[str, tuple[str, str]]:
        """Kind and digest of those keys that are indexed."""
        found: dict[str, tuple[str, str]] = {}
        with self._using() as opened:
            for some in _batches(list(keys)):
                rows = opened.collection.get(
                    ids=[_identity(key) for key in some], include=["metadatas"]
                )
                for row in rows["metadatas"]:
                    found[str(row["key"])] = str(row["kind"]), str(row["digest"])
        return found

    def holders(self, digests: Collection[str]) -> dict[str, set[str]]:
        """By digest: the keys whose vectors are of that text. Of few digests."""
        found: dict[str, set[str]] = {digest: set() for digest in digests}
        if not found:
            return found
        with self._using() as opened:
            rows = opened.collection.get(
                where={"digest": {"$in": sorted(found)}}, include=["metadatas"]
            )
            for row in rows["metadatas"]:
                found[str(row["digest"])].add(str(row["key"]))
        return found

    def keys(self) -> Iterator[str]:
        """The keys of all entries, in no order."""
        for row in self._rows():
            yield str(row["key"])

    def digests(self) -> set[str]:
        """Of which texts the vectors are."""
        return {str(row["digest"]) for row in self._rows()}

    def reset(self) -> None:
        """Throw everything away, so that it is indexed anew.

        Raises:
            UnavailableError: The index cannot be written.
        """
        # Who is in the middle of a search ends it before.
        with self._gate.alone(), self._opening, _told():
            self._stop()
            self._make()

    def close(self) -> None:
        """Close the index, once nobody uses it; it is of no use after."""
        with self._gate.alone(), self._opening:
            self._closed = True
            self._stop()

    def _rows(self) -> Iterator[Any]:
        start = 0
        while True:
            with self._using() as opened:
                rows = opened.collection.get(
                    include=["metadatas"], limit=_BATCH_ENTRIES, offset=start
                )["metadatas"]
            yield from rows
            start += len(rows)
            if len(rows) < _BATCH_ENTRIES:
                return

    @contextmanager
    def _using(self) -> Iterator[_Opened]:
        with self._gate.shared(), _told():
            with self._opening:
                if self._closed:
                    raise UnavailableError(
                        "the dense index is closed", reason="INDEX_CLOSED", fix="call again"
                    )
                opened = self._opened or self._open()
            yield opened

    def _open(self) -> _Opened:
        """Open what is there; make it anew where it cannot be used."""
        if self._files is None or not self._files.are_sound():
            return self._make()
        try:
            opened = self._opened = self._start()
            metadata = opened.collection.metadata or {}
            if metadata.get("made_by") == self._made_by:
                self._progress = DenseProgress(*json.loads(metadata["progress"]))
                # Chroma opens the graph with the first search.
                _nearest(opened, [1.0] * int(self._made_by.split("/")[1]), 1, None)
                return opened
        except Exception as error:
            _log.warning("dense index is damaged and is made anew", error=str(error))
        self._stop()
        return self._make()

    def _make(self) -> _Opened:
        if self._files is not None:
            self._files.clear()
        self._progress = _NOTHING
        self._opened = self._start()
        self._opened.collection.modify(metadata=self._metadata(_NOTHING))
        if self._files is not None:
            self._files.seal()
        return self._opened

    def _metadata(self, progress: DenseProgress) -> dict[str, str]:
        return {"made_by": self._made_by, "progress": json.dumps(astuple(progress))}

    def _start(self) -> _Opened:
        from chromadb.api import ServerAPI
        from chromadb.api.models.Collection import Collection as ChromaCollection
        from chromadb.config import Settings, System

        # A system of its own: Chroma's clients share one by path, and one in memory, in a process.
        settings: dict[str, Any] = {
            "_env_file": None,  # It would read one in the current folder.
            "anonymized_telemetry": False,
            "chroma_api_impl": "chromadb.api.rust.RustBindingsAPI",
            "is_persistent": self._files is not None,
            "persist_directory": "" if self._files is None else str(self._files.data),
        }
        system = System(Settings(**settings))
        api = system.instance(cast("Any", ServerAPI))
        system.start()
        model = api.get_or_create_collection(_COLLECTION, configuration={"hnsw": _GRAPH})
        return _Opened(system, ChromaCollection(client=api, model=model, embedding_function=None))

    def _stop(self) -> None:
        if self._opened is not None:
            self._opened.system.stop()
            self._opened = None


def _identity(key: str) -> str:
    """Chroma's id for the key, which may be too long for one."""
    return blake2b(key.encode(errors="surrogatepass"), digest_size=20).hexdigest()


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), _BATCH_ENTRIES):
        yield items[start : start + _BATCH_ENTRIES]


def _nearest(opened: _Opened, vector: Any, limit: int, where: Any) -> list[DenseMatch]:
    found = opened.collection.query(
        query_embeddings=[vector],
        n_results=limit,
        where=where,
        include=["metadatas", "distances"],
    )
    matches = [
        DenseMatch(str(row["key"]), str(row["kind"]), max(-1.0, min(1.0, 1.0 - distance)))
        for row, distance in zip(found["metadatas"][0], found["distances"][0], strict=True)
    ]
    return sorted(matches, key=lambda match: (-match.similarity, match.key))


@contextmanager
def _told() -> Iterator[None]:
    """Tell Chroma's failures as ours."""
    try:
        yield
    except (MunimentError, GeneratorExit):
        raise
    except BaseException as error:
        # A panic in Chroma's Rust is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        passing = any(words in str(error).lower() for words in _PASSING_ERRORS)
        raise UnavailableError(
            f"the dense index cannot be used: {error}",
            reason="INDEX_UNAVAILABLE" if passing else "INDEX_DAMAGED",
            fix="run `muniment reindex` if it stays",
        ) from error
