"""Episodes: turns and tool results, verbatim, append-only, in the order of their commits."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.counting import TOKENIZER, estimate_tokens
from muniment.kit.errors import InvalidArgumentError, NotFoundError, TamperedError
from muniment.kit.ids import IdMaker
from muniment.kit.names import NAME_LIMIT_BYTES, check_name
from muniment.kit.store import Reader, Writer
from muniment.kit.store.keys import KeyPart
from muniment.kit.store.transaction import missing_row
from muniment.memory.limits import EPISODE_LIMIT_BYTES
from muniment.memory.projects import (
    count_change,
    last_purge,
    purge_that_took,
    purged_through,
    required_project,
    was_purged,
)
from muniment.memory.schema import CONTENTS, EPISODE_IDS, EPISODES, SESSIONS, SUPERSESSIONS
from muniment.memory.shown_paths import shown_paths
from muniment.v1 import memory_pb2, store_pb2

__all__ = [
    "EpisodePage",
    "NewEpisode",
    "append_episode",
    "count_tokens",
    "find_corrected",
    "find_episode",
    "keep_episode",
    "list_episodes",
    "newest_correction",
    "prepare_episode",
    "read_content",
]


@dataclass(frozen=True)
class NewEpisode:
    """A checked episode that waits for its place in the stream."""

    description: memory_pb2.Episode
    content: str


def prepare_episode(context: CallContext, request: memory_pb2.CommitEpisodeRequest) -> NewEpisode:
    """Check the request and derive what costs time, before any transaction.

    Raises:
        InvalidArgumentError: A field is missing, unknown or too long.
    """
    project_id = required_project(context)
    if request.role not in memory_pb2.Role.values() or not request.role:
        raise InvalidArgumentError(
            "must be one of system, user, assistant, tool, internal",
            reason="ROLE_UNKNOWN",
            field="role",
        )
    raw = request.content.encode()
    if not raw:
        raise InvalidArgumentError(
            "is empty", reason="CONTENT_EMPTY", field="content", fix="send the turn's text"
        )
    if len(raw) > EPISODE_LIMIT_BYTES:
        raise InvalidArgumentError(
            f"takes {len(raw)} bytes; an episode holds {EPISODE_LIMIT_BYTES}",
            reason="CONTENT_TOO_LONG",
            field="content",
            fix="commit it in parts",
        )
    check_name("tool_name", request.tool_name)
    root = context.project_root
    description = memory_pb2.Episode(
        project_id=project_id,
        session_id=context.session_id,
        slot_id=context.slot_id,
        role=request.role,
        tokens=count_tokens(request.content),
        content_bytes=len(raw),
        content_sha256=hashlib.sha256(raw).digest(),
        paths=shown_paths(request.content, root, lambda path: os.path.lexists(f"{root}/{path}")),
    )
    if request.HasField("tool_name"):
        description.tool_name = request.tool_name
    if request.HasField("corrects"):
        description.corrects = request.corrects
    return NewEpisode(description, request.content)


def count_tokens(text: str) -> memory_pb2.TokenCount:
    """The text's tokens as they are estimated until the serving model's tokenizer has counted."""
    return memory_pb2.TokenCount(
        count_tokens=estimate_tokens(text), tokenizer=TOKENIZER, exact=False
    )


def append_episode(
    writer: Writer, clock: Clock, ids: IdMaker, context: CallContext, new: NewEpisode
) -> memory_pb2.Episode:
    """Give the episode its id and place, and keep it.

    Raises:
        NotFoundError: The episode that it corrects is not one of this project and session.
    """
    episode = memory_pb2.Episode()
    episode.CopyFrom(new.description)
    corrected = find_corrected(writer, episode)
    if episode.HasField("corrects") and corrected is None:
        raise NotFoundError(
            f"this session has no episode {episode.corrects:.100}; nothing was recorded",
            reason="CORRECTED_EPISODE_UNKNOWN",
            field="corrects",
            fix="give the episode_id that the commit or a recall returned",
        )
    episode.episode_id = ids.new("ep")
    episode.created_at.CopyFrom(timestamp(clock))
    keep_episode(writer, NewEpisode(episode, new.content), corrected)
    count_change(writer, clock, context, episodes=1)
    return episode


def find_corrected(reader: Reader, episode: memory_pb2.Episode) -> int | None:
    """The place of the episode of the same session that this one corrects, or None."""
    if not episode.HasField("corrects"):
        return None
    found = find_episode(reader, episode.project_id, episode.corrects)
    return found.seq if found and found.session_id == episode.session_id else None


def keep_episode(writer: Writer, new: NewEpisode, corrected: int | None) -> None:
    """Give the episode the next place, and keep it there."""
    episode = new.description
    episode.seq = writer.next_number(EPISODES)
    if corrected is not None:
        supersession = store_pb2.StoredSupersession(
            by_seq=episode.seq, by_episode_id=episode.episode_id
        )
        writer.put(SUPERSESSIONS, corrected, value=supersession)
    reference = store_pb2.StoredEpisodeRef(seq=episode.seq)
    writer.put(CONTENTS, episode.seq, value=store_pb2.StoredContent(text=new.content))
    writer.put(EPISODES, episode.seq, value=episode)
    writer.put(EPISODE_IDS, episode.episode_id, value=reference)
    writer.put(SESSIONS, episode.project_id, episode.session_id, episode.seq, value=reference)


def episode_at(reader: Reader, seq: int) -> memory_pb2.Episode:
    """The episode of that place, with what superseded it."""
    episode = reader.get(EPISODES, seq)
    if episode is None:
        raise missing_row(EPISODES, seq)
    if was_purged(reader, episode.project_id, seq):
        raise TamperedError(
            f"episode {episode.episode_id} was purged, and put back from outside",
            reason="ROW_PUT_BACK",
            fix="run `muniment verify-store`",
        )
    supersession = reader.get(SUPERSESSIONS, seq)
    if supersession is not None:
        episode.superseded_by = supersession.by_episode_id
    return episode


def find_episode(reader: Reader, project_id: str, episode_id: str) -> memory_pb2.Episode | None:
    """The project's episode of that id, or None."""
    reference = _reference(reader, episode_id)
    if reference is None or reference.seq <= purged_through(reader, project_id):
        return None
    episode = episode_at(reader, reference.seq)
    return episode if episode.project_id == project_id else None


