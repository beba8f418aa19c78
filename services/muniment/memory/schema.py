"""The tables of the memory store."""

from __future__ import annotations

from muniment.kit.store import Schema, Table
from muniment.kit.stores import MEMORY_STORE
from muniment.v1 import memory_pb2, store_pb2

__all__ = [
    "CONTENTS",
    "EPISODES",
    "EPISODE_IDS",
    "PINS",
    "PIN_COUNTS",
    "PIN_SCOPES",
    "PROJECTS",
    "PURGES",
    "SCHEMA",
    "SESSIONS",
    "SUPERSESSIONS",
    "TOKEN_COUNTS",
    "TOMBSTONES",
]

EPISODES: Table[memory_pb2.Episode] = Table("episodes", memory_pb2.Episode, in_feed=True)
"""seq → all of an episode but its content and what came later."""

CONTENTS: Table[store_pb2.StoredContent] = Table("contents", store_pb2.StoredContent)
"""seq → the content. Apart, so that descriptions are cheap to read."""

EPISODE_IDS: Table[store_pb2.StoredEpisodeRef] = Table("episode_ids", store_pb2.StoredEpisodeRef)
"""episode id → seq."""

SESSIONS: Table[store_pb2.StoredEpisodeRef] = Table("sessions", store_pb2.StoredEpisodeRef)
"""project, session, seq → seq."""

SUPERSESSIONS: Table[store_pb2.StoredSupersession] = Table(
    "supersessions", store_pb2.StoredSupersession, in_feed=True, mutable=True
)
"""seq of a corrected episode → the newest that corrects it. Apart, since episodes never change."""

PINS: Table[store_pb2.StoredPin] = Table("pins", store_pb2.StoredPin, in_feed=True, mutable=True)
"""pin id → pin."""

PIN_SCOPES: Table[store_pb2.StoredPinRef] = Table(
    "pin_scopes", store_pb2.StoredPinRef, in_feed=True, mutable=True
)
"""project, session or "", SHA-256 of the text → the pin in force there."""

PROJECTS: Table[store_pb2.StoredProject] = Table("projects", store_pb2.StoredProject, mutable=True)
"""project id → project, with its counts."""

TOMBSTONES: Table[store_pb2.StoredTombstone] = Table(
    "tombstones", store_pb2.StoredTombstone, in_feed=True, mutable=True
)
"""project id → what was purged of it."""

PURGES: Table[store_pb2.StoredPurge] = Table(
    "purges", store_pb2.StoredPurge, in_feed=True, mutable=True
)
"""project id → its purge, for as long as that is not finished."""

TOKEN_COUNTS: Table[store_pb2.StoredTokenCounts] = Table(
    "token_counts", store_pb2.StoredTokenCounts
)
"""block of seqs → counts of its episodes by a model's tokenizer. Rewritten, and not mutable: an
episode never changes, so what an older row counts is true."""

PIN_COUNTS: Table[store_pb2.StoredPinCounts] = Table("pin_counts", store_pb2.StoredPinCounts)
"""project id → counts of its pins as they are rendered. As above: each names the pin's kind."""

SCHEMA = Schema(
    version=MEMORY_STORE.version,
    tables=(
        EPISODES,
        CONTENTS,
        EPISODE_IDS,
        SESSIONS,
        SUPERSESSIONS,
        PINS,
        PIN_SCOPES,
        PROJECTS,
        TOMBSTONES,
        PURGES,
        TOKEN_COUNTS,
        PIN_COUNTS,
    ),
    grown_from=frozenset({2}),
)
