"""The records contract over gRPC: translation, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from muniment.kit import faults
from muniment.kit.bursts import Bursts
from muniment.kit.clock import Clock
from muniment.kit.errors import NotFoundError, UnavailableError
from muniment.kit.interceptors import call_context
from muniment.kit.store import Once, Reader, Writer
from muniment.memory.records import (
    archive,
    bodies,
    changes,
    entities,
    indexing,
    journal,
    references,
    searching,
    states,
    transfer,
)
from muniment.memory.records.identifiers import check_identifier, kept_key, spellings
from muniment.memory.records.limits import CHANGES_PAGE
from muniment.memory.records.schema import REFERENCES, STATES
from muniment.memory.records.tenants import Generation, ReplacedError, Tenants
from muniment.memory.records.totals import Cap, read_totals
from muniment.memory.records.writing import Stamp
from muniment.v1 import records_pb2 as pb
from muniment.v1 import records_pb2_grpc

__all__ = ["RecordsServicer"]

R = TypeVar("R", bound=Message)
T = TypeVar("T")
_Call = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True)
class RecordsServicer(records_pb2_grpc.RecordsServiceServicer):
    """Serves the contract from the tenants' stores."""

    tenants: Tenants
    cap: Cap
    clock: Clock
    stamp: Stamp
    readers: Executor
    """Threads for what reads."""
    bursts: Bursts = field(default_factory=Bursts, kw_only=True)
    """Through which the writers' answers come."""

    async def Remember(self, request: pb.RememberRequest, context: _Call) -> pb.RememberResponse:
        wanted = entities.Wanted(
            check_identifier("category", request.category),
            check_identifier("name", request.name),
            bodies.kept_body("body", request.body_json),
            request.status if request.HasField("status") else None,
        )
        as_given = request.category, request.name

        def change(writer: Writer) -> pb.RememberResponse:
            kept = entities.as_kept(writer, wanted, as_given)
            record_id, created = entities.remember(writer, self.cap, self.stamp, kept)
            return pb.RememberResponse(id=record_id, created=created)

        return await self._mutate(request, pb.RememberResponse, change)

    async def RecallEntity(
        self, request: pb.RecallEntityRequest, context: _Call
    ) -> pb.RecallEntityResponse:
        categories, names = spellings(request.category), spellings(request.name)
        stored = await self._read(lambda reader: entities.known_entity(reader, categories, names))
        return pb.RecallEntityResponse(entity=stored.entity)

    async def ListEntities(
        self, request: pb.ListEntitiesRequest, context: _Call
    ) -> pb.ListEntitiesResponse:
        return await self._read(lambda reader: entities.list_entities(reader, request))

    async def Forget(self, request: pb.ForgetRequest, context: _Call) -> pb.ForgetResponse:
        categories, names = spellings(request.category), spellings(request.name)
        reason = None
        if request.HasField("reason"):
            reason = bodies.check_size("reason", request.reason)
        return await self._mutate(
            request,
            pb.ForgetResponse,
            lambda writer: archive.forget(writer, self.stamp, categories, names, reason),
        )

    async def ListArchive(
        self, request: pb.ListArchiveRequest, context: _Call
    ) -> pb.ListArchiveResponse:
        return await self._read(lambda reader: archive.list_archive(reader, request))

    async def RestoreArchived(
        self, request: pb.RestoreArchivedRequest, context: _Call
    ) -> pb.RestoreArchivedResponse:
        def change(writer: Writer) -> pb.RestoreArchivedResponse:
            entity = archive.restore_archived(writer, self.cap, request.archive_id)
            return pb.RestoreArchivedResponse(
                id=entity.id, category=entity.category, name=entity.name
            )

        return await self._mutate(request, pb.RestoreArchivedResponse, change)

    async def PurgeArchived(
        self, request: pb.PurgeArchivedRequest, context: _Call
    ) -> pb.PurgeArchivedResponse:
        told, present = pb.PurgeArchivedResponse(), await self._present()
        seen: tuple[list[int], int] = [], 0
        # The feed is long, so that it is looked through before anybody has to wait. Where the
        # entity is gone, this may be the same call again.
        with suppress(NotFoundError):
            seen = await self._read(
                lambda reader: archive.values_in_feed(reader, request.archive_id, 0)
            )

        def change(writer: Writer) -> pb.PurgeArchivedResponse:
            since, _ = archive.values_in_feed(writer, request.archive_id, seen[1])
            gone = archive.purge_archived(writer, request.archive_id, [*seen[0], *since]).entity
            told.category, told.name = gone.category, gone.name
            if present.dense is not None:
                present.dense.forget(writer, indexing.entity_text(gone))
            # The outcome is kept for a day, and the names are to be gone now.
            return pb.PurgeArchivedResponse()

        await self._mutate(request, pb.PurgeArchivedResponse, change)
        await asyncio.to_thread(self._forget_files)
        return told

    async def SetState(self, request: pb.SetStateRequest, context: _Call) -> pb.SetStateResponse:
        key = check_identifier("key", request.key)
        body = bodies.kept_body("body", request.body_json)

        def change(writer: Writer) -> pb.SetStateResponse:
            document = pb.StateDocument(
                key=kept_key(writer, STATES, request.key, key),
                body_json=body,
                updated_at=self.stamp.now(),
            )
            return pb.SetStateResponse(created=states.put_state(writer, self.cap, document))

        return await self._mutate(request, pb.SetStateResponse, change)

    async def GetState(self, request: pb.GetStateRequest, context: _Call) -> pb.GetStateResponse:
        keys = spellings(request.key)
        found = await self._read(lambda reader: states.known_state(reader, keys))
        return pb.GetStateResponse(state=found)

    async def ListStates(
        self, request: pb.ListStatesRequest, context: _Call
    ) -> pb.ListStatesResponse:
        return await self._read(states.list_states)

    async def DeleteState(
        self, request: pb.DeleteStateRequest, context: _Call
    ) -> pb.DeleteStateResponse:
        def change(writer: Writer) -> pb.DeleteStateResponse:
            states.delete_state(writer, spellings(request.key))
            return pb.DeleteStateResponse()

        return await self._mutate(request, pb.DeleteStateResponse, change)

    async def PutReference(
        self, request: pb.PutReferenceRequest, context: _Call
    ) -> pb.PutReferenceResponse:
        key = check_identifier("key", request.key)
        document = pb.ReferenceDocument(
            body=bodies.check_size("body", request.body),
            metadata_json=bodies.kept_object("metadata", request.metadata_json or "{}"),
        )

        def change(writer: Writer) -> pb.PutReferenceResponse:
            document.key = kept_key(writer, REFERENCES, request.key, key)
            document.updated_at.CopyFrom(self.stamp.now())
            created = references.put_reference(writer, self.cap, document)
            return pb.PutReferenceResponse(created=created)

        return await self._mutate(request, pb.PutReferenceResponse, change)

    async def GetReference(
        self, request: pb.GetReferenceRequest, context: _Call
    ) -> pb.GetReferenceResponse:
        keys = spellings(request.key)
        found = await self._read(lambda reader: references.known_reference(reader, keys))
        return pb.GetReferenceResponse(reference=found)

    async def ListReferences(
        self, request: pb.ListReferencesRequest, context: _Call
    ) -> pb.ListReferencesResponse:
        return await self._read(references.list_references)

    async def DeleteReference(
        self, request: pb.DeleteReferenceRequest, context: _Call
    ) -> pb.DeleteReferenceResponse:
        def change(writer: Writer) -> pb.DeleteReferenceResponse:
            references.delete_reference(writer, spellings(request.key))
            return pb.DeleteReferenceResponse()

        return await self._mutate(request, pb.DeleteReferenceResponse, change)

    async def RecordEvent(
        self, request: pb.RecordEventRequest, context: _Call
    ) -> pb.RecordEventResponse:
        body = bodies.parsed_object("body", request.body_json)
        category = request.category if request.HasField("category") else None
        name = request.name if request.HasField("name") else None

        def change(writer: Writer) -> pb.RecordEventResponse:
            event = journal.new_event(self.stamp, request.kind, body, category, name)
            journal.put_event(writer, self.cap, event)
            return pb.RecordEventResponse(event_id=event.id)

        return await self._mutate(request, pb.RecordEventResponse, change)

    async def ReadJournal(
        self, request: pb.ReadJournalRequest, context: _Call
    ) -> pb.ReadJournalResponse:
        return await self._read(lambda reader: journal.read_journal(reader, request))

    async def SearchRecords(
        self, request: pb.SearchRecordsRequest, context: _Call
    ) -> pb.SearchRecordsResponse:
        present = await self._present()
        return await self._read(lambda reader: searching.search(reader, present, request), present)

    async def ReadChanges(
        self, request: pb.ReadChangesRequest, context: _Call
    ) -> AsyncIterator[pb.ReadChangesResponse]:
        present = await self._present()
        after, left = request.after_position, request.limit or None
        is_first = True
        while left != 0:
            size = CHANGES_PAGE if left is None else min(CHANGES_PAGE, left)
            page = partial(changes.read_changes, after=after, limit=size)
            found, position = await self._read(page, present)
            if position == after and not is_first:
                return
            for part, reached in changes.in_messages(found, position):
                yield pb.ReadChangesResponse(
                    changes=part,
                    position=reached,
                    incarnation=present.store.incarnation,
                    generation=present.number,
                )
            if position == after:
                return
            left = None if left is None else left - (position - after)
            after, is_first = position, False

    async def ReadRecordAt(
        self, request: pb.ReadRecordAtRequest, context: _Call
    ) -> pb.ReadRecordAtResponse:
        found = await self._read(
            lambda reader: changes.record_at(reader, request.name, request.position)
        )
        return pb.ReadRecordAtResponse(record=found)

    async def ExportRecords(
        self, request: pb.ExportRecordsRequest, context: _Call
    ) -> AsyncIterator[pb.ExportRecordsResponse]:
        present = await self._present()
        pages = await asyncio.to_thread(transfer.export_pages, present)
        for page in pages:
            yield page

    async def ImportRecords(
        self, request_iterator: AsyncIterator[pb.ImportRecordsRequest], context: _Call
    ) -> pb.ImportRecordsResponse:
        present = await self._opened(call_context().tenant_id)
        taking: transfer.Import | None = None
        try:
            async for part in request_iterator:
                if taking is None:
                    replace = part.header.replace
                    make = transfer.Replacement if replace else transfer.Import
                    taking = await asyncio.to_thread(make, self.tenants, present, self.cap)
                await asyncio.to_thread(taking.take, part.records)
            taking = taking or transfer.Import(self.tenants, present, self.cap)
            ending, taking = taking, None
            return await asyncio.to_thread(ending.end)
        finally:
            if taking is not None:
                await asyncio.to_thread(taking.give_up)

    async def GetRecordsStats(
        self, request: pb.GetRecordsStatsRequest, context: _Call
    ) -> pb.GetRecordsStatsResponse:
        present = await self._present()

        def look(reader: Reader) -> pb.GetRecordsStatsResponse:
            totals = read_totals(reader)
            return pb.GetRecordsStatsResponse(
                tenant_id=present.tenant_id,
                entities=totals.entities,
                states=totals.states,
                references=totals.references,
                events=totals.events,
                archived=totals.archived,
                used_bytes=totals.used_bytes,
                cap_bytes=self.cap.limit_bytes,
                generation=present.number,
                store=pb.StoreAccount(
                    path=str(present.store.path),
                    incarnation=present.store.incarnation,
                    position=present.store.position,
                    size_bytes=present.store.size_bytes(),
                ),
                dense=_dense_account(present),
                doubts=reader.doubts(),
            )

        return await self._read(look, present)

    async def ListTenants(
        self, request: pb.ListTenantsRequest, context: _Call
    ) -> pb.ListTenantsResponse:
        return pb.ListTenantsResponse(
            tenants=[
                pb.TenantDescription(
                    tenant_id=one.tenant_id, generation=one.number, path=str(one.folder)
                )
                for one in self.tenants.all()
            ],
            unopened=[
                pb.UnopenedRecords(path=str(folder), trouble=trouble)
                for folder, trouble in self.tenants.unopened().items()
            ],
        )

    def _forget_files(self) -> None:
        """Leave no file with what was deleted: no free page, and nothing that was replaced."""
        present = self.tenants.of(call_context().tenant_id)
        present.store.compact(lambda step, done, total: None)
        present.rebuild_index(lambda step, done, total: None)
        self.tenants.remove_replaced(present)

    async def _present(self) -> Generation:
        """What the call reads; in a thread, since it may have to be opened."""
        return await asyncio.get_running_loop().run_in_executor(
            self.readers, self.tenants.find, call_context().tenant_id
        )

    async def _mutate(
        self, request: Message, response_type: type[R], change: Callable[[Writer], R]
    ) -> R:
        context = call_context()
        while True:
            present = await self._opened(context.tenant_id)
            once = Once(context, request, response_type, change, self.clock)

            def run(writer: Writer, present: Generation = present, once: Once[R] = once) -> R:
                present.require_in_force()
                return once.run(writer)

            future = present.store.write(
                run,
                written_by=f"{context.caller} {request.DESCRIPTOR.full_name}",
                remember=once.remember,
            )
            try:
                response = await self.bursts.outcome(future)
            except ReplacedError:
                continue  # The same call is for the generation in force.
            faults.reach("records.before_reply")
            return response

    async def _opened(self, tenant_id: str) -> Generation:
        return await asyncio.get_running_loop().run_in_executor(
            self.readers, self.tenants.of, tenant_id
        )

    async def _read(self, look: Callable[[Reader], T], present: Generation | None = None) -> T:
        tenant_id = call_context().tenant_id

        def run() -> T:
            with (present or self.tenants.find(tenant_id)).store.read() as reader:
                return look(reader)

        return await asyncio.get_running_loop().run_in_executor(self.readers, run)


def _dense_account(present: Generation) -> pb.DenseAccount:
    dense = present.dense
    if dense is None:
        return pb.DenseAccount()
    told = pb.DenseAccount(
        model=dense.model, waiting=dense.follower.waiting(), trouble=dense.follower.trouble
    )
    try:
        told.vectors = dense.vectors
    except UnavailableError as error:
        told.trouble = told.trouble or str(error)
    return told
