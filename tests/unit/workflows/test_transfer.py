"""Export, import and purge through the service, in chunks and with progress."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
from collections.abc import AsyncIterator

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, MunimentError, NotFoundError
from muniment.kit.limits import CHUNK_BYTES
from muniment.v1 import memory_pb2
from muniment.workflows import episodes, pins, transfer
from muniment.workflows.clients import Clients
from tests.support.memory_process import a_memory_home

ONE, OTHER = "proj_one", "proj_other"
_keys = itertools.count(1)


class Told:
    """What was reported."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []
        self.remarks: list[memory_pb2.ImportRemark] = []

    def report(self, step: str, done: int, total: int) -> None:
        self.steps.append((step, done, total))


def context(project_id: str = "") -> CallContext:
    return CallContext(project_id, caller="test", idempotency_key=f"key-{next(_keys)}")


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    with a_memory_home() as home:
        async with home.open_here() as caller:
            yield caller.clients


async def commit(clients: Clients, project_id: str, content: str) -> memory_pb2.Episode:
    request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=content)
    return await episodes.commit_episode(clients, context(project_id), request)


async def fill(clients: Clients) -> None:
    for number in range(5):
        await commit(clients, ONE if number % 2 else OTHER, f"turn {number}")
    await pins.pin(clients, context(ONE), memory_pb2.PinRequest(content="keep it short"))


async def export(clients: Clients, project_id: str | None = None) -> tuple[bytes, Told]:
    told, chunks = Told(), list[bytes]()
    result = await transfer.export_lines(
        clients,
        context(project_id or ""),
        chunks.append,
        told.report,
        all_projects=project_id is None,
    )
    lines = b"".join(chunks)
    assert all(len(chunk) <= CHUNK_BYTES for chunk in chunks)
    assert result.size_bytes == len(lines)
    return lines, told


async def take(
    clients: Clients, lines: bytes, *, revive: bool = False
) -> tuple[memory_pb2.ImportResult, Told]:
    told = Told()
    result = await transfer.import_lines(
        clients,
        context(),
        io.BytesIO(lines).read,
        len(lines),
        told.report,
        told.remarks.append,
        revive=revive,
    )
    return result, told


async def purge(clients: Clients, project_id: str) -> tuple[memory_pb2.PurgeProjectResult, Told]:
    told = Told()
    result = await transfer.purge_project(clients, context(), project_id, told.report)
    return result, told


async def test_everything_goes_out_and_comes_back(clients: Clients) -> None:
    await fill(clients)
    lines, told = await export(clients)
    assert ("exporting episodes", 5, 5) in told.steps
    alone, _ = await export(clients, ONE)
    assert alone.count(b'"type":"episode"') == 2
    purged, told = await purge(clients, ONE)
    assert (purged.purged.episodes, purged.purged.pins) == (2, 1)
    assert len({step for step, _, _ in told.steps}) >= 4
    refused, told = await take(clients, lines)
    assert (refused.refused_lines, len(told.remarks)) == (4, 4)
    assert refused.whole
    result, told = await take(clients, lines, revive=True)
    assert result.episodes == memory_pb2.ImportCount(imported=2, present=3)
    assert told.steps[-1] == ("importing", len(lines), len(lines))
    again, _ = await export(clients)
    assert {*again.splitlines()[1:-1]} == {*lines.splitlines()[1:-1]}


async def test_a_long_episode_travels_in_chunks(clients: Clients) -> None:
    content = "é" * (CHUNK_BYTES + 1000)
    request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=content)
    await episodes.commit_episode(clients, context(ONE), request)
    lines, _ = await export(clients, ONE)
    assert json.loads(lines.splitlines()[2])["content"] == content
    await purge(clients, ONE)
    result, _ = await take(clients, lines, revive=True)
    assert result.episodes.imported == 1
    again, _ = await export(clients, ONE)
    assert again.splitlines()[2] == lines.splitlines()[2]


@pytest.mark.parametrize("lines", [b"", b"hello\n", b"x" * 3 * CHUNK_BYTES + b"\n" + b"y" * 4000])
async def test_another_file_is_refused(clients: Clients, lines: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await take(clients, lines)
    assert caught.value.reason == "NOT_AN_EXPORT"


async def test_a_file_that_cannot_be_read_on_is_told_as_it_is(clients: Clients) -> None:
    lines, _ = await export(clients)
    first = iter([lines])

    def read(size: int) -> bytes:
        for chunk in first:
            return chunk
        raise OSError(5, "Input/output error")

    told = Told()
    with pytest.raises(OSError, match="Input/output error"):
        await transfer.import_lines(
            clients, context(), read, 0, told.report, told.remarks.append, revive=False
        )
    # The service is as it was.
    assert (await take(clients, lines))[0].whole


async def test_who_goes_away_cancels_an_import(clients: Clients) -> None:
    await fill(clients)
    lines, _ = await export(clients)
    waiting, forever = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    chunks = iter([lines[:500]])

    def read(size: int) -> bytes:
        for chunk in chunks:
            return chunk
        loop.call_soon_threadsafe(waiting.set)
        asyncio.run_coroutine_threadsafe(forever.wait(), loop).result()
        return b""

    told = Told()
    importing = asyncio.ensure_future(
        transfer.import_lines(
            clients, context(), read, 0, told.report, told.remarks.append, revive=False
        )
    )
    await waiting.wait()
    importing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await importing
    forever.set()
    assert (await take(clients, lines))[0].episodes.present == 5


@pytest.mark.parametrize("project_id", ["", "x" * 201, "a\nb"])
async def test_a_purge_needs_a_name(clients: Clients, project_id: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await purge(clients, project_id)
    assert caught.value.field == "project_id"


async def test_what_is_not_there_is_not_found(clients: Clients) -> None:
    await fill(clients)
    for call in (purge, export):
        with pytest.raises(NotFoundError) as caught:
            await call(clients, "proj_none")
        assert caught.value.reason == "PROJECT_UNKNOWN"


async def test_a_purge_goes_on_when_its_caller_goes_away(clients: Clients) -> None:
    await fill(clients)
    begun = asyncio.Event()

    def report(step: str, done: int, total: int) -> None:
        begun.set()

    purging = asyncio.ensure_future(transfer.purge_project(clients, context(), ONE, report))
    await begun.wait()
    purging.cancel()
    with pytest.raises((asyncio.CancelledError, MunimentError)):
        await purging
    # It comes after the other.
    result, _ = await purge(clients, ONE)
    assert (result.purged.episodes, result.purged.pins) == (2, 1)
    assert result.already_purged
