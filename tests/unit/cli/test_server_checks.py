"""What the doctor says of inference servers in each condition."""

from __future__ import annotations

import pytest

from muniment.cli.findings import Finding
from muniment.cli.server_checks import check_servers
from muniment.kit.errors import PreconditionError
from muniment.v1 import slots_pb2
from muniment.workflows.clients import open_clients
from tests.support.homes import a_home
from tests.support.scripted_slots import ScriptedSlots
from tests.support.slots import a_slots, serving_slots

URL = "http://127.0.0.1:9"


async def found(slots: ScriptedSlots, *, are_configured: bool = True) -> list[Finding]:
    with a_home() as home:
        async with serving_slots(home, slots), open_clients(home) as clients:
            return await check_servers(clients, are_configured=are_configured)


async def found_of(
    *servers: slots_pb2.Server, are_configured: bool = True
) -> list[tuple[str, str]]:
    """Level and check of each finding."""
    slots = ScriptedSlots(ListServers=slots_pb2.ListServersResponse(servers=servers))
    return [(one.level, one.check) for one in await found(slots, are_configured=are_configured)]


def a_server(condition: slots_pb2.ServerCondition.ValueType) -> slots_pb2.Server:
    return slots_pb2.Server(name="main", url=URL, is_usual=True, condition=condition)


async def test_no_server_is_no_problem() -> None:
    with a_home() as home:
        async with a_slots(home), open_clients(home) as clients:
            (finding,) = await check_servers(clients, are_configured=False)
    assert (finding.level, finding.check, finding.fix) == ("ok", "servers", None)


@pytest.mark.parametrize(
    ("condition", "level"),
    [
        (slots_pb2.SERVER_CONDITION_READY, "ok"),
        (slots_pb2.SERVER_CONDITION_SLEEPING, "ok"),
        (slots_pb2.SERVER_CONDITION_LOADING, "warning"),
        (slots_pb2.SERVER_CONDITION_UNREACHABLE, "problem"),
        (slots_pb2.SERVER_CONDITION_KEY_REFUSED, "problem"),
        (slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD, "problem"),
    ],
)
async def test_each_condition_has_its_level(
    condition: slots_pb2.ServerCondition.ValueType, level: str
) -> None:
    assert await found_of(a_server(condition)) == [(level, "server main")]


async def test_what_nobody_named_may_be_anything() -> None:
    strange = a_server(slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD)
    assert await found_of(strange, are_configured=False) == [("warning", "server main")]


async def test_cause_and_cure_are_the_services() -> None:
    server = a_server(slots_pb2.SERVER_CONDITION_UNREACHABLE)
    server.detail, server.fix = "it cannot be reached", "start it"
    slots = ScriptedSlots(ListServers=slots_pb2.ListServersResponse(servers=[server]))
    (finding,) = await found(slots)
    assert (finding.message, finding.fix) == ("it cannot be reached", "start it")


async def test_what_a_server_lacks_is_one_finding_for_each_flag() -> None:
    server = a_server(slots_pb2.SERVER_CONDITION_READY)
    for kind, fix in (
        (slots_pb2.CAPABILITY_KIND_SAVE, "with --slot-save-path"),
        (slots_pb2.CAPABILITY_KIND_RESTORE, "with --slot-save-path"),
        (slots_pb2.CAPABILITY_KIND_METRICS, "with --metrics"),
    ):
        server.capabilities.add(kind=kind, standing=slots_pb2.STANDING_NO, fix=fix)
    slots = ScriptedSlots(ListServers=slots_pb2.ListServersResponse(servers=[server]))
    _, lacking = await found(slots)
    # Its metrics are not used here.
    assert (lacking.level, lacking.message) == ("warning", "it does without save, restore")
    assert lacking.fix == "with --slot-save-path"


async def test_a_service_that_cannot_tell_is_a_problem() -> None:
    failure = PreconditionError("no", reason="LLAMA_NONE", fix="mend it")
    (finding,) = await found(ScriptedSlots(ListServers=failure))
    assert (finding.level, finding.message, finding.fix) == ("problem", "no", "mend it")
