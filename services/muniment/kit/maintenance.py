"""The maintenance contract over gRPC, for every service that has a store.

The work runs in a thread of its own, one piece at a time, and ends when its caller goes away.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc

from muniment.kit.interceptors import call_context
from muniment.kit.progress import Report
from muniment.kit.store import Store
from muniment.kit.store.backup import backup_store
from muniment.kit.store.verify import DomainChecks, verify_store
from muniment.v1 import maintenance_pb2, maintenance_pb2_grpc

__all__ = ["Keeping", "MaintenanceServicer"]

_REST_SECONDS = 0.0005
"""How long work rests at each report, so that the calls of others get their turn."""

T = TypeVar("T")
_Call = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True)
class Keeping:
    """A store, and what is known of it."""

    name: str
    """What its backups are called by."""
    store: Store
    checks: DomainChecks
    rebuild_index: Callable[[Report], int]
    """Makes the index anew, and says how many documents it has then."""


class MaintenanceServicer(maintenance_pb2_grpc.MaintenanceServiceServicer):
    """Serves the contract from a service's stores, with what the service knows of them."""

    def __init__(self, keeping: Callable[[str], Keeping]) -> None:
        """`keeping` gives the store of a tenant; that of the service itself for the empty name."""
        self._keeping = keeping
        self._turn = asyncio.Lock()

    async def VerifyStore(
        self, request: maintenance_pb2.VerifyStoreRequest, context: _Call
    ) -> AsyncIterator[maintenance_pb2.VerifyStoreResponse]:
        kept = await self._kept()
        work = self._work(lambda report: verify_store(kept.store, kept.checks, report))
        async for part in work:
            if isinstance(part, maintenance_pb2.Progress):
                yield maintenance_pb2.VerifyStoreResponse(progress=part)
                continue
            for finding in part.findings.listed:
                yield maintenance_pb2.VerifyStoreResponse(finding=finding)
            result = maintenance_pb2.VerifyResult(
                incarnation=part.state.incarnation,
                position=part.state.position,
                rows=part.rows,
                changes=part.changes,
                findings=part.findings.total,
            )
            yield maintenance_pb2.VerifyStoreResponse(result=result)

    async def RebuildIndex(
        self, request: maintenance_pb2.RebuildIndexRequest, context: _Call
    ) -> AsyncIterator[maintenance_pb2.RebuildIndexResponse]:
        kept = await self._kept()
        async for part in self._work(kept.rebuild_index):
            if isinstance(part, maintenance_pb2.Progress):
                yield maintenance_pb2.RebuildIndexResponse(progress=part)
            else:
                result = maintenance_pb2.RebuildIndexResult(documents=part)
                yield maintenance_pb2.RebuildIndexResponse(result=result)

    async def BackupStore(
        self, request: maintenance_pb2.BackupStoreRequest, context: _Call
    ) -> AsyncIterator[maintenance_pb2.BackupStoreResponse]:
        target, kept = Path(request.target_folder), await self._kept()
        work = self._work(lambda report: backup_store(kept.store, kept.name, target, report))
        async for part in work:
            if isinstance(part, maintenance_pb2.Progress):
                yield maintenance_pb2.BackupStoreResponse(progress=part)
            else:
                result = maintenance_pb2.BackupStoreResult(
                    folder=str(target),
                    incarnation=part.incarnation,
                    position=part.position,
                    size_bytes=part.size_bytes,
                    key_id=part.key_id,
                )
                yield maintenance_pb2.BackupStoreResponse(result=result)

    async def _kept(self) -> Keeping:
        return await asyncio.to_thread(self._keeping, call_context().tenant_id)

    async def _work(
        self, work: Callable[[Report], T]
    ) -> AsyncIterator[T | maintenance_pb2.Progress]:
        """What the work reports, and at last what came of it."""
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[maintenance_pb2.Progress | None] = asyncio.Queue()
        left = threading.Event()

        def report(step: str, done: int, total: int) -> None:
            if left.wait(_REST_SECONDS):
                raise _CallerLeftError
            progress = maintenance_pb2.Progress(step=step, done=done, total=total)
            loop.call_soon_threadsafe(parts.put_nowait, progress)

        def run() -> T:
            try:
                return work(report)
            finally:
                loop.call_soon_threadsafe(parts.put_nowait, None)

        async with self._turn:
            task = asyncio.ensure_future(asyncio.to_thread(run))
            try:
                while (part := await parts.get()) is not None:
                    yield part
                yield await task
            finally:
                left.set()
                with suppress(_CallerLeftError):
                    await task


class _CallerLeftError(Exception):
    """Nobody waits for the work any more."""
