"""The index of snapshots: what is written of one before, when and after its file is.

A row is there before the server is asked to write, so that a file that a crash leaves behind is
known and removed, and it goes after the file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from muniment.kit.errors import NotFoundError, TamperedError
from muniment.kit.store import Reader, Writer
from muniment.slots.chains import TokenChain
from muniment.slots.failures import printable
from muniment.slots.limits import WORTH_KEPT
from muniment.slots.schema import CHAINS, SNAPSHOTS
from muniment.v1 import slots_pb2, store_pb2

__all__ = [
    "Indexed",
    "begin",
    "chain_of",
    "discard",
    "find",
    "find_by_name",
    "find_by_path",
    "finish",
    "home_mark",
    "leave",
    "leaving",
    "note_worth",
    "out_of_reach",
    "replace",
    "snapshots",
    "unfinished",
]


_HOME_DIGITS = 8


@dataclass(frozen=True)
class Indexed:
    """What can be listed."""

    rows: list[store_pb2.StoredSnapshot]
    """Newest first."""
    tampered: int


def home_mark(reader: Reader) -> str:
    """What stands in the names of files, so that homes which share a server do not share these."""
    return reader.state().incarnation[:_HOME_DIGITS]


def begin(writer: Writer, snapshot: slots_pb2.Snapshot, file_key: bytes) -> slots_pb2.Snapshot:
    """Note that this snapshot is about to be written, and give its file a name for the server.

    Such a name is used again: files that turn out to be out of reach are written over.
    """
    rows = list(_rows(writer))
    newest = max((row.order for row in rows), default=0)
    taken = {row.snapshot.file_name for row in rows}
    names = (f"muniment-{home_mark(writer)}-{number}.slot" for number in itertools.count(1))
    snapshot.file_name = next(name for name in names if name not in taken)
    row = store_pb2.StoredSnapshot(
        snapshot=snapshot,
        stage=store_pb2.SNAPSHOT_STAGE_BEGUN,
        file_key=file_key,
        order=newest + 1,
    )
    writer.put(SNAPSHOTS, snapshot.snapshot_id, value=row)
    return snapshot


def finish(writer: Writer, snapshot: slots_pb2.Snapshot, chain: TokenChain | None) -> None:
    """Note that its file is whole and on disk."""
    row = _required(writer, snapshot.snapshot_id)
    row.snapshot.CopyFrom(snapshot)
    row.stage = store_pb2.SNAPSHOT_STAGE_DONE
    writer.put(SNAPSHOTS, snapshot.snapshot_id, value=row)
    if chain is not None:
        writer.put(CHAINS, snapshot.snapshot_id, value=chain.to_row())


def replace(writer: Writer, snapshot: slots_pb2.Snapshot, file_key: bytes) -> None:
    """Note that another file stands for it now."""
    row = _required(writer, snapshot.snapshot_id)
    row.snapshot.CopyFrom(snapshot)
    row.file_key = file_key
    writer.put(SNAPSHOTS, snapshot.snapshot_id, value=row)


def leave(writer: Writer, snapshot_id: str, *, is_over: bool = False) -> store_pb2.StoredSnapshot:
    """Note that its file is about to be removed; nobody is shown it any more.

    `is_over` says that the server writes it no more, even if it never was whole.

    Raises:
        NotFoundError: There is no such snapshot.
    """
    row = _required(writer, snapshot_id, "snapshot_id")
    row.was_whole = row.was_whole or is_over or row.stage == store_pb2.SNAPSHOT_STAGE_DONE
    row.stage = store_pb2.SNAPSHOT_STAGE_LEAVING
    writer.put(SNAPSHOTS, snapshot_id, value=row)
    return row


def discard(writer: Writer, snapshot_id: str) -> None:
    """Forget it: its file is gone, or was never there."""
    if writer.has(SNAPSHOTS, snapshot_id):
        writer.delete(SNAPSHOTS, snapshot_id)
    if writer.has(CHAINS, snapshot_id):
        writer.delete(CHAINS, snapshot_id)


def note_worth(writer: Writer, snapshot_id: str, worth: slots_pb2.RestoreWorth) -> None:
    """Keep what a restore of it was worth, if it is still there."""
    row = writer.get(SNAPSHOTS, snapshot_id)
    if row is None:
        return
    row.snapshot.restore_worth.append(worth)
    del row.snapshot.restore_worth[:-WORTH_KEPT]
    writer.put(SNAPSHOTS, snapshot_id, value=row)


def find(reader: Reader, snapshot_id: str) -> store_pb2.StoredSnapshot:
    """The snapshot of that id.

    Raises:
        NotFoundError: There is none.
    """
    row = _required(reader, snapshot_id)
    if row.stage != store_pb2.SNAPSHOT_STAGE_DONE:
        raise _unknown(snapshot_id)
    return row


def find_by_name(reader: Reader, name: str) -> store_pb2.StoredSnapshot:
    """The newest snapshot whose file has that name.

    Raises:
        NotFoundError: There is none.
    """
    for row in snapshots(reader).rows:
        if row.snapshot.file_name == name:
            return row
    raise _unknown(name)


def find_by_path(reader: Reader, path: str) -> store_pb2.StoredSnapshot | None:
    """The snapshot that was kept at just that path, in our folder or a former one."""
    rows = snapshots(reader).rows
    return next((row for row in rows if path and row.snapshot.file_path == path), None)


def snapshots(reader: Reader) -> Indexed:
    """All finished snapshots."""
    rows, tampered = [], 0
    for _, value in reader.survey(SNAPSHOTS):
        if isinstance(value, TamperedError):
            tampered += 1
        elif value.stage == store_pb2.SNAPSHOT_STAGE_DONE:
            rows.append(value)
    return Indexed(sorted(rows, key=lambda row: -row.order), tampered)


def out_of_reach(reader: Reader, server: str) -> list[slots_pb2.Snapshot]:
    """Those of the server whose files stay where only it can reach them, newest first."""
    rows = [
        row
        for row in _rows(reader)
        if row.snapshot.place == slots_pb2.SNAPSHOT_PLACE_SERVER and row.snapshot.server == server
    ]
    return [row.snapshot for row in sorted(rows, key=lambda row: -row.order)]


def leaving(reader: Reader, snapshot_id: str) -> store_pb2.StoredSnapshot | None:
    """The snapshot, if its file is still to be removed."""
    row = reader.get(SNAPSHOTS, snapshot_id)
    return row if row is not None and row.stage == store_pb2.SNAPSHOT_STAGE_LEAVING else None


def unfinished(reader: Reader) -> list[store_pb2.StoredSnapshot]:
    """Those whose saving or removing a crash cut short."""
    return [row for row in _rows(reader) if row.stage != store_pb2.SNAPSHOT_STAGE_DONE]


def chain_of(reader: Reader, snapshot_id: str) -> TokenChain | None:
    """The chain of its tokens, where they are known and the row can be believed."""
    try:
        row = reader.get(CHAINS, snapshot_id)
    except TamperedError:
        return None
    return None if row is None else TokenChain.from_row(row)


def _rows(reader: Reader) -> Iterator[store_pb2.StoredSnapshot]:
    for _, value in reader.survey(SNAPSHOTS):
        if not isinstance(value, TamperedError):
            yield value


def _required(reader: Reader, snapshot_id: str, field: str = "path") -> store_pb2.StoredSnapshot:
    row = reader.get(SNAPSHOTS, snapshot_id)
    if row is None:
        raise _unknown(snapshot_id, field)
    return row


def _unknown(what: str, field: str = "path") -> NotFoundError:
    return NotFoundError(
        f"no snapshot is called {printable(what)}",
        reason="SNAPSHOT_UNKNOWN",
        field=field,
        fix="`muniment slots snapshots` lists those that there are",
    )
