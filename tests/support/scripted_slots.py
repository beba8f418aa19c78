"""Somebody who speaks the slots contract and says what the test tells it to.

For what no server can be brought to say at will; all else is tested with the real service.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf.message import Message

from muniment.kit.context import CallContext
from muniment.kit.interceptors import call_context
from muniment.v1 import slots_pb2, slots_pb2_grpc

__all__ = ["ScriptedSlots"]

_Call = grpc.aio.ServicerContext[Any, Any]


class ScriptedSlots(slots_pb2_grpc.SlotsServiceServicer):
    """Answers each call by its name, and remembers who asked what."""

    def __init__(self, **answers: Message | Exception) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Message, CallContext]] = []
        self.may_answer = asyncio.Event()
        """A test that clears it holds the calls."""
        self.may_answer.set()
        self.has_begun = asyncio.Event()

    async def ListServers(self, request: slots_pb2.ListServersRequest, context: _Call) -> Any:
        return await self._answer("ListServers", request)

    async def ListSlots(self, request: slots_pb2.ListSlotsRequest, context: _Call) -> Any:
        return await self._answer("ListSlots", request)

    async def ProbeServer(
        self, request: slots_pb2.ProbeServerRequest, context: _Call
    ) -> AsyncIterator[slots_pb2.ProbeServerResponse]:
        step = slots_pb2.ProbeServerResponse()
        step.progress.step, step.progress.total = "evaluating a prompt", 5
        yield step
        found = await self._answer("ProbeServer", request)
        assert isinstance(found, slots_pb2.Server)
        yield slots_pb2.ProbeServerResponse(result=found)

    async def CountTokens(self, request: slots_pb2.CountTokensRequest, context: _Call) -> Any:
        return await self._answer("CountTokens", request)

    async def ApplyTemplate(self, request: slots_pb2.ApplyTemplateRequest, context: _Call) -> Any:
        return await self._answer("ApplyTemplate", request)

    async def SaveSnapshot(self, request: slots_pb2.SaveSnapshotRequest, context: _Call) -> Any:
        return await self._answer("SaveSnapshot", request)

    async def RestoreSnapshot(
        self, request: slots_pb2.RestoreSnapshotRequest, context: _Call
    ) -> Any:
        return await self._answer("RestoreSnapshot", request)

    async def ListSnapshots(self, request: slots_pb2.ListSnapshotsRequest, context: _Call) -> Any:
        return await self._answer("ListSnapshots", request)

    async def DeleteSnapshot(self, request: slots_pb2.DeleteSnapshotRequest, context: _Call) -> Any:
        return await self._answer("DeleteSnapshot", request)

    async def _answer(self, name: str, request: Message) -> Message:
        self.asked.append((name, request, call_context()))
        self.has_begun.set()
        await self.may_answer.wait()
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer
