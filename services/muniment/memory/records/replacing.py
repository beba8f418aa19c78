"""Replacing a tenant's records by the next generation, in one step, with nothing lost.

What was written since the building began is carried over. A record that the import changed and
that was written meanwhile has two successors: that is a fork, and nothing is replaced.
"""

from __future__ import annotations

from muniment.kit.errors import PreconditionError, TamperedError
from muniment.kit.store import Reader, Writer
from muniment.kit.store.tables import REPLIES, REPLY_TIMES
from muniment.memory.records.archive import drop_archived
from muniment.memory.records.changes import read_changes, record_now
from muniment.memory.records.entities import find_entity, take_entity
from muniment.memory.records.importing import put_record
from muniment.memory.records.naming import kind_name
from muniment.memory.records.references import delete_reference
from muniment.memory.records.states import delete_state
from muniment.memory.records.tenants import Generation
from muniment.memory.records.totals import Cap
from muniment.v1 import records_pb2

__all__ = ["carry_over"]

_FORKS_NAMED = 10
_CHANGES_AT_ONCE = 1000

_Name = records_pb2.RecordName
_Before = records_pb2.Record | None


def carry_over(present: Generation, following: Generation, since: int) -> int:
    """Bring what was written behind a position into the next generation; how many records.

    Called on the present store's writer, so that nothing is written meanwhile. Outcomes of calls
    go along: who sends a call again is answered by the next generation.

    Raises:
        PreconditionError: A record was changed here and there; reason FORK.
        TamperedError: What changed cannot be told.
    """
    with present.store.read() as reader, following.store.read() as imported:
        wanted = _wanted(reader, imported, _changed(reader, since))

        def change(writer: Writer) -> int:
            for name, record in wanted:
                if record is None:
                    _drop(writer, name)
                else:
                    put_record(writer, Cap(None), record)
            _copy_outcomes(reader, writer)
            return len(wanted)

        return following.store.write(change, written_by="records import").result()


def _changed(reader: Reader, since: int) -> list[tuple[_Name, _Before]]:
    """The records that changed behind the position, and what each was there."""
    found: dict[bytes, tuple[_Name, _Before]] = {}
    at, end = since, reader.state().position
    while at < end:
        changes, at = read_changes(reader, at, _CHANGES_AT_ONCE)
        for change in changes:
            if not change.name.key:
                raise _fork(["an archived record was purged"])
            before = change.before if change.HasField("before") else None
            found.setdefault(change.name.SerializeToString(), (change.name, before))
    return list(found.values())


def _wanted(
    reader: Reader, imported: Reader, changed: list[tuple[_Name, _Before]]
) -> list[tuple[_Name, _Before]]:
    """What has to be written into the next generation, so that nothing is lost."""
    wanted: list[tuple[_Name, _Before]] = []
    forks: list[str] = []
    for name, before in changed:
        now, there = record_now(reader, name), record_now(imported, name)
        if now == there:
            continue
        if there == before:
            wanted.append((name, now))
        else:
            place = f"{name.category}/{name.key}" if name.category else name.key
            forks.append(f"{kind_name(name.kind)} {place:.200}")
    if forks:
        raise _fork(forks)
    return wanted


def _drop(writer: Writer, name: _Name) -> None:
    if name.kind == records_pb2.RECORD_KIND_ENTITY:
        stored = find_entity(writer, name.category, name.key)
        if stored is not None:
            take_entity(writer, stored)
    elif name.kind == records_pb2.RECORD_KIND_STATE:
        delete_state(writer, [name.key])
    elif name.kind == records_pb2.RECORD_KIND_REFERENCE:
        delete_reference(writer, [name.key])
    else:
        drop_archived(writer, name.key)


def _copy_outcomes(reader: Reader, writer: Writer) -> None:
    for key, outcome in reader.survey(REPLIES):
        if not isinstance(outcome, TamperedError):
            writer.put(REPLIES, *key, value=outcome)
    for key, time in reader.survey(REPLY_TIMES):
        if not isinstance(time, TamperedError):
            writer.put(REPLY_TIMES, *key, value=time)


def _fork(rows: list[str]) -> PreconditionError:
    named = "; ".join(rows[:_FORKS_NAMED])
    more = f" and {len(rows) - _FORKS_NAMED} more" if len(rows) > _FORKS_NAMED else ""
    return PreconditionError(
        f"changed here since the import began, and in what is imported: {named}{more}; nothing was"
        " replaced",
        reason="FORK",
        fix="import again, when nobody writes",
    )
