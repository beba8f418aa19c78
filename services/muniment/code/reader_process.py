"""A parser process: `python -m muniment.code.reader_process BYTES SECONDS`.

It opens what it is told to and answers with rows. A file may make a parser loop, crash or eat
memory, which is why this is a process of its own: limits end it, and the service begins another.
It imports the grammars and protobuf, and ends when the service's end of its pipe is gone.
"""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import stat
import sys
from collections import Counter, defaultdict
from contextlib import suppress

from muniment.code.frames import ReadRequest, receive, send, unpack_requests
from muniment.code.languages import language_of
from muniment.code.limits import (
    BINARY_PROBE_BYTES,
    PARSER_LIMIT_BYTES,
)
from muniment.code.reading import READER_VERSION, read
from muniment.kit.clock import Clock, SystemClock
from muniment.v1 import code_pb2, store_pb2

__all__ = ["carry_scans", "read_file"]

_DIGEST_BYTES = 16
_TICK_NS = 50_000_000
_COARSE_TICK_NS = 2_000_000_000
"""Within so long after a change another one may leave the file's times as they are: where the disk
counts in fractions of a second, and where it counts in seconds."""


def read_file(request: ReadRequest, limit_bytes: int, clock: Clock) -> store_pb2.StoredCodeFile:
    """The row of the file as it is now."""
    row = store_pb2.StoredCodeFile(path=request.path, reader_version=READER_VERSION)
    row.language = language_of(request.path, b"") or ""
    before = store_pb2.StoredCodeFile.FromString(request.before)
    content = _content(request.location, limit_bytes, row, clock)
    if content is None:
        return row
    row.digest = hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
    if _is_read_already(row, before):
        row.language, row.condition = before.language, before.condition
        row.facts.CopyFrom(before.facts)
        return row
    head = content[:BINARY_PROBE_BYTES]
    language = language_of(request.path, head)
    row.language = language or ""
    if b"\0" in head:
        row.condition = code_pb2.FILE_CONDITION_BINARY
    elif language is None:
        row.condition = code_pb2.FILE_CONDITION_NO_GRAMMAR
    else:
        facts, row.condition = read(request.path, language, content)
        carry_scans(facts, before.facts, request.scan)
        row.facts.CopyFrom(facts)
    return row


def _is_read_already(row: store_pb2.StoredCodeFile, before: store_pb2.StoredCodeFile) -> bool:
    """Whether the file was read so before, by this reader."""
    return (
        row.digest == before.digest
        and row.reader_version == before.reader_version
        and before.condition != code_pb2.FILE_CONDITION_PARSER_FAILED
    )


def carry_scans(facts: store_pb2.CodeFacts, before: store_pb2.CodeFacts, scan: int) -> None:
    """Say of each symbol at which scan it changed: a former one where its syntax is the same."""
    if not before.symbols:
        for symbol in facts.symbols:
            symbol.changed_scan = scan
        return
    known: defaultdict[_SymbolKey, list[store_pb2.CodeSymbol]] = defaultdict(list)
    for key, symbol in zip(_keys(before), before.symbols, strict=True):
        known[key].append(symbol)
    seen = Counter[_SymbolKey]()
    for key, symbol in zip(_keys(facts), facts.symbols, strict=True):
        former = known[key][seen[key]] if seen[key] < len(known[key]) else None
        seen[key] += 1
        is_same = former is not None and former.ast_hash == symbol.ast_hash
        symbol.changed_scan = former.changed_scan if former is not None and is_same else scan


_SymbolKey = tuple[str, int]


def _keys(facts: store_pb2.CodeFacts) -> list[_SymbolKey]:
    """By symbol: its name within the file, and its kind. Several may have the same."""
    names: list[str] = []
    for symbol in facts.symbols:
        is_inside = 0 < symbol.parent <= len(names)
        names.append(f"{names[symbol.parent - 1]}::{symbol.name}" if is_inside else symbol.name)
    return [(name, symbol.kind) for name, symbol in zip(names, facts.symbols, strict=True)]


def _content(
    location: bytes, limit_bytes: int, row: store_pb2.StoredCodeFile, clock: Clock
) -> bytes | None:
    """The file's content, and into the row what the disk says of it; None where it is not read.

    What the disk says is asked before the file is read: what changes meanwhile shows later.
    """
    row.condition = code_pb2.FILE_CONDITION_UNREADABLE
    try:
        # A pipe would keep us waiting, and a link lead elsewhere.
        descriptor = os.open(location, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            _note_state(row, os.lstat(location))
        return None
    with os.fdopen(descriptor, "rb") as file:
        now = clock.now_ns()
        found = os.fstat(descriptor)
        _note_state(row, found)
        if not stat.S_ISREG(found.st_mode):
            return None
        changed_ns = max(found.st_mtime_ns, found.st_ctime_ns)
        tick_ns = _TICK_NS if found.st_ctime_ns % 1_000_000_000 else _COARSE_TICK_NS
        if now - changed_ns < tick_ns:
            # No file has this time, so it is looked at again.
            row.ctime_ns = 0
        if found.st_size > limit_bytes:
            row.condition = code_pb2.FILE_CONDITION_TOO_LARGE
            return None
        try:
            content = file.read(limit_bytes + 1)
        except OSError:
            return None
    if len(content) > limit_bytes:
        row.condition = code_pb2.FILE_CONDITION_TOO_LARGE
        return None
    return content


def _note_state(row: store_pb2.StoredCodeFile, found: os.stat_result) -> None:
    row.size_bytes, row.mtime_ns = found.st_size, found.st_mtime_ns
    row.ctime_ns, row.inode = found.st_ctime_ns, found.st_ino


def _main() -> None:
    limit_bytes, cpu_seconds = int(sys.argv[1]), float(sys.argv[2])
    # The service says when to end; a key in its terminal does not.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (PARSER_LIMIT_BYTES, PARSER_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    clock = SystemClock()
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a grammar prints must not get among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with answers, suppress(BrokenPipeError):
        send(answers, str(READER_VERSION).encode())
        while (frame := receive(requests)) is not None:
            for request in unpack_requests(frame):
                # Ends the process, also where the service is gone and nobody else would.
                signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
                row = read_file(request, limit_bytes, clock)
                send(answers, row.SerializeToString())
            signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    _main()
