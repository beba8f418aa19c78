"""The cap, and the account that it goes by."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.kit.errors import LimitError, MunimentError
from muniment.memory.records.totals import read_totals, recounted
from tests.support.homes import a_home
from tests.support.records_service import Agent, Records, a_records

CAP = 10_000


def body(size: int) -> str:
    return json.dumps("x" * (size - len('{"value":""}')))


async def test_what_would_be_over_it_is_refused_and_leaves_nothing() -> None:
    with a_home() as home:
        async with a_records(home, cap_bytes=CAP) as records:
            agent = records.agent()
            await agent.remember("c", "n", body(CAP - 2 - 100))
            before = await agent.position()
            for refused in (
                agent.remember("c", "m", body(200)),
                agent.ask("SetState", key="k", body_json=body(200)),
                agent.ask("RecordEvent", kind="k", body_json=json.dumps({"t": "y" * 200})),
                agent.ask("PutReference", key="k", body="y" * 200),
                agent.remember("c", "n", body(CAP)),
            ):
                with pytest.raises(LimitError) as error:
                    await refused
                assert error.value.reason == "CAP_EXCEEDED"
                assert "over the 9.8 KB cap" in error.value.message
            stats = await agent.stats()
            assert (stats.used_bytes, stats.cap_bytes) == (CAP - 100, CAP)
            assert (stats.entities, stats.states, stats.events, stats.references) == (1, 0, 0, 0)
            assert (await agent.entity("c", "n")).body_json == f'{{"value":{body(CAP - 102)}}}'
            # Only outcomes of the refused calls were written.
            assert await agent.changes(before) == []


async def test_at_the_cap_one_may_shrink_forget_and_fill_to_the_last_byte() -> None:
    with a_home() as home:
        async with a_records(home, cap_bytes=CAP) as records:
            agent = records.agent()
            await agent.remember("c", "n", body(CAP - 2))
            assert (await agent.stats()).used_bytes == CAP
            with pytest.raises(LimitError):
                await agent.remember("c", "n", body(CAP - 1))
            archive_id = await agent.forget("c", "n")
            assert (await agent.stats()).used_bytes == CAP
            await agent.ask("RestoreArchived", archive_id=archive_id)
            await agent.remember("c", "n", body(1000))
            await agent.ask("SetState", key="k", body_json=body(CAP - 1000 - 3))
            assert (await agent.stats()).used_bytes == CAP
            await agent.ask("DeleteState", key="k")
            assert (await agent.stats()).used_bytes == 1002
            archive_id = await agent.forget("c", "n", reason="r" * 10)
            assert (await agent.stats()).used_bytes == 1012
            await agent.ask("PurgeArchived", archive_id=archive_id)
            assert (await agent.stats()).used_bytes == 0


NAMES = st.sampled_from(["a", "b", "é", "😀"])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
CALLS = st.one_of(
    st.tuples(
        st.just("Remember"),
        st.fixed_dictionaries(
            {"category": NAMES, "name": NAMES, "body_json": TEXTS.map(json.dumps)},
            optional={"status": TEXTS},
        ),
    ),
    st.tuples(
        st.just("Forget"),
        st.fixed_dictionaries({"category": NAMES, "name": NAMES}, optional={"reason": TEXTS}),
    ),
    st.tuples(st.just("RestoreArchived"), st.just({"archive_id": "newest"})),
    st.tuples(st.just("PurgeArchived"), st.just({"archive_id": "newest"})),
    st.tuples(
        st.just("SetState"),
        st.fixed_dictionaries({"key": NAMES, "body_json": TEXTS.map(json.dumps)}),
    ),
    st.tuples(st.just("DeleteState"), st.fixed_dictionaries({"key": NAMES})),
    st.tuples(st.just("PutReference"), st.fixed_dictionaries({"key": NAMES, "body": TEXTS})),
    st.tuples(st.just("DeleteReference"), st.fixed_dictionaries({"key": NAMES})),
    st.tuples(
        st.just("RecordEvent"),
        st.fixed_dictionaries(
            {"kind": TEXTS, "body_json": st.just("{}")}, optional={"category": TEXTS, "name": TEXTS}
        ),
    ),
)


async def _call(agent: Agent, method: str, fields: dict[str, Any]) -> None:
    if fields.get("archive_id") == "newest":
        listed = (await agent.ask("ListArchive", limit=1)).archived
        fields = {"archive_id": listed[0].id if listed else "none"}
    try:
        await agent.ask(method, **fields)
    except MunimentError:
        return


async def _demand_account(records: Records, agent: Agent) -> None:
    generation = records.generation(agent)
    with generation.store.read() as reader:
        kept, counted = read_totals(reader), recounted(reader)
        assert not reader.doubts()
    counted.tenant_id = generation.tenant_id
    assert kept == counted
    listed = await agent.ask("ListEntities")
    assert (listed.total, len(listed.entities)) == (kept.entities, kept.entities)
    for category in {one.entity.category for one in listed.entities}:
        of_it = await agent.ask("ListEntities", category=category)
        assert of_it.total == len(of_it.entities) > 0


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(CALLS, max_size=25))
def test_the_account_is_exact_whatever_is_done(calls: list[tuple[str, dict[str, Any]]]) -> None:
    async def run() -> None:
        with a_home() as home:
            async with a_records(home, cap_bytes=400) as records:
                agent = records.agent()
                for method, fields in calls:
                    await _call(agent, method, fields)
                await _demand_account(records, agent)

    asyncio.run(run())
