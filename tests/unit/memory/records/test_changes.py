"""What changed, with what was before; and records as they were."""

from __future__ import annotations

import hashlib

import pytest

from muniment.kit.errors import PreconditionError
from muniment.v1 import records_pb2 as pb
from tests.support.records_service import Agent

ENTITY = pb.RECORD_KIND_ENTITY

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_every_change_has_what_was_before(agent: Agent) -> None:
    await agent.remember("c", "n", "1")
    first = await agent.entity("c", "n")
    await agent.remember("c", "n", "2")
    second = await agent.entity("c", "n")
    await agent.ask("SetState", key="k", body_json="1")
    event = await agent.ask("RecordEvent", kind="k", body_json="{}")
    archive_id = await agent.forget("c", "n")
    changes = await agent.changes()
    told = [(one.kind, one.name.category, one.name.key, one.existed, one.exists) for one in changes]
    assert told == [
        (ENTITY, "c", "n", False, True),
        (ENTITY, "c", "n", True, True),
        (pb.RECORD_KIND_STATE, "", "k", False, True),
        (pb.RECORD_KIND_JOURNAL, "", event.event_id, False, True),
        (ENTITY, "c", "n", True, False),
        (pb.RECORD_KIND_ARCHIVE, "", archive_id, False, True),
    ]
    assert changes[1].before.entity == first
    assert changes[4].before.entity == second
    assert changes[1].before_sha256 == changes[0].after_sha256 != changes[1].after_sha256
    assert len(changes[1].before_sha256) == hashlib.sha256().digest_size
    positions = [one.position for one in changes]
    assert positions == sorted(set(positions))


async def test_changes_come_in_pages_from_any_position(agent: Agent) -> None:
    for number in range(450):
        await agent.ask("SetState", key=f"k{number % 7}", body_json=str(number))
    everything = await agent.changes()
    assert len(everything) == 450
    pages = await agent.stream("ReadChanges")
    assert len(pages) > 2
    assert {page.generation for page in pages} == {1}
    assert len({page.incarnation for page in pages}) == 1
    middle = everything[200].position
    assert await agent.changes(middle) == everything[201:]
    assert await agent.changes(middle, limit=3) == [
        one for one in everything if middle < one.position <= middle + 3
    ]
    end = await agent.position()
    (last,) = await agent.stream("ReadChanges", after_position=end)
    assert (list(last.changes), last.position) == ([], end)
    with pytest.raises(PreconditionError):
        await agent.changes(end + 1)


async def test_a_record_as_it_was(agent: Agent) -> None:
    name = pb.RecordName(kind=ENTITY, category="c", key="n")
    positions = [await agent.position()]
    for body in ("1", "2", "3"):
        await agent.remember("c", "n", body)
        positions.append(await agent.position())
        await agent.ask("SetState", key="noise", body_json=body)
    archive_id = await agent.forget("c", "n")
    positions.append(await agent.position())
    await agent.ask("RestoreArchived", archive_id=archive_id)

    async def at(position: int) -> str:
        found = await agent.ask("ReadRecordAt", name=name, position=position)
        return str(found.record.entity.body_json)

    bodies = [await at(position) for position in positions]
    assert bodies == ["", '{"value":1}', '{"value":2}', '{"value":3}', ""]
    assert await at(await agent.position()) == '{"value":3}'
    with pytest.raises(PreconditionError):
        await at(await agent.position() + 1)
