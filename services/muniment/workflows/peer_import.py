"""Taking over the records of another program's store, and proving that they are here."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, PreconditionError
from muniment.kit.progress import Report
from muniment.v1 import records_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.peer_rows import LeftOut
from muniment.workflows.peer_store import PeerStore
from muniment.workflows.record_values import name_of, place_of
from muniment.workflows.records import export_records, import_records

__all__ = ["PeerRecords", "choose_tenant", "import_peer"]

_NAMED_TENANTS = 20
_NAMED_RECORDS = 10


def choose_tenant(store: PeerStore, wanted: str | None) -> str:
    """The tenant of the file whose records are meant: the one named, else the only one.

    Raises:
        InvalidArgumentError: There is none of that name, or none or several and no name.
    """
    there = list(store.tenants())
    if wanted is None and len(there) == 1:
        return there[0]
    if wanted in there:
        assert wanted is not None
        return wanted
    if not there:
        raise InvalidArgumentError(
            "the file has no records",
            reason="PEER_TENANT_UNKNOWN",
            field="file",
            fix="nothing needs to be imported",
        )
    more = f" and {len(there) - _NAMED_TENANTS} more" if len(there) > _NAMED_TENANTS else ""
    named = ", ".join(there[:_NAMED_TENANTS])
    raise InvalidArgumentError(
        "several tenants have records in the file"
        if wanted is None
        else f"the file has no tenant {wanted:.100}",
        reason="PEER_TENANT_UNKNOWN",
        field="--from-tenant",
        fix=f"name one of {named}{more}",
    )


@dataclass
class PeerRecords:
    """A tenant's records in the other program's store, looked through once."""

    store: PeerStore
    tenant: str
    counts: Counter[str] = field(default_factory=Counter)
    """By kind."""
    left_out: list[LeftOut] = field(default_factory=list)
    digests: dict[bytes, bytes] = field(default_factory=dict)
    """SHA-256 by name."""

    @classmethod
    def look_through(cls, store: PeerStore, tenant: str, report: Report) -> PeerRecords:
        """Read all rows of the tenant, and keep what has to be known of them."""
        found = cls(store, tenant)
        total = sum(store.tenants()[tenant].values())
        for done, one in enumerate(store.records(tenant), start=1):
            if isinstance(one, LeftOut):
                found.left_out.append(one)
            else:
                found.counts[one.WhichOneof("record") or ""] += 1
                found.digests[_name(one)] = _digest(one)
            report("reading", done, total)
        return found

    def __iter__(self) -> Iterator[records_pb2.Record]:
        """The records."""
        for one in self.store.records(self.tenant):
            if isinstance(one, records_pb2.Record):
                yield one


@dataclass(frozen=True)
class _Compared:
    verified: int
    different: list[records_pb2.RecordName]


async def import_peer(
    clients: Clients, context: CallContext, records: PeerRecords, report: Report, *, source: str
) -> tuple[records_pb2.ImportRecordsResponse, int]:
    """Take the records over, and read them back: what became of them, and how many are as there.

    Raises:
        PreconditionError: One is missing here afterwards, or is another, and nobody kept it so.
    """
    response = await import_records(clients, context, records, report, replace=False, source=source)
    compared = await _compare(clients, context, records, report)
    kept = {one.SerializeToString(deterministic=True) for one in response.kept}
    wrong = [
        one for one in compared.different if one.SerializeToString(deterministic=True) not in kept
    ]
    # Only so many of those that were kept are named.
    if len(wrong) > response.kept_total - len(kept):
        named = ", ".join(place_of(one) for one in wrong[:_NAMED_RECORDS])
        raise PreconditionError(
            f"{len(wrong)} records are not here as they are in the file: {named:.500}",
            reason="IMPORT_UNVERIFIED",
            fix="if nobody changed them meanwhile this is a defect; the file is as it was",
        )
    return response, compared.verified


async def _compare(
    clients: Clients, context: CallContext, records: PeerRecords, report: Report
) -> _Compared:
    left = dict(records.digests)
    different: list[records_pb2.RecordName] = []
    verified = 0

    def compare(record: records_pb2.Record) -> None:
        nonlocal verified
        wanted = left.pop(_name(record), None)
        if wanted is None:
            return
        if wanted == _digest(record):
            verified += 1
        else:
            different.append(name_of(record))

    def verifying(step: str, done: int, total: int) -> None:
        report("verifying", done, total)

    await export_records(clients, context, compare, verifying)
    missing = [records_pb2.RecordName.FromString(name) for name in left]
    return _Compared(verified, [*different, *missing])


def _name(record: records_pb2.Record) -> bytes:
    return name_of(record).SerializeToString(deterministic=True)


def _digest(record: records_pb2.Record) -> bytes:
    return hashlib.sha256(record.SerializeToString(deterministic=True)).digest()
