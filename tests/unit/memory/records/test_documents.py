"""State and reference documents, and the journal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muniment.kit.errors import InvalidArgumentError, NotFoundError
from tests.support.records_service import Agent

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_state_is_one_row_a_key(agent: Agent) -> None:
    assert (await agent.ask("SetState", key="focus", body_json='{"a": 1}')).created
    first = (await agent.ask("GetState", key="focus")).state
    assert not (await agent.ask("SetState", key="focus", body_json="null")).created
    second = (await agent.ask("GetState", key="focus")).state
    assert (first.body_json, second.body_json) == ('{"a":1}', '{"value":null}')
    assert first.updated_at.ToNanoseconds() < second.updated_at.ToNanoseconds()
    assert (await agent.stats()).states == 1


async def test_states_are_listed_by_key_without_bodies_and_deleted(agent: Agent) -> None:
    for key in ("b", "a", "é", "😀" * 1024):
        await agent.ask("SetState", key=key, body_json="1")
    listed = (await agent.ask("ListStates")).states
    assert [state.key for state in listed] == ["a", "b", "é", "😀" * 1024]
    assert {state.body_json for state in listed} == {""}
    await agent.ask("DeleteState", key="e\u0301")
    with pytest.raises(NotFoundError):
        await agent.ask("GetState", key="é")
    with pytest.raises(NotFoundError):
        await agent.ask("DeleteState", key="é")
    assert (await agent.stats()).states == 3


async def test_a_reference_has_a_text_and_metadata(agent: Agent) -> None:
    await agent.ask("PutReference", key="doc", body="# Title\n", metadata_json='{"by": "me"}')
    found = (await agent.ask("GetReference", key="doc")).reference
    assert (found.body, found.metadata_json) == ("# Title\n", '{"by":"me"}')
    await agent.ask("PutReference", key="doc", body="new")
    assert (await agent.ask("GetReference", key="doc")).reference.metadata_json == "{}"
    (listed,) = (await agent.ask("ListReferences")).references
    assert (listed.key, listed.body) == ("doc", "")
    for wrong in ("[]", "1", "{"):
        with pytest.raises(InvalidArgumentError, match="metadata"):
            await agent.ask("PutReference", key="doc", body="x", metadata_json=wrong)
    with pytest.raises(InvalidArgumentError, match="too large"):
        await agent.ask("PutReference", key="doc", body="x" * (1024 * 1024 + 1))
    await agent.ask("DeleteReference", key="doc")
    with pytest.raises(NotFoundError):
        await agent.ask("GetReference", key="doc")


async def event(agent: Agent, kind: str, number: int, **about: str) -> str:
    body = json.dumps({"n": number})
    return str((await agent.ask("RecordEvent", kind=kind, body_json=body, **about)).event_id)


async def read(agent: Agent, **fields: Any) -> list[int]:
    found = await agent.ask("ReadJournal", **fields)
    return [json.loads(one.acted_json)["body"]["n"] for one in found.events]


async def test_the_journal_is_read_newest_first_in_pages_and_by_filters(agent: Agent) -> None:
    ids = [
        await event(agent, ("a", "b")[number % 2], number, category="c", name=f"n{number % 3}")
        for number in range(9)
    ]
    ids.append(await event(agent, "a", 9))
    assert len(set(ids)) == 10
    assert ids == sorted(ids)
    assert await read(agent) == list(range(9, -1, -1))
    assert await read(agent, kind="b") == [7, 5, 3, 1]
    assert await read(agent, category="c", name="n0") == [6, 3, 0]
    assert await read(agent, category="c", kind="a", name="n0") == [6, 0]
    assert await read(agent, category="d") == []
    first = await agent.ask("ReadJournal", limit=2, kind="b")
    assert await read(agent, limit=2, kind="b", cursor=first.next_cursor) == [3, 1]
    last = await agent.ask("ReadJournal", limit=2, kind="b", cursor=first.next_cursor)
    assert not last.HasField("next_cursor")


@pytest.mark.parametrize("kind", ["", "x\n", "../y", 'k;|"', "😀" * 1024])
async def test_names_in_an_event_may_be_any(agent: Agent, kind: str) -> None:
    await event(agent, kind, 1, category=kind, name=kind)
    (found,) = (await agent.ask("ReadJournal")).events
    assert json.loads(found.acted_json) == {"kind": kind, "body": {"n": 1}}
    assert json.loads(found.extra_json) == {"category": kind, "name": kind}
    assert not found.HasField("evaluated_json")
    assert not found.HasField("forward_json")
    assert await read(agent, kind=kind, category=kind, name=kind) == [1]


async def test_an_event_is_about_something_or_about_nothing(agent: Agent) -> None:
    await event(agent, "k", 1)
    await event(agent, "k", 2, category="c")
    second, first = (await agent.ask("ReadJournal")).events
    assert not first.HasField("extra_json")
    assert second.extra_json == '{"category":"c"}'


async def test_what_an_event_cannot_be(agent: Agent) -> None:
    for body in ("[]", "1", '"x"', "null"):
        with pytest.raises(InvalidArgumentError, match="must be an object"):
            await agent.ask("RecordEvent", kind="k", body_json=body)
    large = json.dumps({"t": "y" * 1_100_000})
    with pytest.raises(InvalidArgumentError, match=r"acted: is too large \(1074 KB; max 1024 KB"):
        await agent.ask("RecordEvent", kind="k", body_json=large)
    assert (await agent.stats()).events == 0
