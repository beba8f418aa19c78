"""The slots contract over gRPC: translation, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc

from muniment.kit.counting import TOKENIZER, estimate_tokens
from muniment.kit.errors import InvalidArgumentError, MunimentError
from muniment.kit.interceptors import call_context
from muniment.kit.store import Store
from muniment.slots import snapshots
from muniment.slots.backend import Backend
from muniment.slots.backends import Backends
from muniment.slots.knowing import Knowledge
from muniment.slots.limits import COUNT_LIMIT_BYTES, COUNT_LIMIT_TEXTS, MESSAGES_LIMIT_BYTES
from muniment.slots.places import damage_of, kept_path
from muniment.slots.probing import LONG_WORDS, Prober
from muniment.slots.removing import Remover
from muniment.slots.restoring import Restorer
from muniment.slots.saving import Saver
from muniment.slots.told import ToldSlot
from muniment.v1 import maintenance_pb2, slots_pb2, slots_pb2_grpc

__all__ = ["SlotsServicer"]

_Call = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True)
class SlotsServicer(slots_pb2_grpc.SlotsServiceServicer):
    """Serves the contract for the servers of one home."""

    backends: Backends
    store: Store
    knowledge: Knowledge
    saver: Saver
    restorer: Restorer
    remover: Remover
    prober: Prober

    async def ListServers(
        self, request: slots_pb2.ListServersRequest, context: _Call
    ) -> slots_pb2.ListServersResponse:
        wanted = [self.backends.find(request.server)] if request.server else list(self.backends)
        described = await asyncio.gather(*(self._describe(one) for one in wanted))
        servers = [
            server
            for backend, server in zip(wanted, described, strict=True)
            if backend.address.is_configured or server.condition != _UNREACHABLE
        ]
        return slots_pb2.ListServersResponse(servers=servers)

    async def ListSlots(
        self, request: slots_pb2.ListSlotsRequest, context: _Call
    ) -> slots_pb2.ListSlotsResponse:
        backend = self.backends.find(request.server)
        await backend.ready()
        told = await backend.slots()
        return slots_pb2.ListSlotsResponse(
            server=backend.address.name, slots=[_slot(backend, one) for one in told]
        )

    async def ProbeServer(
        self, request: slots_pb2.ProbeServerRequest, context: _Call
    ) -> AsyncIterator[slots_pb2.ProbeServerResponse]:
        backend = self.backends.find(request.server)
        parts: asyncio.Queue[maintenance_pb2.Progress | None] = asyncio.Queue()

        def report(step: str, done: int, total: int) -> None:
            parts.put_nowait(maintenance_pb2.Progress(step=step, done=done, total=total))

        async def probe() -> None:
            try:
                await self.prober.probe(backend, LONG_WORDS, report)
            finally:
                parts.put_nowait(None)

        probing = asyncio.create_task(probe())
        try:
            while (part := await parts.get()) is not None:
                yield slots_pb2.ProbeServerResponse(progress=part)
            await probing
        finally:
            probing.cancel()
        yield slots_pb2.ProbeServerResponse(result=await self._describe(backend))

    async def CountTokens(
        self, request: slots_pb2.CountTokensRequest, context: _Call
    ) -> slots_pb2.CountTokensResponse:
        _check_texts(request)
        try:
            counted = await self._exact(request)
        except MunimentError as error:
            if request.exact:
                raise
            counts = await asyncio.to_thread(lambda: [estimate_tokens(t) for t in request.texts])
            return slots_pb2.CountTokensResponse(
                counts=counts, tokenizer=TOKENIZER, exact=False, note=error.message
            )
        return counted

    async def ApplyTemplate(
        self, request: slots_pb2.ApplyTemplateRequest, context: _Call
    ) -> slots_pb2.ApplyTemplateResponse:
        conversation = _conversation(request)
        backend = self.backends.find(request.server)
        await backend.ready_for_texts()
        prompt = await backend.server.apply_template(conversation)
        counted = await backend.tokens.count_prompt(prompt)
        return slots_pb2.ApplyTemplateResponse(
            prompt=prompt, count=counted.counts[0], tokenizer=counted.tokenizer
        )

    async def SaveSnapshot(
        self, request: slots_pb2.SaveSnapshotRequest, context: _Call
    ) -> slots_pb2.SaveSnapshotResponse:
        call = call_context()
        backend = self.backends.find(request.server)
        backend.book.claim(call.slot_id, call.session_id)
        # It goes on when the caller goes away, who asks again with the same key.
        saving = asyncio.ensure_future(self.saver.save(backend, call, request))
        response = await asyncio.shield(saving)
        told = slots_pb2.SaveSnapshotResponse()
        told.CopyFrom(response)
        # What is saved stays saved while the server is away.
        with suppress(MunimentError):
            found = await backend.ready()
            known = await self.knowledge.of(backend.address.name, found.subject)
            told.notes.append(known.restore_outlook())
        return told

    async def RestoreSnapshot(
        self, request: slots_pb2.RestoreSnapshotRequest, context: _Call
    ) -> slots_pb2.RestoreSnapshotResponse:
        call = call_context()
        named = self.backends.find(request.server)
        row = await asyncio.to_thread(self.restorer.find, request.path, self.backends.places(named))
        backend = self.backends.find(request.server or row.snapshot.server)
        restoring = asyncio.ensure_future(
            self.restorer.restore(backend, call, row.snapshot.snapshot_id)
        )
        response = await asyncio.shield(restoring)
        backend.book.claim(call.slot_id, call.session_id)
        return response

    async def ListSnapshots(
        self, request: slots_pb2.ListSnapshotsRequest, context: _Call
    ) -> slots_pb2.ListSnapshotsResponse:
        call = call_context()

        def read() -> slots_pb2.ListSnapshotsResponse:
            with self.store.read() as reader:
                indexed, doubts = snapshots.snapshots(reader), reader.doubts()
            response = slots_pb2.ListSnapshotsResponse(
                tampered_snapshots=indexed.tampered, doubts=doubts
            )
            for row in indexed.rows:
                one = row.snapshot
                if request.of_session and one.session_id != call.session_id:
                    continue
                if request.of_project and one.project_id != call.project_id:
                    continue
                response.snapshots.append(one)
                if (damage := self._damage(one)) is not None:
                    response.snapshots[-1].damage = damage
            return response

        return await asyncio.to_thread(read)

    async def DeleteSnapshot(
        self, request: slots_pb2.DeleteSnapshotRequest, context: _Call
    ) -> slots_pb2.DeleteSnapshotResponse:
        return await self.remover.remove_once(call_context(), request)

    def _damage(self, snapshot: slots_pb2.Snapshot) -> str | None:
        """What is wrong with its file, as far as that can be seen at once. Runs in a thread."""
        if snapshot.place == slots_pb2.SNAPSHOT_PLACE_FOLDER:
            path = kept_path(snapshot, self.backends.folder, self.store.path)
            if (damage := damage_of(path, snapshot.size_bytes)) is not None:
                return damage
        is_plain = self.store.protection.sealed and not snapshot.is_sealed
        return "lies in plain, though this home is sealed" if is_plain else None

    async def _describe(self, backend: Backend) -> slots_pb2.Server:
        is_usual = self.backends.is_usual(backend)
        server, found = await backend.describe(is_usual=is_usual)
        if found is not None:
            known = await self.knowledge.of(backend.address.name, found.subject)
            server.capabilities.extend(known.all_capabilities())
            server.restore_worth.extend(known.worth)
        return server

    async def _exact(self, request: slots_pb2.CountTokensRequest) -> slots_pb2.CountTokensResponse:
        backend = self.backends.find(request.server)
        await backend.ready_for_texts()
        counted = await backend.tokens.count(request.texts)
        return slots_pb2.CountTokensResponse(
            counts=counted.counts, tokenizer=counted.tokenizer, exact=True
        )


_UNREACHABLE = slots_pb2.SERVER_CONDITION_UNREACHABLE


def _slot(backend: Backend, told: ToldSlot) -> slots_pb2.Slot:
    return slots_pb2.Slot(
        slot_id=told.slot_id,
        context_tokens=told.context_tokens,
        is_busy=told.is_busy,
        session_id=backend.book.session_of(told.slot_id),
        prompt_tokens=told.prompt_tokens,
        reused_tokens=told.reused_tokens if told.is_busy else None,
        evaluated_tokens=told.evaluated_tokens if told.is_busy else None,
        content=backend.book.content_of(told),
    )


def _check_texts(request: slots_pb2.CountTokensRequest) -> None:
    size = sum(len(text.encode()) for text in request.texts)
    for unit, amount, limit in (
        ("texts", len(request.texts), COUNT_LIMIT_TEXTS),
        ("bytes", size, COUNT_LIMIT_BYTES),
    ):
        if amount > limit:
            raise InvalidArgumentError(
                f"has {amount} {unit}, more than {limit}",
                reason="TEXTS_TOO_MANY",
                field="texts",
                fix="ask in parts",
            )


def _conversation(request: slots_pb2.ApplyTemplateRequest) -> dict[str, Any]:
    """The request for the server, with what it is made of checked as far as its shape goes."""
    conversation: dict[str, Any] = {"messages": _array("messages_json", request.messages_json)}
    if request.HasField("tools_json"):
        conversation["tools"] = _array("tools_json", request.tools_json)
    return conversation


def _array(name: str, text: str) -> list[Any]:
    try:
        value = json.loads(text) if len(text) <= MESSAGES_LIMIT_BYTES else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidArgumentError(
            f"is no JSON array of objects of at most {MESSAGES_LIMIT_BYTES} bytes",
            reason="MESSAGES_INVALID",
            field=name,
            fix='write it as [{"role": "user", "content": "..."}]',
        )
    return value