def _reference(reader: Reader, episode_id: str) -> store_pb2.StoredEpisodeRef | None:
    # A longer one is no id of ours, and might be no key of LMDB's.
    if len(episode_id.encode()) > NAME_LIMIT_BYTES:
        return None
    return reader.get(EPISODE_IDS, episode_id)


def known_episode(reader: Reader, project_id: str, episode_id: str) -> memory_pb2.Episode:
    """The project's episode of that id.

    Raises:
        NotFoundError: The project has no such episode.
        TamperedError: It cannot be believed, or none is there and the store is in doubt.
    """
    episode = find_episode(reader, project_id, episode_id)
    if episode is None:
        purged = purge_that_took(reader, project_id, episode_id)
        doubts = reader.doubts()
        if doubts and not purged:
            raise TamperedError(
                f"no episode {episode_id:.100} is found; one may be missing: {'; '.join(doubts)}",
                reason="STORE_IN_DOUBT",
                fix="run `muniment verify-store`",
            )
        raise NotFoundError(
            f"this project has no episode {episode_id:.100}" + (f"; {purged}" if purged else ""),
            reason="EPISODE_PURGED" if purged else "EPISODE_UNKNOWN",
            field="episode_id",
            fix="`muniment episodes` lists those that it has",
        )
    return episode


def read_content(reader: Reader, seq: int) -> str:
    """The content of the episode of that place, verbatim."""
    content = reader.get(CONTENTS, seq)
    if content is None:
        raise missing_row(CONTENTS, seq)
    return content.text


def newest_correction(reader: Reader, seq: int) -> int | None:
    """The end of the chain of corrections that starts at that place; None where there is none."""
    found: int | None = None
    supersession = reader.get(SUPERSESSIONS, seq)
    while supersession is not None:
        # A correction is always younger, so the chain ends.
        found = supersession.by_seq
        supersession = reader.get(SUPERSESSIONS, found)
    return found


@dataclass(frozen=True)
class EpisodePage:
    """A part of a listing, and what of it cannot be told."""

    episodes: tuple[memory_pb2.Episode, ...]
    tampered_seqs: tuple[int, ...]
    """Places of episodes whose rows cannot be believed."""
    tampered_entries: int
    """Entries of the listing that cannot be believed, wherever they belong."""
    doubts: tuple[str, ...]
    notes: tuple[str, ...]
    last_seq: int | None
    """The place to pass to read on; None where nothing was left."""

    @property
    def size(self) -> int:
        """How many episodes it speaks of."""
        return len(self.episodes) + len(self.tampered_seqs)


def list_episodes(
    reader: Reader, project_id: str, session_id: str | None, after_seq: int, limit: int
) -> EpisodePage:
    """The project's or the session's episodes behind a place, in order of commit."""
    after_seq = max(after_seq, purged_through(reader, project_id))
    scope: tuple[KeyPart, ...] = (project_id,)
    if session_id is not None:
        scope = (project_id, check_name("session_id", session_id))
    tampered_entries = 0

    def seqs() -> Iterator[int]:
        nonlocal tampered_entries
        after = None if session_id is None else (*scope, after_seq)
        for _, reference in reader.survey(SESSIONS, *scope, after=after):
            if isinstance(reference, TamperedError):
                tampered_entries += 1
            elif reference.seq > after_seq:
                yield reference.seq

    listed = list(islice(seqs(), limit)) if session_id is not None else nsmallest(limit, seqs())
    found, tampered = [], []
    for seq in listed:
        try:
            found.append(episode_at(reader, seq))
        except TamperedError:
            tampered.append(seq)
    return EpisodePage(
        episodes=tuple(found),
        tampered_seqs=tuple(tampered),
        tampered_entries=tampered_entries,
        doubts=tuple(reader.doubts()),
        notes=() if listed else _why_none(reader, project_id),
        last_seq=listed[-1] if listed else None,
    )


def _why_none(reader: Reader, project_id: str) -> tuple[str, ...]:
    purged = last_purge(reader, project_id)
    return (f"this project was {purged}",) if purged else ()
