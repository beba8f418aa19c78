"""The hash chain of the feed.

It goes over digests of keys and values and not over themselves, so they can be purged, and old
changes dropped, without breaking what comes after.
"""

from __future__ import annotations

import hashlib
import struct

from muniment.v1 import store_pb2

__all__ = ["CHAIN_START", "chain_hash"]

CHAIN_START = bytes(32)
"""The chain's hash before the first change."""


def chain_hash(before: bytes, position: int, change: store_pb2.StoredChange) -> bytes:
    """The chain's hash at the change: SHA-256 over its parts, each with its length."""
    parts = (
        before,
        change.table.encode(),
        change.key_sha256 or hashlib.sha256(change.key).digest(),
        change.before_sha256,
        change.after_sha256,
        struct.pack(">Q", change.at.ToNanoseconds()),
    )
    digest = hashlib.sha256(struct.pack(">Q", position))
    for part in parts:
        digest.update(struct.pack(">I", len(part)) + part)
    return digest.digest()
