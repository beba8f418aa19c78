"""What the service and its parser processes say to each other, over pipes.

A frame is its length and its bytes. The process says hello with the version of its reader; then it
gets frames with requests, as many as there are files, and answers each file by a frame of its own,
in order: so of one that it dies of, it is known which it was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

__all__ = ["ReadRequest", "pack_requests", "receive", "send", "take_frame", "unpack_requests"]

_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">QIII")


class ReadRequest(NamedTuple):
    """A file that is to be read."""

    scan: int
    """Number that symbols get which changed."""
    location: bytes
    """Absolute, as the disk has it."""
    path: str
    """Relative to the root, as it is shown."""
    before: bytes
    """The row of the file as it was, serialized; empty where there is none."""


def pack_requests(requests: Iterable[ReadRequest]) -> bytes:
    """The requests as one frame's bytes."""
    parts: list[bytes] = []
    for one in requests:
        path = one.path.encode()
        parts += (
            _HEAD.pack(one.scan, len(one.location), len(path), len(one.before)),
            one.location,
            path,
            one.before,
        )
    return b"".join(parts)


def unpack_requests(packed: bytes) -> Iterator[ReadRequest]:
    """The requests of a frame."""
    at = 0
    while at < len(packed):
        scan, *lengths = _HEAD.unpack_from(packed, at)
        at += _HEAD.size
        fields = []
        for length in lengths:
            fields.append(packed[at : at + length])
            at += length
        location, path, before = fields
        yield ReadRequest(scan, location, path.decode(), before)


def send(pipe: IO[bytes], content: bytes) -> None:
    """Write a frame."""
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """The next frame; None where the other end is gone."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = pipe.read(length)
    return content if len(content) == length else None


def take_frame(arrived: bytearray) -> bytes | None:
    """The first frame of what arrived, which it is taken out of; None where it is not whole."""
    if len(arrived) < _LENGTH.size:
        return None
    end = _LENGTH.size + _LENGTH.unpack_from(arrived)[0]
    if len(arrived) < end:
        return None
    frame = bytes(arrived[_LENGTH.size : end])
    del arrived[:end]
    return frame
