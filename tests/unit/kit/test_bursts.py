"""Outcomes of another thread, in an event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from muniment.kit.bursts import Bursts
from muniment.kit.errors import NotFoundError


async def test_results_of_another_thread_reach_those_who_wait() -> None:
    bursts = Bursts()
    futures: list[Future[int]] = [Future() for _ in range(100)]

    def resolve() -> None:
        for number, future in enumerate(futures):
            future.set_result(number)

    thread = threading.Thread(target=resolve)
    waiting = asyncio.gather(*(bursts.outcome(future) for future in futures))
    thread.start()
    assert await waiting == list(range(100))
    thread.join()


async def test_what_is_resolved_already_is_given_at_once() -> None:
    future: Future[str] = Future()
    future.set_result("done")
    assert await Bursts().outcome(future) == "done"


async def test_errors_are_raised_where_one_waits() -> None:
    future: Future[None] = Future()
    waiting = asyncio.ensure_future(Bursts().outcome(future))
    await asyncio.sleep(0)
    future.set_exception(NotFoundError("none", reason="NONE"))
    with pytest.raises(NotFoundError, match="none"):
        await waiting


async def test_who_stops_waiting_cancels_what_has_not_begun() -> None:
    bursts = Bursts()
    future: Future[None] = Future()
    waiting = asyncio.ensure_future(bursts.outcome(future))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert future.cancelled()


async def test_what_has_begun_goes_on_without_who_waited() -> None:
    bursts = Bursts()
    future: Future[str] = Future()
    assert future.set_running_or_notify_cancel()
    waiting = asyncio.ensure_future(bursts.outcome(future))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    future.set_result("late")
    other: Future[str] = Future()
    other.set_result("another")
    assert await bursts.outcome(other) == "another"


async def test_a_cancelled_future_cancels_who_waits() -> None:
    future: Future[None] = Future()
    waiting = asyncio.ensure_future(Bursts().outcome(future))
    await asyncio.sleep(0)
    future.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
