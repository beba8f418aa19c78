"""Episodes: turns and tool results, verbatim, append-only, in the order of their commits."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.counting import TOKENIZER, estimate_tokens
from muniment.kit.errors import InvalidArgumentError, NotFoundError
from muniment.kit.ids import IdMaker
from muniment.kit.names import NAME_LIMIT_BYTES, check_name
from muniment.kit.store import Reader, Writer
from muniment.kit.store.store import unexpected
from muniment.memory.limits import EPISODE_LIMIT_BYTES
from muniment.memory.projects import count_change, required_project
from muniment.memory.schema import CONTENTS, EPISODE_IDS, EPISODES, SESSIONS, SUPERSESSIONS
from muniment.memory.shown_paths import shown_paths
from muniment.v1 import memory_pb2, store_pb2

__all__ = [
    "NewEpisode",
    "append_episode",
    "count_tokens",
    "find_episode",
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
    """The text's tokens, by the best counter there is."""
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
    episode.seq = writer.last_number(EPISODES) + 1
    episode.episode_id = ids.new("ep")
    episode.created_at.CopyFrom(timestamp(clock))
    if episode.HasField("corrects"):
        _supersede(writer, episode)
    reference = store_pb2.StoredEpisodeRef(seq=episode.seq)
    writer.put(CONTENTS, episode.seq, value=store_pb2.StoredContent(text=new.content))
    writer.put(EPISODES, episode.seq, value=episode)
    writer.put(EPISODE_IDS, episode.episode_id, value=reference)
    writer.put(SESSIONS, episode.project_id, episode.session_id, episode.seq, value=reference)
    count_change(writer, clock, context, episodes=1)
    return episode


def _supersede(writer: Writer, episode: memory_pb2.Episode) -> None:
    reference = _reference(writer, episode.corrects)
    corrected = writer.get(EPISODES, reference.seq) if reference else None
    if (
        corrected is None
        or corrected.project_id != episode.project_id
        or corrected.session_id != episode.session_id
    ):
        raise NotFoundError(
            f"this session has no episode {episode.corrects:.100}; nothing was recorded",
            reason="CORRECTED_EPISODE_UNKNOWN",
            field="corrects",
            fix="give the episode_id that the commit or a recall returned",
        )
    supersession = store_pb2.StoredSupersession(
        by_seq=episode.seq, by_episode_id=episode.episode_id
    )
    writer.put(SUPERSESSIONS, corrected.seq, value=supersession)


def episode_at(reader: Reader, seq: int) -> memory_pb2.Episode:
    """The episode of that place, with what superseded it."""
    episode = reader.get(EPISODES, seq)
    if episode is None:
        raise unexpected(EPISODES, seq)
    supersession = reader.get(SUPERSESSIONS, seq)
    if supersession is not None:
        episode.superseded_by = supersession.by_episode_id
    return episode


def find_episode(reader: Reader, project_id: str, episode_id: str) -> memory_pb2.Episode | None:
    """The project's episode of that id, or None."""
    reference = _reference(reader, episode_id)
    episode = episode_at(reader, reference.seq) if reference else None
    return episode if episode is not None and episode.project_id == project_id else None


def _reference(reader: Reader, episode_id: str) -> store_pb2.StoredEpisodeRef | None:
    # A longer one is no id of ours, and might be no key of LMDB's.
    if len(episode_id.encode()) > NAME_LIMIT_BYTES:
        return None
    return reader.get(EPISODE_IDS, episode_id)


def known_episode(reader: Reader, project_id: str, episode_id: str) -> memory_pb2.Episode:
    """The project's episode of that id.

    Raises:
        NotFoundError: The project has no such episode.
    """
    episode = find_episode(reader, project_id, episode_id)
    if episode is None:
        raise NotFoundError(
            f"this project has no episode {episode_id:.100}",
            reason="EPISODE_UNKNOWN",
            field="episode_id",
            fix="`muniment episodes` lists those that it has",
        )
    return episode


def read_content(reader: Reader, seq: int) -> str:
    """The content of the episode of that place, verbatim."""
    content = reader.get(CONTENTS, seq)
    if content is None:
        raise unexpected(CONTENTS, seq)
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


def list_episodes(
    reader: Reader, project_id: str, session_id: str | None, after_seq: int, limit: int
) -> list[memory_pb2.Episode]:
    """The project's or the session's episodes behind a place, in order of commit."""
    if session_id is not None:
        scope = (project_id, check_name("session_id", session_id))
        rows = reader.scan(SESSIONS, *scope, after=(*scope, after_seq))
        seqs = [reference.seq for _, reference in islice(rows, limit)]
    else:
        every = (reference.seq for _, reference in reader.scan(SESSIONS, project_id))
        seqs = nsmallest(limit, (seq for seq in every if seq > after_seq))
    return [episode_at(reader, seq) for seq in seqs]
