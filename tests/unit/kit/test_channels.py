"""Calls outlive restarts of the service within their deadline, and end by it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest

from muniment.kit.channels import Caller, open_channel
from muniment.kit.context import CallContext
from muniment.kit.errors import (
    InternalError,
    InvalidArgumentError,
    MunimentError,
    NotFoundError,
    TimedOutError,
    UnavailableError,
)
from muniment.kit.paths import Home
from muniment.v1 import memory_pb2, memory_pb2_grpc
from tests.support.probe import DEADLINE_SECONDS, Probe, listening
from tests.support.seams import FakeClock

CONTEXT = CallContext(project_id="proj_1", idempotency_key="the key")
CALLER = Caller("probe")
Stub: TypeAlias = "memory_pb2_grpc.MemoryServiceAsyncStub"


@asynccontextmanager
async def a_stub(home: Home) -> AsyncIterator[Stub]:
    async with open_channel(home, "probe") as channel:
        yield memory_pb2_grpc.MemoryServiceStub(channel)


async def ask(
    stub: Stub,
    *,
    caller: Caller = CALLER,
    deadline_seconds: float = DEADLINE_SECONDS,
    patience_seconds: float | None = None,
) -> memory_pb2.GetStatsResponse:
    request = memory_pb2.GetStatsRequest()
    return await caller.unary(
        stub.GetStats, request, CONTEXT, deadline_seconds, patience_seconds=patience_seconds
    )


async def send(stub: Stub, begun: list[int]) -> memory_pb2.CommitLargeEpisodeResponse:
    """Send three parts; `begun` grows with each attempt."""

    def parts() -> Iterator[memory_pb2.CommitLargeEpisodeRequest]:
        begun.append(1)
        for _ in range(3):
            yield memory_pb2.CommitLargeEpisodeRequest(content_chunk=b"xy")

    return await CALLER.client_stream(stub.CommitLargeEpisode, parts, CONTEXT, DEADLINE_SECONDS)


def failing(times: int, error: MunimentError, probe: Probe) -> Probe:
    """A probe whose first calls fail."""

    async def does() -> None:
        if len(probe.contexts) <= times:
            raise error

    probe.does = does
    return probe


class Held(Probe):
    """A probe that holds the calls that reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.does = self._hold

    async def _hold(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def test_a_call_is_answered_and_carries_its_context(home: Home) -> None:
    probe = Probe()
    async with listening(probe, home), a_stub(home) as stub:
        assert (await ask(stub)).episodes == 1
        assert (await send(stub, [])).episode.content_bytes == 6
    assert probe.contexts == [CONTEXT, CONTEXT]


async def test_a_call_waits_for_a_service_that_is_not_there_yet(home: Home) -> None:
    async with a_stub(home) as stub:
        waiting = asyncio.ensure_future(ask(stub))
        with pytest.raises(TimedOutError):
            await ask(stub, deadline_seconds=0.05)
        assert not waiting.done()
        async with listening(Probe(), home):
            assert (await waiting).episodes == 1


async def test_a_call_outlives_a_restart_under_it_with_its_key(home: Home) -> None:
    first, second = Held(), Probe()
    async with a_stub(home) as stub:
        async with listening(first, home):
            waiting = asyncio.ensure_future(ask(stub))
            await first.begun.wait()
        assert not waiting.done()
        async with listening(second, home):
            assert (await waiting).episodes == 1
    assert first.contexts == second.contexts == [CONTEXT]


async def test_a_stream_of_requests_is_begun_anew(home: Home) -> None:
    first, second, begun = Held(), Probe(), list[int]()
    async with a_stub(home) as stub:
        async with listening(first, home):
            waiting = asyncio.ensure_future(send(stub, begun))
            await first.begun.wait()
        async with listening(second, home):
            assert (await waiting).episode.content_bytes == 6
    assert len(begun) >= 2
    assert second.contexts == [CONTEXT]


async def test_a_channel_serves_life_after_life(home: Home) -> None:
    async with a_stub(home) as stub:
        for _ in range(3):
            async with listening(Probe(), home):
                assert (await ask(stub)).episodes == 1


async def test_a_service_that_asks_for_patience_gets_it(home: Home) -> None:
    probe = failing(2, UnavailableError("the index is locked", reason="INDEX"), Probe())
    async with listening(probe, home), a_stub(home) as stub:
        assert (await ask(stub)).episodes == 3
    assert {one.idempotency_key for one in probe.contexts} == {"the key"}


async def test_a_service_that_asks_for_too_much_patience_says_why(home: Home) -> None:
    clock, probe = FakeClock(), Probe()

    async def does() -> None:
        clock.move(DEADLINE_SECONDS / 2)
        raise UnavailableError("the index is locked", reason="INDEX", fix="unlock it")

    probe.does = does
    async with listening(probe, home), a_stub(home) as stub:
        with pytest.raises(TimedOutError) as failed:
            await ask(stub, caller=Caller("probe", clock))
    assert failed.value.reason == "INDEX"
    assert str(failed.value) == "the index is locked; unlock it"
    assert len(probe.contexts) == 2


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("is gone", reason="GONE", fix="look elsewhere"),
        InvalidArgumentError("is empty", reason="EMPTY", field="query"),
        TimedOutError("took too long", reason="SLOW"),
        InternalError("failed", reason="INTERNAL"),
    ],
)
async def test_other_errors_are_not_tried_again(home: Home, error: MunimentError) -> None:
    probe = failing(1, error, Probe())
    async with listening(probe, home), a_stub(home) as stub:
        with pytest.raises(type(error)) as failed:
            await ask(stub)
    assert str(failed.value) == str(error)
    assert failed.value.reason == error.reason
    assert len(probe.contexts) == 1


