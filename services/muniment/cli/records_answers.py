"""What the memory answers about records, as plain values that print and turn into JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from muniment.cli.answers import memory_clients
from muniment.cli.records_told import (
    Answer,
    archived_told,
    change_told,
    entity_told,
    event_told,
    hit_told,
    listed_told,
    record_told,
    reference_told,
    state_told,
    time_told,
    verdict_told,
    warnings_of,
)
from muniment.kit.channels import BULK_SECONDS, READ_SECONDS, WRITE_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.errors import NotFoundError
from muniment.kit.names import check_name
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.v1 import records_pb2 as pb
from muniment.workflows.clients import Clients
from muniment.workflows.records import ask, read_changes

__all__ = ["ENTITIES_LISTED", "KINDS", "STATES_LISTED", "Page", "Records", "list_tenants"]

ENTITIES_LISTED = "`muniment records list` shows what there is"
STATES_LISTED = "`muniment records states` shows what there is"

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
_Rpc = Callable[[Clients], "grpc.aio.UnaryUnaryMultiCallable[Request, Response]"]

_Part = tuple[list[Answer], int, int | None]
"""Of a page: what is on it, how many rows cannot be believed, and where the next begins."""
_Paging = Callable[[Clients, int, int | None], Awaitable[_Part]]

KINDS = {
    "entity": pb.RECORD_KIND_ENTITY,
    "state": pb.RECORD_KIND_STATE,
    "reference": pb.RECORD_KIND_REFERENCE,
    "journal": pb.RECORD_KIND_JOURNAL,
    "archive": pb.RECORD_KIND_ARCHIVE,
}

_PAGE = 200
_SHOWN_CHARACTERS = 3000
"""What lists and hits have of a body, at most."""


@dataclass(frozen=True)
class Page:
    """What was listed, and what there is besides."""

    told: list[Answer]
    warnings: list[str]
    more: int | None = None
    """How many were not asked for; None where that is not known, and some are."""


@dataclass(frozen=True)
class Records:
    """Asks the memory of a home about a tenant's records."""

    home: Home
    tenant_id: str

    @classmethod
    def of(cls, home: Home, tenant: str | None) -> Records:
        """About those of that tenant, or of the one that the settings name.

        Raises:
            InvalidArgumentError: It is no name.
            PreconditionError: The settings cannot be read.
        """
        if not tenant:
            from muniment.kit.settings import load_settings  # Takes half a second.

            tenant = load_settings(home).tenant
        return cls(home, check_name("--tenant", tenant))

    @property
    def context(self) -> CallContext:
        """The context of one call that writes, or of any that read."""
        return CallContext(
            tenant_id=self.tenant_id,
            caller="cli",
            idempotency_key=f"cli-{SystemRandomness().token(16).hex()}",
        )

    async def ask(
        self,
        rpc: _Rpc[Request, Response],
        request: Request,
        seconds: float = WRITE_SECONDS,
        *,
        where: str | None = None,
    ) -> Response:
        """One call; `where` says where to look for what it does not find."""
        async with memory_clients(self.home) as clients:
            try:
                return await ask(
                    clients, self.context, rpc(clients), request, deadline_seconds=seconds
                )
            except NotFoundError as error:
                raise NotFoundError(
                    error.message, reason="RECORD_UNKNOWN", fix=error.fix or where
                ) from error

    # --- Entities and the archive

    async def recall(self, category: str, name: str) -> Answer:
        """An entity."""
        request = pb.RecallEntityRequest(category=category, name=name)
        response = await self.ask(
            lambda to: to.records.RecallEntity, request, READ_SECONDS, where=ENTITIES_LISTED
        )
        return entity_told(response.entity)

    async def entities(self, category: str | None, limit: int) -> Page:
        """Entities with the beginning of their bodies; all for limit 0."""
        told: list[Answer] = []
        total = tampered = 0
        doubts: list[str] = []
        cursor: int | None = None
        async with memory_clients(self.home) as clients:
            while True:
                left = limit - len(told) if limit else _PAGE
                request = pb.ListEntitiesRequest(
                    category=category,
                    limit=min(left, _PAGE),
                    cursor=cursor,
                    body_limit_characters=_SHOWN_CHARACTERS,
                )
                page = await ask(clients, self.context, clients.records.ListEntities, request)
                told += [listed_told(one) for one in page.entities]
                total, doubts = page.total, list(page.doubts)
                tampered += page.tampered
                cursor = page.next_cursor
                if not page.HasField("next_cursor") or 0 < limit <= len(told):
                    break
        more = max(0, total - len(told)) if limit else 0
        return Page(told, warnings_of(tampered, doubts), more)

    async def archive(self, category: str | None, limit: int) -> Page:
        """Entities that were forgotten, whole; all for limit 0."""

        async def page(clients: Clients, size: int, cursor: int | None) -> _Part:
            request = pb.ListArchiveRequest(category=category, limit=size, cursor=cursor)
            got = await ask(clients, self.context, clients.records.ListArchive, request)
            told = [archived_told(one) for one in got.archived]
            return told, got.tampered, got.next_cursor if got.HasField("next_cursor") else None

        return await self._pages(page, limit)

    async def archived(self, archive_id: str) -> Answer:
        """An archived entity.

        Raises:
            NotFoundError: The archive has none of that id.
        """
        stats = await self.ask(
            lambda to: to.records.GetRecordsStats, pb.GetRecordsStatsRequest(), READ_SECONDS
        )
        name = pb.RecordName(kind=pb.RECORD_KIND_ARCHIVE, key=archive_id)
        found = await self.record_at(name, stats.store.position)
        if found is None:
            raise NotFoundError(
                f"the archive has no {archive_id:.100}",
                reason="RECORD_UNKNOWN",
                field="archive_id",
                fix="`muniment records archive` lists what there is",
            )
        return found

    # --- Documents

    async def state(self, key: str) -> Answer:
        """A state document."""
        response = await self.ask(
            lambda to: to.records.GetState,
            pb.GetStateRequest(key=key),
            READ_SECONDS,
            where=STATES_LISTED,
        )
        return state_told(response.state)

    async def states(self) -> Page:
        """Keys of the state documents."""
        response = await self.ask(lambda to: to.records.ListStates, pb.ListStatesRequest())
        told = [{"key": one.key} | time_told(one, "updated_at") for one in response.states]
        return Page(told, warnings_of(response.tampered, ()), 0)

    async def reference(self, key: str) -> Answer:
        """A reference document."""
        request = pb.GetReferenceRequest(key=key)
        response = await self.ask(lambda to: to.records.GetReference, request, READ_SECONDS)
        return reference_told(response.reference)

    async def references(self) -> Page:
        """Reference documents without their texts."""
        response = await self.ask(lambda to: to.records.ListReferences, pb.ListReferencesRequest())
        told = []
        for one in response.references:
            answer = reference_told(one)
            del answer["body"]
            told.append(answer)
        return Page(told, warnings_of(response.tampered, ()), 0)

    # --- What happened

    async def journal(
        self, category: str | None, name: str | None, kind: str | None, limit: int
    ) -> Page:
        """Events, newest first; all for limit 0."""

        async def page(clients: Clients, size: int, cursor: int | None) -> _Part:
            request = pb.ReadJournalRequest(
                category=category, name=name, kind=kind, limit=size, cursor=cursor
            )
            got = await ask(clients, self.context, clients.records.ReadJournal, request)
            told = [event_told(one) for one in got.events]
            return told, got.tampered, got.next_cursor if got.HasField("next_cursor") else None

        return await self._pages(page, limit)

    async def changes(self, after: int, limit: int) -> tuple[list[Answer], int]:
        """What changed behind the position, and where to go on; all for limit 0."""
        told: list[Answer] = []
        position = after
        async with memory_clients(self.home) as clients:
            async for page in read_changes(clients, self.context, after, limit):
                told += [change_told(one) for one in page.changes]
                position = page.position
        return told, position

    async def record_at(self, name: pb.RecordName, position: int) -> Answer | None:
        """The record as it was there; None where there was none."""
        request = pb.ReadRecordAtRequest(name=name, position=position)
        response = await self.ask(lambda to: to.records.ReadRecordAt, request, BULK_SECONDS)
        return record_told(response.record) if response.HasField("record") else None

    # --- Search, counts

    async def search(self, query: str, limit: int, tiers: list[str]) -> tuple[Answer, int]:
        """What a search brings and its verdict; and how many rows cannot be believed."""
        request = pb.SearchRecordsRequest(
            query=query,
            limit=limit,
            kinds=[KINDS[name] for name in tiers],
            raw=bool(tiers),
            body_limit_characters=_SHOWN_CHARACTERS,
        )
        response = await self.ask(lambda to: to.records.SearchRecords, request, READ_SECONDS)
        returned = len(response.hits)
        return {
            "query": query,
            "count": returned,
            "total": response.total,
            "results": [hit_told(one) for one in response.hits],
            "verdict": verdict_told(response.verdict, returned, response.total),
        }, response.tampered

    async def stats(self) -> Answer:
        """Counts and state of the tenant's store."""
        told = await self.ask(
            lambda to: to.records.GetRecordsStats, pb.GetRecordsStatsRequest(), READ_SECONDS
        )
        counts = ("entities", "states", "references", "events", "archived", "used_bytes")
        answer: Answer = {"tenant": told.tenant_id}
        answer |= {name: getattr(told, name) for name in counts}
        answer["cap_bytes"] = told.cap_bytes if told.HasField("cap_bytes") else None
        answer["generation"] = told.generation
        answer["store"] = {
            "path": told.store.path,
            "incarnation": told.store.incarnation,
            "position": told.store.position,
            "size_bytes": told.store.size_bytes,
        }
        answer["dense"] = {
            "model": told.dense.model or None,
            "vectors": told.dense.vectors,
            "waiting": told.dense.waiting,
        }
        if told.dense.trouble:
            answer["dense"]["trouble"] = told.dense.trouble
        if told.doubts:
            answer["doubts"] = list(told.doubts)
        return answer

    async def _pages(self, page: _Paging, limit: int) -> Page:
        told: list[Answer] = []
        tampered, cursor = 0, None
        async with memory_clients(self.home) as clients:
            while True:
                size = min(limit - len(told), _PAGE) if limit else _PAGE
                part, failed, cursor = await page(clients, size, cursor)
                told += part
                tampered += failed
                if cursor is None or 0 < limit <= len(told):
                    break
        return Page(told, warnings_of(tampered, ()), 0 if cursor is None else None)


async def list_tenants(home: Home) -> list[Answer]:
    """The tenants that have records."""
    async with memory_clients(home) as clients:
        response = await ask(
            clients,
            CallContext(caller="cli"),
            clients.records.ListTenants,
            pb.ListTenantsRequest(),
            deadline_seconds=READ_SECONDS,
        )
    return [
        {"tenant": one.tenant_id, "generation": one.generation, "path": one.path}
        for one in response.tenants
    ]
