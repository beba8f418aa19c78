"""What is indexed of an episode and of a pin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import structlog
from google.protobuf.message import Message

from muniment.kit.errors import TamperedError
from muniment.kit.index.lexical import Document, scope
from muniment.kit.store import FeedPage, Reader, Table, unpack
from muniment.kit.store.keys import KeyPart
from muniment.memory.episodes import read_content
from muniment.memory.projects import was_purged
from muniment.memory.schema import EPISODES, PINS
from muniment.memory.shown_paths import path_suffixes, shown_paths

__all__ = [
    "EpisodesAndPins",
    "episode_key",
    "episodes_of",
    "path_scope",
    "pin_key",
    "pins_of",
    "session_scope",
]

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


class EpisodesAndPins:
    """The source of the memory store's index: episodes have their place as number, pins none."""

    def changed(self, reader: Reader, page: FeedPage) -> Iterator[Document]:
        """What became of the episodes and pins that these changes are about."""
        keys = dict.fromkeys((change.table, change.key) for _, change in page.changes)
        for table, packed in keys:
            # The key of what was purged is gone from the feed.
            for part in unpack(packed)[:1]:
                if table == EPISODES.name and isinstance(part, int):
                    yield _episode_document(reader, part)
                elif table == PINS.name and isinstance(part, str):
                    yield _pin_document(reader, part)

    def at_once(self, reader: Reader) -> Iterator[Document]:
        """All pins."""
        for key, _ in _believed(reader, PINS):
            yield _pin_document(reader, str(key[0]))

    def numbered(self, reader: Reader, numbers: range) -> Iterator[Document]:
        """The episodes of these places."""
        for seq in numbers:
            yield _episode_document(reader, seq)

    def newest_number(self, reader: Reader) -> int:
        """The newest episode's place."""
        return reader.last_number(EPISODES)

    def is_gone(self, reader: Reader, document: Document) -> bool:
        """Whether the episode was purged since it was read."""
        if document.gone or document.number is None:
            return document.gone
        try:
            episode = reader.get(EPISODES, document.number)
            return episode is None or was_purged(reader, episode.project_id, document.number)
        except TamperedError:
            return True


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
