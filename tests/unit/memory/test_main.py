"""The memory service as its process runs it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import lmdb
import pytest

from muniment.kit.channels import open_channel
from muniment.kit.context import CallContext
from muniment.kit.errors import PreconditionError, UnavailableError
from muniment.kit.paths import Home
from muniment.kit.settings import Settings
from muniment.kit.store.schemas import SCHEMA_ADDRESS
from muniment.memory import limits
from muniment.memory.__main__ import memory_service
from muniment.memory.records import limits as record_limits
from muniment.memory.schema import SCHEMA
from muniment.v1 import common_pb2, common_pb2_grpc, memory_pb2_grpc, store_pb2
from tests.support.memory import Agent
from tests.support.probe import DEADLINE_SECONDS, check_health


@asynccontextmanager
async def a_service(home: Home) -> AsyncIterator[tuple[Agent, common_pb2.DescribeResponse]]:
    """The service in this process, an agent that calls it, and what it says of itself."""
    task = asyncio.create_task(memory_service(home, Settings(memory_map_bytes=16 * 1024**2)))
    async with open_channel(home, "memory") as channel:
        ready = asyncio.ensure_future(channel.channel_ready())
        await asyncio.wait(
            {task, ready}, timeout=DEADLINE_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        ready.cancel()
        if task.done():
            await task
        try:
            assert await check_health(channel, "muniment.v1.MemoryService") == "SERVING"
            told = await common_pb2_grpc.DescribeServiceStub(channel).Describe(
                common_pb2.DescribeRequest(), timeout=DEADLINE_SECONDS
            )
            context = CallContext(project_id="proj_1", session_id="s-1")
            yield Agent(memory_pb2_grpc.MemoryServiceStub(channel), context), told
        finally:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.wait_for(task, DEADLINE_SECONDS)


async def test_it_remembers_over_restarts(home: Home) -> None:
    async with a_service(home) as (agent, told):
        assert told.service == "memory"
        assert told.store.change_position == told.store.index_position == 0
        episode = await agent.commit("needle", key="call")
    async with a_service(home) as (agent, told):
        assert told.store.change_position == told.store.index_position == 1
        assert told.store.schema_version == SCHEMA.version == 3
        assert told.store.path == str(home.data("memory") / "store")
        assert told.store.size_bytes > 0
        assert await agent.commit("needle", key="call") == episode
        assert await agent.found("needle") == ["needle"]


async def test_it_tells_its_limits(home: Home) -> None:
    async with a_service(home) as (_, told):
        assert told.limits["episode_limit_bytes"] == limits.EPISODE_LIMIT_BYTES == 16 * 1024**2
        modules = (limits, record_limits)
        named = {name.lower() for one in modules for name in vars(one) if name.isupper()}
        assert set(told.limits) == named


async def test_what_it_keeps_is_private(home: Home) -> None:
    async with a_service(home):
        assert home.data("memory").stat().st_mode & 0o777 == 0o700
    # What it closed is whole without its journal.
    kept = {one.name for one in home.data("memory").iterdir()}
    assert kept == {"held", "store", "lexical.sqlite3"}


async def test_a_second_one_is_refused_and_the_first_goes_on(home: Home) -> None:
    async with a_service(home) as (agent, _):
        with pytest.raises(UnavailableError, match="another process uses") as refused:
            await memory_service(home, Settings())
        assert refused.value.reason == "STORE_IN_USE"
        await agent.commit("needle")
        assert await agent.found("needle") == ["needle"]


async def test_a_store_of_a_newer_version_is_refused(home: Home) -> None:
    async with a_service(home):
        pass
    with lmdb.open(str(home.data("memory") / "store"), max_dbs=1) as raw:
        meta = raw.open_db(b"meta")
        with raw.begin(write=True) as transaction:
            raw_schema = transaction.get(SCHEMA_ADDRESS, db=meta)
            assert raw_schema is not None
            newer = store_pb2.StoredSchema.FromString(raw_schema)
            newer.version = 4
            transaction.put(SCHEMA_ADDRESS, newer.SerializeToString(), db=meta)
    with pytest.raises(PreconditionError) as refused:
        await memory_service(home, Settings())
    assert refused.value.reason == "SCHEMA_UNKNOWN"
    assert "version 4" in refused.value.message
