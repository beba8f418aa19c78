"""Entities through the service's door: written, read, listed in pages, named in many ways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muniment.kit.errors import InvalidArgumentError, NotFoundError
from muniment.v1 import records_pb2 as pb
from tests.support.records_service import Agent, Records

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def names(agent: Agent, **fields: Any) -> list[str]:
    listed = await agent.ask("ListEntities", **fields)
    return [one.entity.name for one in listed.entities]


async def test_the_second_time_updates(agent: Agent) -> None:
    first = await agent.remember("people", "alice", '{"role":  "engineer"}', status="active")
    second = await agent.remember("people", "alice", '{"role":"manager"}')
    assert (first.created, second.created, second.id) == (True, False, first.id)
    entity = await agent.entity("people", "alice")
    assert (entity.id, entity.status) == (first.id, "active")
    assert entity.body_json == '{"role":"manager"}'
    assert entity.created_at.ToNanoseconds() < entity.updated_at.ToNanoseconds()
    third = await agent.remember("people", "alice", "{}", status="")
    assert third.id == first.id
    after = await agent.entity("people", "alice")
    assert (after.created_at, after.HasField("status"), after.status) == (
        entity.created_at,
        True,
        "",
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('{"b": 1, "a": [1, 2]}', '{"b":1,"a":[1,2]}'),
        ("[1, {}]", "[1,{}]"),
        ('"x"', '{"value":"x"}'),
        ("7", '{"value":7}'),
        ("1.5", '{"value":1.5}'),
        ("true", '{"value":true}'),
        ("null", '{"value":null}'),
        ('""', '{"value":""}'),
        ('"\\u00e9"', '{"value":"é"}'),
        ('{"a":1,"a":2}', '{"a":2}'),
    ],
)
async def test_a_body_is_kept_compact_and_wrapped(agent: Agent, given: str, kept: str) -> None:
    await agent.remember("c", "n", given)
    assert (await agent.entity("c", "n")).body_json == kept


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "BODY_NO_JSON"),
        ("{", "BODY_NO_JSON"),
        ("NaN", "BODY_NO_JSON"),
        ("[Infinity]", "BODY_NO_JSON"),
        ('"\\ud800"', "BODY_NO_JSON"),
        ("1e999", "BODY_NO_JSON"),
        ("[" * 501 + "]" * 501, "BODY_TOO_DEEP"),
        ("[" * 50_000 + "]" * 50_000, "BODY_TOO_DEEP"),
        (json.dumps("x" * 1_048_566), "BODY_TOO_LARGE"),
        (json.dumps({"t": "漢" * 349_523}, ensure_ascii=False), "BODY_TOO_LARGE"),
    ],
    ids=lambda value: value[:12],
)
async def test_what_cannot_be_kept_is_refused(agent: Agent, body: str, reason: str) -> None:
    for method, named in (("Remember", {"category": "c", "name": "n"}), ("SetState", {"key": "k"})):
        with pytest.raises(InvalidArgumentError) as refused:
            await agent.ask(method, body_json=body, **named)
        assert (refused.value.reason, refused.value.field) == (reason, "body")
    assert (await agent.stats()).used_bytes == 0


async def test_the_longest_and_the_deepest_are_kept(agent: Agent) -> None:
    longest = json.dumps({"t": "x" * 1_048_568}, separators=(",", ":"))
    assert len(longest) == 1024 * 1024
    deepest = "[" * 500 + "]" * 500
    for name, body in (("longest", longest), ("deepest", deepest)):
        await agent.remember("c", name, body)
        assert (await agent.entity("c", name)).body_json == body


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "cannot be empty"),
        ("x\ny", "contains a forbidden control character (code point 0x0a at index 1)"),
        ("\x00", "contains a forbidden control character (code point 0x00 at index 0)"),
        ("a\x7f", "contains a forbidden control character (code point 0x7f at index 1)"),
        ("../../etc", "contains a forbidden path sequence ('..')"),
        ('a;"b', 'contains forbidden character(s): " ;'),
        ("n" * 1025, "too long (1025 chars, max 1024)"),
    ],
)
async def test_names_that_are_none(agent: Agent, name: str, message: str) -> None:
    for field, fields in (
        ("category", {"category": name, "name": "n"}),
        ("name", {"category": "c", "name": name}),
    ):
        with pytest.raises(InvalidArgumentError) as refused:
            await agent.ask("Remember", body_json="{}", **fields)
        assert (refused.value.message, refused.value.field) == (message, field)
        with pytest.raises(NotFoundError):
            await agent.entity(**fields)
    for method, more in (("SetState", {"body_json": "{}"}), ("PutReference", {"body": "x"})):
        with pytest.raises(InvalidArgumentError, match="key"):
            await agent.ask(method, key=name, **more)


async def test_the_longest_names(agent: Agent) -> None:
    for sign in ("n", "😀", "字"):
        name = sign * 1024
        await agent.remember(name, name, "1")
        await agent.remember(name, f"{name[:-1]}x", "2")
        assert (await agent.entity(name, name)).body_json == '{"value":1}'
        listed = await agent.ask("ListEntities", category=name, limit=1)
        assert (listed.total, [one.entity.name for one in listed.entities]) == (
            2,
            [f"{name[:-1]}x"],
        )
        rest = await agent.ask("ListEntities", category=name, cursor=listed.next_cursor)
        assert [one.entity.name for one in rest.entities] == [name]
        assert not rest.HasField("next_cursor")


async def test_names_in_both_unicode_forms_and_no_other(agent: Agent) -> None:
    first = await agent.remember("cafe\u0301", "e\u0301", "1")
    assert (await agent.entity("caf\u00e9", "\u00e9")).category == "caf\u00e9"
    assert (await agent.remember("caf\u00e9", "e\u0301", "2")).id == first.id
    assert await names(agent, category="cafe\u0301") == ["\u00e9"]
    for category, name in (("Caf\u00e9", "\u00e9"), ("caf\u00e9", "e"), ("caf\u00e9", "\u00c9")):
        with pytest.raises(NotFoundError):
            await agent.entity(category, name)


async def test_the_list_is_newest_first_in_pages(agent: Agent) -> None:
    for number in range(25):
        await agent.remember(("even", "odd")[number % 2], f"n{number:02}", str(number))
    await agent.remember("even", "n04", "4")
    newest = ["n04", *(f"n{number:02}" for number in range(24, -1, -1) if number != 4)]
    assert await names(agent) == newest
    assert await names(agent, category="even", limit=3) == ["n04", "n24", "n22"]
    assert await names(agent, category="none") == []
    pages: list[list[str]] = []
    cursor: dict[str, Any] = {}
    while True:
        listed = await agent.ask("ListEntities", limit=7, **cursor)
        assert listed.total == 25
        pages.append([one.entity.name for one in listed.entities])
        # What is written meanwhile is on none of the pages behind.
        await agent.remember("new", f"new{len(pages)}", "{}")
        await agent.ask("Forget", category="new", name=f"new{len(pages)}")
        if not listed.HasField("next_cursor"):
            break
        cursor = {"cursor": listed.next_cursor}
    assert [name for page in pages for name in page] == newest
    assert list(map(len, pages)) == [7, 7, 7, 4]


async def test_bodies_in_a_list_may_be_cut(agent: Agent) -> None:
    await agent.remember("c", "n", json.dumps("x" * 100))
    whole = (await agent.ask("ListEntities")).entities[0]
    cut = (await agent.ask("ListEntities", body_limit_characters=10)).entities[0]
    assert cut.entity.body_json == whole.entity.body_json[:10]
    assert cut.body_characters == whole.body_characters == len(whole.entity.body_json)


async def test_tenants_see_nothing_of_each_other(agent: Agent) -> None:
    other = agent.with_tenant(f"{agent.context.tenant_id}-other")
    await agent.remember("c", "n", "1")
    with pytest.raises(NotFoundError):
        await other.entity("c", "n")
    assert await names(other) == []
    nobody = agent.with_tenant("")
    with pytest.raises(InvalidArgumentError, match="tenant"):
        await nobody.ask("ListEntities")


async def test_the_same_call_again_has_the_same_outcome(agent: Agent) -> None:
    first = await agent.remember("c", "n", "1", once="k")
    assert await agent.remember("c", "n", "1", once="k") == first
    archive_id = await agent.forget("c", "n", once="f")
    assert await agent.forget("c", "n", once="f") == archive_id
    for _ in range(2):
        with pytest.raises(NotFoundError):
            await agent.forget("c", "n", once="g")
    event = await agent.ask("RecordEvent", kind="k", body_json="{}", once="e")
    assert await agent.ask("RecordEvent", kind="k", body_json="{}", once="e") == event
    assert (await agent.stats()).events == 1


async def test_who_only_reads_has_an_empty_store_and_leaves_nothing(records: Records) -> None:
    reader = records.agent()
    assert (await reader.ask("ListEntities")).total == 0
    assert (await reader.ask("SearchRecords", query="anything at all")).verdict.code == (
        pb.VERDICT_CODE_EMPTY_STORE
    )
    with pytest.raises(NotFoundError):
        await reader.entity("people", "alice")
    stats = await reader.stats()
    assert (stats.tenant_id, stats.entities) == (reader.context.tenant_id, 0)
    known = (await reader.ask("ListTenants")).tenants
    assert reader.context.tenant_id not in {one.tenant_id for one in known}
    await reader.remember("people", "alice")
    assert (await reader.entity("people", "alice")).name == "alice"
    known = (await reader.ask("ListTenants")).tenants
    assert reader.context.tenant_id in {one.tenant_id for one in known}
