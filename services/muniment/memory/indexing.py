"""Keeps the lexical index in step with the store: what is indexed of an episode and of a pin."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import structlog

from muniment.kit.index.lexical import Document, LexicalIndex, scope
from muniment.kit.store import Reader, unpack
from muniment.kit.store.store import unexpected
from muniment.kit.store.tables import CHANGES
from muniment.memory.episodes import episode_at, read_content
from muniment.memory.schema import EPISODES, PINS
from muniment.memory.shown_paths import path_suffixes, shown_paths
from muniment.v1 import memory_pb2

__all__ = [
    "EPISODE_SCOPE",
    "PIN_SCOPE",
    "WHOLE_PROJECT_SCOPE",
    "IndexFollower",
    "episode_key",
    "path_scope",
    "pin_key",
    "project_scope",
    "session_scope",
]

_CATCH_UP_CHANGES = 1000

EPISODE_SCOPE = "kindepisode"
PIN_SCOPE = "kindpin"
WHOLE_PROJECT_SCOPE = "wholeproject"

_log = structlog.get_logger()


def project_scope(project_id: str) -> str:
    """The filter for what belongs to the project."""
    return scope("project", project_id)


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
    """Brings the index up to the store's newest change."""

    def __init__(self, index: LexicalIndex) -> None:
        self._index = index

    def catch_up(self, reader: Reader) -> None:
        """Index what changed since the index's position, in portions.

        An index that is damaged, or ahead of the store, is made anew.

        Raises:
            UnavailableError: The index cannot be written.
        """
        try:
            self._catch_up(reader)
        except sqlite3.DatabaseError as error:
            _log.warning("search index is damaged and is made anew", error=str(error))
            self._index.reset()
            self._catch_up(reader)

    def _catch_up(self, reader: Reader) -> None:
        newest = reader.last_number(CHANGES)
        position = self._index.position
        if position > newest or self._index.is_damaged:
            _log.warning("search index cannot be used and is made anew", position=position)
            self._index.reset()
            position = 0
        if newest - position > _CATCH_UP_CHANGES:
            _log.info("search index catches up", changes=newest - position)
        while position < newest:
            reached = min(newest, position + _CATCH_UP_CHANGES)
            self._index.apply(self._documents(reader, position, reached), reached)
            position = reached

    def _documents(self, reader: Reader, after: int, last: int) -> Iterator[Document]:
        for (position,), change in reader.scan(CHANGES, after=(after,)):
            if not isinstance(position, int) or position > last:
                return
            (key,) = unpack(change.key)
            if change.table == EPISODES.name and isinstance(key, int):
                yield _episode_document(reader, key)
            elif change.table == PINS.name and isinstance(key, str):
                yield from _pin_documents(reader, key)


def _episode_document(reader: Reader, seq: int) -> Document:
    episode = episode_at(reader, seq)
    scopes = {
        EPISODE_SCOPE,
        project_scope(episode.project_id),
        session_scope(episode.session_id),
    }
    scopes.update(path_scope(end) for path in episode.paths for end in path_suffixes(path))
    return Document(episode_key(seq), read_content(reader, seq), frozenset(scopes))


def _pin_documents(reader: Reader, pin_id: str) -> Iterator[Document]:
    stored = reader.get(PINS, pin_id)
    if stored is None:
        raise unexpected(PINS, pin_id)
    yield Document(pin_key(pin_id), stored.pin.content, frozenset(_pin_scopes(stored.pin)))
    if stored.HasField("removed_at"):
        # Its words stay in the counts, so that an index made anew ranks as this one does.
        yield Document(pin_key(pin_id), None)


def _pin_scopes(pin: memory_pb2.PinnedRule) -> Iterator[str]:
    yield PIN_SCOPE
    yield project_scope(pin.project_id)
    yield session_scope(pin.session_id) if pin.HasField("session_id") else WHOLE_PROJECT_SCOPE
    for path in shown_paths(pin.content, "/", lambda _: True):
        yield from map(path_scope, path_suffixes(path))
