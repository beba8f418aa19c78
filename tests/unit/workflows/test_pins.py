"""Pinning and taking away, as the bridge and the command line do it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import NotFoundError
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.pins import list_pins, pin, unpin

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_pin_comes_and_goes(clients: Clients, context: CallContext) -> None:
    keyed = replace(context, idempotency_key="1")
    pinned = await pin(clients, keyed, memory_pb2.PinRequest(content="Use tabs."))
    assert list((await list_pins(clients, context)).pins) == [pinned.pin]
    gone = replace(context, idempotency_key="2")
    assert await unpin(clients, gone, pinned.pin.pin_id) == pinned.pin
    assert not (await list_pins(clients, context)).pins
    with pytest.raises(NotFoundError):
        await unpin(clients, replace(context, idempotency_key="3"), pinned.pin.pin_id)


async def test_a_session_sees_its_own(clients: Clients, context: CallContext) -> None:
    request = memory_pb2.PinRequest(content="Use tabs.", session_id="s-1")
    pinned = await pin(clients, replace(context, idempotency_key="1"), request)
    assert list((await list_pins(clients, context, session_id="s-1")).pins) == [pinned.pin]
    answer = await list_pins(clients, context)
    assert not answer.pins
    assert answer.other_sessions_pins == 1
