"""Keys: tuples whose bytes sort as the tuples do.

As in FoundationDB's tuple layer: a tag by part; text and bytes end with a zero, zeros inside are
escaped; integers are eight bytes, big end first. A tuple's bytes begin with those of its prefixes.
"""

from __future__ import annotations

import hashlib
import struct

__all__ = ["KEY_LIMIT_BYTES", "KeyPart", "as_number", "begins_with", "pack", "shorten", "unpack"]

KEY_LIMIT_BYTES = 511
"""LMDB's longest key."""

_KEPT_BYTES = KEY_LIMIT_BYTES - hashlib.sha256().digest_size
"""What a longer key keeps of its beginning, so that prefixes up to here still find it."""

_CONTINUES = 0xFF
"""What follows a zero inside a part; no part begins with it."""

KeyPart = str | bytes | int

_BYTES, _TEXT, _INTEGER = 1, 2, 3
_INTEGER_LIMIT = 1 << 64


def pack(*parts: KeyPart) -> bytes:
    """The parts as bytes, of whatever length.

    Raises:
        ValueError: An integer is negative or over 64 bits.
    """
    return b"".join(map(_pack_part, parts))


def shorten(packed: bytes) -> bytes:
    """A key that LMDB takes: the packed parts, or their beginning and a digest of them all.

    A shortened key alone has the greatest length, so none is taken for a key that is whole.
    """
    if len(packed) < KEY_LIMIT_BYTES:
        return packed
    return packed[:_KEPT_BYTES] + hashlib.sha256(packed).digest()


def begins_with(key: bytes, prefix: bytes) -> bool:
    """Whether the parts of the packed or shortened key begin with all parts of the prefix.

    Where a shortened key keeps no more than the prefix it cannot be told, and passes.
    """
    if not key.startswith(prefix):
        return False
    end = len(prefix)
    if end in (0, len(key)) or (end == _KEPT_BYTES and len(key) == KEY_LIMIT_BYTES):
        return True
    return key[end] != _CONTINUES


def _pack_part(part: KeyPart) -> bytes:
    if isinstance(part, int):
        if not 0 <= part < _INTEGER_LIMIT:
            raise ValueError(f"{part} is not an unsigned 64-bit integer")
        return struct.pack(">BQ", _INTEGER, part)
    tag, raw = (_TEXT, part.encode()) if isinstance(part, str) else (_BYTES, part)
    return b"%c%b\0" % (tag, raw.replace(b"\0", b"\0\xff"))


def unpack(key: bytes) -> tuple[KeyPart, ...]:
    """The parts of what `pack` made.

    Raises:
        ValueError: The bytes are no such key.
    """
    parts: list[KeyPart] = []
    at = 0
    while at < len(key):
        tag = key[at]
        if tag == _INTEGER and at + 9 <= len(key):
            parts.append(struct.unpack_from(">Q", key, at + 1)[0])
            at += 9
        elif tag in (_BYTES, _TEXT):
            end = _end_of_text(key, at + 1)
            raw = key[at + 1 : end].replace(b"\0\xff", b"\0")
            parts.append(raw.decode() if tag == _TEXT else raw)
            at = end + 1
        else:
            raise ValueError(f"byte {at} of the key {key.hex()} is no part of a key")
    return tuple(parts)


def as_number(key: bytes) -> int | None:
    """The number that is all of a packed key; None where it is another key."""
    if len(key) != 9 or key[0] != _INTEGER:
        return None
    return int.from_bytes(key[1:], "big")


def _end_of_text(key: bytes, start: int) -> int:
    end = key.find(b"\0", start)
    while end != -1 and key[end + 1 : end + 2] == b"\xff":
        end = key.find(b"\0", end + 2)
    if end == -1:
        raise ValueError(f"the key {key.hex()} ends inside a part")
    return end