async def test_a_service_that_never_comes_back_times_out(home: Home) -> None:
    began = time.monotonic()
    async with a_stub(home) as stub:
        with pytest.raises(TimedOutError) as failed:
            await ask(stub, deadline_seconds=0.2)
    assert 0.2 <= time.monotonic() - began < 5
    assert failed.value.reason == "SERVICE_AWAY"
    assert "probe" in failed.value.message
    assert isinstance(failed.value.__cause__, UnavailableError)


async def test_a_long_call_may_wait_shorter_for_a_service_that_is_away(home: Home) -> None:
    began = time.monotonic()
    async with a_stub(home) as stub:
        with pytest.raises(TimedOutError) as failed:
            await ask(stub, deadline_seconds=600, patience_seconds=0.2)
    assert time.monotonic() - began < 5
    assert failed.value.reason == "SERVICE_AWAY"


async def test_the_wait_begins_anew_when_a_service_vanishes_under_a_long_call(home: Home) -> None:
    clock, first, second = FakeClock(), Held(), Probe()
    async with a_stub(home) as stub:
        async with listening(first, home):
            waiting = asyncio.ensure_future(
                ask(stub, caller=Caller("probe", clock), deadline_seconds=600, patience_seconds=20)
            )
            await first.begun.wait()
            clock.move(300)
        async with listening(second, home):
            assert (await waiting).episodes == 1


async def test_a_call_that_takes_too_long_is_made_once(home: Home) -> None:
    held = Held()
    async with listening(held, home), a_stub(home) as stub:
        with pytest.raises(TimedOutError) as failed:
            await ask(stub, deadline_seconds=0.2)
        await asyncio.wait_for(held.ended.wait(), DEADLINE_SECONDS)
    assert failed.value.reason == "DEADLINE_EXCEEDED"
    assert len(held.contexts) == 1


async def test_the_deadline_is_one_for_all_attempts(home: Home) -> None:
    clock, probe = FakeClock(), Probe()

    async def does() -> None:
        clock.move(6)
        raise UnavailableError("not yet", reason="LATER")

    probe.does = does
    async with listening(probe, home), a_stub(home) as stub:
        with pytest.raises(TimedOutError):
            await ask(stub, caller=Caller("probe", clock), deadline_seconds=15)
    assert len(probe.contexts) == 3


async def test_a_caller_may_stop_waiting(home: Home) -> None:
    held = Held()
    async with listening(held, home), a_stub(home) as stub:
        waiting = asyncio.ensure_future(ask(stub))
        await held.begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(held.ended.wait(), DEADLINE_SECONDS)


def read(stub: Stub) -> AsyncIterator[memory_pb2.ReadEpisodeResponse]:
    request = memory_pb2.ReadEpisodeRequest(episode_id="ep")
    return CALLER.server_stream(stub.ReadEpisode, request, CONTEXT, DEADLINE_SECONDS)


async def test_responses_stream_through(home: Home) -> None:
    async with listening(Probe(), home), a_stub(home) as stub:
        assert [part.content_chunk async for part in read(stub)] == [b"first", b"second"]


async def test_a_stream_waits_for_a_service_that_is_away(home: Home) -> None:
    async with a_stub(home) as stub:
        first = asyncio.ensure_future(anext(read(stub)))
        async with listening(Probe(), home):
            assert (await first).content_chunk == b"first"


async def test_a_stream_that_breaks_is_told_and_not_begun_again(home: Home) -> None:
    held, parts = Held(), list[bytes]()
    async with a_stub(home) as stub:
        async with listening(held, home):
            responses = read(stub)
            parts.append((await anext(responses)).content_chunk)
            await held.begun.wait()
        with pytest.raises(UnavailableError):
            await anext(responses)
    assert parts == [b"first"]
    assert len(held.contexts) == 1


async def test_an_error_in_a_stream_arrives(home: Home) -> None:
    probe = failing(1, NotFoundError("is gone", reason="GONE"), Probe())
    async with listening(probe, home), a_stub(home) as stub:
        with pytest.raises(NotFoundError, match="is gone"):
            [part async for part in read(stub)]


async def test_a_reader_that_stops_early_ends_the_call(home: Home) -> None:
    held = Held()
    async with listening(held, home), a_stub(home) as stub:
        responses = read(stub)
        await anext(responses)
        await held.begun.wait()
        await responses.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(held.ended.wait(), DEADLINE_SECONDS)
