"""Keys: tuples whose bytes sort as the tuples do.

As in FoundationDB's tuple layer: a tag by part; text and bytes end with a zero, zeros inside are
escaped; integers are eight bytes, big end first. A tuple's bytes begin with those of its prefixes;
what begins with them and goes on with ESCAPE is no such tuple.
"""

from __future__ import annotations

import struct

__all__ = ["ESCAPE", "LIMIT_BYTES", "KeyPart", "pack", "unpack"]

LIMIT_BYTES = 511
"""LMDB's longest key."""

ESCAPE = b"\xff"
"""Follows a zero inside text and bytes. No part begins with it."""

KeyPart = str | bytes | int

_BYTES, _TEXT, _INTEGER = 1, 2, 3
_INTEGER_LIMIT = 1 << 64


def pack(*parts: KeyPart) -> bytes:
    """The key of the parts.

    Raises:
        ValueError: An integer is negative or over 64 bits, or the key is longer than LIMIT_BYTES.
    """
    packed = b"".join(map(_pack_part, parts))
    if len(packed) > LIMIT_BYTES:
        raise ValueError(f"the key of {parts!r} takes {len(packed)} of {LIMIT_BYTES} bytes")
    return packed


def _pack_part(part: KeyPart) -> bytes:
    if isinstance(part, int):
        if not 0 <= part < _INTEGER_LIMIT:
            raise ValueError(f"{part} is not an unsigned 64-bit integer")
        return struct.pack(">BQ", _INTEGER, part)
    tag, raw = (_TEXT, part.encode()) if isinstance(part, str) else (_BYTES, part)
    return bytes((tag,)) + raw.replace(b"\0", b"\0" + ESCAPE) + b"\0"


def unpack(key: bytes) -> tuple[KeyPart, ...]:
    """The parts of a key that `pack` made.

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
            raw = key[at + 1 : end].replace(b"\0" + ESCAPE, b"\0")
            parts.append(raw.decode() if tag == _TEXT else raw)
            at = end + 1
        else:
            raise ValueError(f"byte {at} of the key {key.hex()} is no part of a key")
    return tuple(parts)


def _end_of_text(key: bytes, start: int) -> int:
    end = key.find(b"\0", start)
    while end != -1 and key.startswith(ESCAPE, end + 1):
        end = key.find(b"\0", end + 2)
    if end == -1:
        raise ValueError(f"the key {key.hex()} ends inside a part")
    return end
