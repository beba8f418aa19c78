"""Files of records: written with their digest, and read only when they are as they were written."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.progress import Report
from muniment.v1 import records_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.record_lines import Closing, Header, read_header, read_line, record_line
from muniment.workflows.records import export_records

__all__ = [
    "RECORD_LINE_LIMIT_BYTES",
    "RecordFile",
    "Written",
    "check_file",
    "write_file",
]

RECORD_LINE_LIMIT_BYTES = 32 * 1024 * 1024
"""Longest line. JSON may take six bytes for one."""

_REPORTED_LINES = 100


@dataclass(frozen=True)
class Written:
    """What a file got."""

    header: Header
    closing: Closing
    counts: Counter[str]
    """By kind of line."""
    size_bytes: int


async def write_file(
    clients: Clients,
    context: CallContext,
    write: Callable[[bytes], object],
    report: Report,
    *,
    exporter: str,
    created_at: Timestamp,
) -> Written:
    """Hand the lines of all records of one moment to `write`, one after the other."""
    digest, size, counts = hashlib.sha256(), 0, Counter[str]()
    header = Header(exporter, context.tenant_id, "", 0, created_at)

    def put(line: bytes) -> None:
        nonlocal size
        digest.update(line)
        size += len(line)
        write(line)

    def begin(end: records_pb2.ExportEnd) -> None:
        nonlocal header
        header = Header(exporter, end.tenant_id, end.incarnation, end.position, created_at)
        put(header.to_line())

    def put_record(record: records_pb2.Record) -> None:
        counts[record.WhichOneof("record") or ""] += 1
        put(record_line(record))

    end = await export_records(clients, context, put_record, report, begin=begin)
    closing = Closing(counts.total(), end.tampered, digest.digest())
    put(closing.to_line())
    return Written(header, closing, counts, size)


@dataclass(frozen=True)
class RecordFile:
    """A file that was read to its end and is as it was written.

    Its records can be read again and again. The file has to stay as it is: what was changed
    since it was checked is found at its end, and told by an error.
    """

    source: BinaryIO
    header: Header
    closing: Closing
    counts: Counter[str]

    def __iter__(self) -> Iterator[records_pb2.Record]:
        """The records in the order of their lines.

        Raises:
            InvalidArgumentError: The file was changed since it was checked.
        """
        self.source.seek(0)
        closing = None
        for found in _read(self.source):
            if isinstance(found, records_pb2.Record):
                yield found
            elif isinstance(found, Closing):
                closing = found
        if closing != self.closing:
            raise _damaged("and those behind it were changed while they were read", 1)


def check_file(source: BinaryIO, report: Report, total_bytes: int = 0) -> RecordFile:
    """Read the file, which can be read again, to its end.

    Raises:
        InvalidArgumentError: It is no such file, or not as it was written; the line is named.
    """
    source.seek(0)
    counts = Counter[str]()
    header: Header | None = None
    for number, found in enumerate(_read(source), start=1):
        if isinstance(found, Header):
            header = found
        elif isinstance(found, Closing):
            assert header is not None
            return RecordFile(source, header, found, counts)
        else:
            counts[found.WhichOneof("record") or ""] += 1
        if number % _REPORTED_LINES == 0:
            report("checking the file", source.tell(), total_bytes)
    raise AssertionError("a file without an end was read to its end")


def _read(source: BinaryIO) -> Iterator[Header | records_pb2.Record | Closing]:
    digest, records, number = hashlib.sha256(), 0, 0
    while raw := source.readline(RECORD_LINE_LIMIT_BYTES + 1):
        number += 1
        if number == 1:
            yield read_header(raw)
        elif not raw.endswith(b"\n"):
            raise _damaged(
                f"is longer than {RECORD_LINE_LIMIT_BYTES} bytes"
                if len(raw) > RECORD_LINE_LIMIT_BYTES
                else "is cut: the file ends in it",
                number,
            )
        else:
            found = read_line(raw, number)
            if isinstance(found, Closing):
                _check_closing(found, digest.digest(), records, number)
                if source.read(1):
                    raise _damaged("stands behind the end", number + 1)
                yield found
                return
            records += 1
            yield found
        digest.update(raw)
    if number == 0:
        read_header(b"")
    raise _damaged("is missing: the end of the file was cut off", number + 1)


def _check_closing(closing: Closing, sha256: bytes, records: int, number: int) -> None:
    if closing.records != records:
        raise _damaged(f"says {closing.records} records, and there are {records}", number)
    if closing.sha256 != sha256:
        raise _damaged("the lines before it are not those that were written", number)


def _damaged(message: str, number: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        message,
        reason="EXPORT_DAMAGED",
        field=f"line {number}",
        fix="nothing was taken of it; export again",
    )
