"""Records on their way out and in: exports of one moment, imports with exact ids and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muniment.kit.errors import TamperedError
from muniment.kit.store import Writer
from muniment.memory.records.changes import all_records
from muniment.memory.records.importing import Taken, checked_record, take_record
from muniment.memory.records.limits import (
    EXPORT_PAGE_BYTES,
    EXPORT_PAGE_RECORDS,
    IMPORT_BATCH_RECORDS,
)
from muniment.memory.records.replacing import carry_over
from muniment.memory.records.tenants import Generation, ReplacedError, Tenants
from muniment.memory.records.totals import Cap
from muniment.v1 import records_pb2

__all__ = ["Import", "Replacement", "export_pages"]

_WRITTEN_BY = "records import"


def export_pages(present: Generation) -> list[records_pb2.ExportRecordsResponse]:
    """All records of one moment, in messages, and what they are of."""
    end = records_pb2.ExportEnd(tenant_id=present.tenant_id)
    size = 0
    with present.store.read() as reader:
        state = reader.state()
        end.incarnation, end.position = state.incarnation, state.position
        pages = [records_pb2.ExportRecordsResponse(end=end), records_pb2.ExportRecordsResponse()]
        for record in all_records(reader):
            if isinstance(record, TamperedError):
                end.tampered += 1
                continue
            size += record.ByteSize()
            full = len(pages[-1].records) == EXPORT_PAGE_RECORDS or size > EXPORT_PAGE_BYTES
            if full and pages[-1].records:
                pages.append(records_pb2.ExportRecordsResponse())
                size = record.ByteSize()
            pages[-1].records.append(record)
            end.records += 1
    pages.append(records_pb2.ExportRecordsResponse(end=end))
    return pages


class Import:
    """Takes records into the generation in force; those that are there stay."""

    def __init__(self, tenants: Tenants, present: Generation, cap: Cap) -> None:
        self._tenants = tenants
        self._present = present
        self._cap = cap
        self._told = Taken()

    def take(self, records: Iterable[records_pb2.Record]) -> None:
        """Take these records, in batches that are on disk when this returns.

        Raises:
            InvalidArgumentError: One of them cannot be kept; its batch was not taken.
            LimitError: The tenant's cap; the batch was not taken.
        """
        checked = [checked_record(record) for record in records]
        for start in range(0, len(checked), IMPORT_BATCH_RECORDS):
            self._told.add(self._take_batch(checked[start : start + IMPORT_BATCH_RECORDS]))

    def _take_batch(self, batch: Sequence[records_pb2.Record]) -> Taken:
        while True:
            target = self._target()

            def change(writer: Writer, target: Generation = target) -> Taken:
                target.require_in_force()
                told = Taken()
                for record in batch:
                    take_record(writer, self._cap, record, told)
                return told

            try:
                return target.store.write(change, written_by=_WRITTEN_BY).result()
            except ReplacedError:
                continue  # The batch is for the generation in force.

    def end(self) -> records_pb2.ImportRecordsResponse:
        """What became of the records."""
        return self._response(self._target().number)

    def give_up(self) -> None:
        """End without an outcome; what was taken stays."""

    def _target(self) -> Generation:
        return self._tenants.of(self._present.tenant_id)

    def _response(self, generation: int) -> records_pb2.ImportRecordsResponse:
        return records_pb2.ImportRecordsResponse(
            taken=dict(self._told.taken),
            same=self._told.same,
            kept=self._told.kept,
            kept_total=self._told.kept_total,
            generation=generation,
        )


class Replacement(Import):
    """Builds the next generation from records alone, and puts it in force at the end."""

    def __init__(self, tenants: Tenants, present: Generation, cap: Cap) -> None:
        super().__init__(tenants, present, cap)
        self._since = present.store.position
        self._following = tenants.begin_next(present)

    def end(self) -> records_pb2.ImportRecordsResponse:
        """Carry over what was written meanwhile, and replace the present generation.

        Raises:
            PreconditionError: A record was changed here and there (FORK); nothing was replaced.
        """

        def switch() -> int:
            carried = carry_over(self._present, self._following, self._since)
            self._tenants.put_in_force(self._present, self._following)
            return carried

        try:
            carried = self._present.store.between(switch).result()
        except BaseException:
            self.give_up()
            raise
        self._tenants.leave(self._present)
        response = self._response(self._following.number)
        response.carried_over = carried
        return response

    def give_up(self) -> None:
        """Remove what was built."""
        self._tenants.give_up(self._following)

    def _target(self) -> Generation:
        return self._following
