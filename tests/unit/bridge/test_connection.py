"""One front's connection: order, cancelling, progress, and frames that no front should send."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import NoBackChannelError
from structlog.testing import capture_logs

from muniment.bridge.calls import Call
from muniment.bridge.catalogue import Catalogue, Outcome, Tool
from muniment.bridge.connection import Worker, decode, encode
from muniment.bridge.lanes import Resource
from muniment.bridge.tools.schemas import object_of, string
from tests.support.homes import a_home
from tests.support.inprocess import LEGACY, MODERN, Front, a_worker
from tests.support.memory import a_memory

INTERNAL_ERROR = -32603
INVALID_PARAMS = -32602

ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])


class Doors:
    """Tools that say when they have begun, and end when they are let."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self._may_end: dict[str, asyncio.Event] = {}
        self._began: dict[str, asyncio.Event] = {}
        self.catalogue = Catalogue(
            (
                self._tool("write", writes={Resource.EPISODES}),
                self._tool("read", reads={Resource.EPISODES, Resource.PINS}),
                self._tool("pin", writes={Resource.PINS}),
                self._tool("free"),
            )
        )

    def open(self, *names: str) -> None:
        """Let these calls end."""
        for name in names:
            self._door(self._may_end, name).set()

    async def began(self, name: str) -> None:
        """Wait until a call has begun."""
        async with asyncio.timeout(10):
            await self._door(self._began, name).wait()

    def _door(self, doors: dict[str, asyncio.Event], name: str) -> asyncio.Event:
        return doors.setdefault(name, asyncio.Event())

    async def _run(self, call: Call, arguments: Mapping[str, Any]) -> Outcome:
        name = arguments["name"]
        self.begun.append(name)
        self._door(self._began, name).set()
        await self._door(self._may_end, name).wait()
        self.ended.append(name)
        if name.startswith("broken"):
            raise ZeroDivisionError("a secret of ours")
        return Outcome({"name": name, "arrival": call.arrival}, name)

    def _tool(
        self, name: str, reads: set[Resource] | None = None, writes: set[Resource] | None = None
    ) -> Tool:
        return Tool(
            name=name,
            title=name,
            description=name,
            input_schema=object_of({"name": string()}, "name"),
            output_schema=object_of({"name": string()}),
            read_only=not writes,
            idempotent=False,
            reads=frozenset(reads or ()),
            writes=frozenset(writes or ()),
            run=self._run,
        )


@pytest.fixture
def doors() -> Doors:
    return Doors()


@pytest.fixture
async def worker(doors: Doors) -> AsyncIterator[Worker]:
    with a_home() as home:
        async with a_worker(home, doors.catalogue) as worker:
            yield worker


@pytest.fixture
def front(worker: Worker, tmp_path: Path) -> Front:
    return Front(worker, tmp_path)


def send(front: Front, tool: str, name: str, **more: Any) -> int:
    return front.send("tools/call", {"name": tool, "arguments": {"name": name}}, **more)


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(50):
        await asyncio.sleep(0)


# --- Order


async def test_calls_begin_in_the_order_of_their_lane(front: Front, doors: Doors) -> None:
    numbers = [
        send(front, tool, name)
        for tool, name in (
            ("write", "w1"), ("read", "r1"), ("read", "r2"), ("pin", "p1"), ("write", "w2"),
            ("free", "f1"), ("read", "r3"),
        )
    ]  # fmt: skip
    await settle()
    assert doors.begun == ["w1", "f1"]
    doors.open("w1")
    await doors.began("r2")
    await settle()
    assert doors.begun == ["w1", "f1", "r1", "r2"]
    doors.open("r1")
    await settle()
    assert set(doors.begun) == {"w1", "f1", "r1", "r2"}
    doors.open("r2")
    await doors.began("p1")
    await doors.began("w2")
    doors.open("w2")
    await settle()
    assert "r3" not in doors.begun
    doors.open("p1", "r3", "f1")
    for number in numbers:
        assert (await front.reply(number))["result"]["structuredContent"]["arrival"] == number
    assert Counter(front.answered) == Counter(numbers)
    await front.connection.finish()


async def test_connections_do_not_wait_for_each_other(
    worker: Worker, front: Front, doors: Doors, tmp_path: Path
) -> None:
    other = Front(worker, tmp_path, connection="d" * 32)
    held = send(front, "write", "held")
    doors.open("quick")
    assert "result" in await other.reply(send(other, "write", "quick"))
    assert doors.ended == ["quick"]
    doors.open("held")
    await front.reply(held)


async def test_every_spelling_takes_its_place_in_the_lane(front: Front, doors: Doors) -> None:
    send(front, "WRITE", "w1")
    send(front, " Read ", "r1")
    await settle()
    assert doors.begun == ["w1"]
    doors.open("w1", "r1")
    await front.connection.finish()
    assert doors.ended == ["w1", "r1"]


async def test_a_resource_is_read_in_its_place(tmp_path: Path) -> None:
    with a_home() as home:
        async with a_memory(home), a_worker(home) as worker:
            front = Front(worker, tmp_path)
            status = await front.call("sakur4.status")
            uri = f"sakur4://anchors/{status['structuredContent']['project_id']}"
            reads = []
            for number in range(5):
                arguments = {"content": f"rule {number}"}
                front.send("tools/call", {"name": "memory.pin", "arguments": arguments})
                reads.append(front.send("resources/read", {"uri": uri}))
            for number, read in enumerate(reads):
                (text,) = (await front.reply(read))["result"]["contents"]
                assert len(text["text"].splitlines()) == number + 1


async def test_what_has_no_place_does_not_wait(front: Front, doors: Doors) -> None:
    send(front, "write", "w1")
    for method, params in (
        ("tools/list", {}),
        ("prompts/get", {"name": "sakur4_system_preamble"}),
        ("tools/call", {"name": "no such tool"}),
        ("tools/call", {"name": 7}),
        ("resources/read", {"uri": "sakur4://nothing/x"}),
        ("resources/read", {"uri": "sakur4://anchors/" + "x" * 300}),
        ("resources/read", {}),
        ("no/such/method", {}),
    ):
        assert await front.ask(method, params)
    assert front.answered[-1] > 1
    doors.open("w1")
    await front.connection.finish()


# --- Cancelling


async def test_one_that_waits_is_cancelled(front: Front, doors: Doors) -> None:
    send(front, "write", "w1")
    waiting = send(front, "write", "w2")
    after = send(front, "read", "r1")
    await settle()
    front.cancel(waiting)
    await settle()
    assert doors.begun == ["w1"]
    doors.open("w1", "r1")
    await front.reply(after)
    await front.connection.finish()
    assert doors.ended == ["w1", "r1"]
    assert waiting not in front.answered


async def test_one_that_reads_is_cancelled(front: Front, doors: Doors) -> None:
    reading = send(front, "read", "r1")
    after = send(front, "write", "w1")
    await doors.began("r1")
    front.cancel(reading)
    doors.open("w1")
    await front.reply(after)
    assert doors.ended == ["w1"]
    assert reading not in front.answered


async def test_one_that_writes_runs_to_its_end_unanswered(front: Front, doors: Doors) -> None:
    """Else what follows would not know whether it was written."""
    writing = send(front, "write", "w1")
    after = send(front, "read", "r1")
    await doors.began("w1")
    front.cancel(writing)
    await settle()
    assert doors.begun == ["w1"]
    doors.open("w1", "r1")
    await front.reply(after)
    assert doors.ended == ["w1", "r1"]
    assert writing not in front.answered


async def test_one_that_has_not_taken_a_step_is_cancelled(front: Front, doors: Doors) -> None:
    front.cancel(send(front, "write", "w1"))
    doors.open("r1")
    assert "result" in await front.reply(send(front, "read", "r1"))
    assert doors.begun == ["r1"]


@pytest.mark.parametrize("number", [99, 0, -1, "1", None, [1], {}])
async def test_cancelling_what_is_not_there_does_nothing(
    front: Front, doors: Doors, number: Any
) -> None:
    doors.open("w1")
    done = send(front, "write", "w1")
    await front.reply(done)
    await front.connection.finish()
    front.cancel(number)
    front.cancel(done)
    doors.open("w2")
    assert "result" in await front.reply(send(front, "write", "w2"))


async def test_a_number_may_come_again_after_its_end(front: Front, doors: Doors) -> None:
    """A front that connects again sends the old numbers."""
    doors.open("w1")
    for _ in range(2):
        assert "result" in await front.reply(send(front, "write", "w1", number=5))
        await front.connection.finish()


async def test_finish_waits_for_what_was_received(front: Front, doors: Doors) -> None:
    numbers = [send(front, "write", name) for name in ("w1", "w2")]
    finishing = asyncio.create_task(front.connection.finish())
    await settle()
    assert not finishing.done()
    doors.open("w1", "w2")
    await finishing
    assert front.answered == numbers


# --- Failures


@ERAS
async def test_a_defect_says_nothing_of_the_inside(front: Front, doors: Doors, era: str) -> None:
    doors.open("broken")
    with capture_logs() as logs:
        error = (await front.reply(send(front, "write", "broken", era=era)))["error"]
    assert [(one["log_level"], one["event"]) for one in logs] == [("error", "request failed")]
    assert isinstance(logs[0]["exc_info"], ZeroDivisionError)
    assert error["code"] == INTERNAL_ERROR
    assert error["message"] == "the bridge failed on this request; see `muniment logs worker`"
    doors.open("w1")
    assert "result" in await front.reply(send(front, "write", "w1"))


REQUEST: dict[str, Any] = {
    "n": 1,
    "era": MODERN,
    "client": None,
    "message": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
}


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"n": 1},
        {"hello": {}},
        *({key: value for key, value in REQUEST.items() if key != gone} for gone in REQUEST
          if gone != "client"),
        REQUEST | {"n": "1"},
        REQUEST | {"n": None},
        REQUEST | {"n": [1]},
        REQUEST | {"era": 2026},
        REQUEST | {"client": "agent"},
        REQUEST | {"client": ["agent"]},
        REQUEST | {"message": []},
        REQUEST | {"message": {"id": 1}},
        REQUEST | {"message": {"method": "tools/list"}},
        REQUEST | {"message": {"id": None, "method": "tools/list"}},
        REQUEST | {"message": {"id": [1], "method": "tools/list"}},
        REQUEST | {"message": {"id": 1, "method": ["tools/list"]}},
        REQUEST | {"message": {"id": 1, "method": "tools/list", "params": [1]}},
    ],
    ids=repr,
)  # fmt: skip
async def test_what_is_no_request_is_refused(front: Front, frame: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="relays no request"):
        front.connection.receive(frame)
    await front.connection.finish()


async def test_a_number_that_is_under_way_is_refused(front: Front, doors: Doors) -> None:
    number = send(front, "write", "w1")
    with pytest.raises(ValueError, match="under way"):
        front.connection.receive(REQUEST | {"n": number})
    doors.open("w1")
    await front.reply(number)


@pytest.mark.parametrize("line", [b"", b"\n", b"{", b"[]", b"null", b"7", b"\xff", b"[" * 100_000])
def test_what_is_no_frame_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(line)


def test_a_frame_is_one_line() -> None:
    frame = {"n": 1, "reply": {"text": "two\nlines\r\u2028 記憶 \x00"}}
    line = encode(frame)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decode(line) == frame


@ERAS
@pytest.mark.parametrize(
    "meta",
    [
        {"progressToken": [1]},
        {"io.modelcontextprotocol/clientCapabilities": 7},
        {"io.modelcontextprotocol/clientInfo": "agent"},
        {"traceparent": 7},
        {"x-codex-turn-metadata": "{"},
        {"sessionId": 7, "threadId": None, "callId": []},
    ],
    ids=repr,
)
async def test_strange_metadata_is_survived(
    front: Front, doors: Doors, era: str, meta: dict[str, Any]
) -> None:
    doors.open("w1")
    params = {"name": "write", "arguments": {"name": "w1"}, "_meta": meta}
    response = await front.ask("tools/call", params, era=era)
    assert "result" in response or response["error"]["code"] == INVALID_PARAMS


# --- Progress


@ERAS
@pytest.mark.parametrize("token", ["token", 7, None])
async def test_progress_goes_to_the_token_that_asked(
    worker: Worker, tmp_path: Path, era: str, token: str | int | None
) -> None:
    async def work(ctx: ServerRequestContext[Call], params: Any) -> types.CallToolResult:
        await ctx.session.report_progress(1)
        await ctx.session.report_progress(2, 4, "half way")
        return types.CallToolResult(content=[])

    server: Server[Call] = Server("muniment", on_call_tool=work)
    front = Front(replace(worker, server=server), tmp_path)
    meta = {} if token is None else {"progressToken": token}
    number = front.send("tools/call", {"name": "free", "_meta": meta}, era=era)
    assert "result" in await front.reply(number)
    notices = [
        {"n": number, "notify": {"jsonrpc": "2.0", "method": "notifications/progress",
                                 "params": {"progressToken": token, **said}}}
        for said in ({"progress": 1}, {"progress": 2, "total": 4, "message": "half way"})
    ]  # fmt: skip
    assert front.notices == ([] if token is None else notices)
    json.dumps(front.notices)


async def test_nothing_is_asked_of_the_client(worker: Worker, tmp_path: Path) -> None:
    refused = []

    async def work(ctx: ServerRequestContext[Call], params: Any) -> types.CallToolResult:
        with pytest.raises(NoBackChannelError):
            await ctx.session.send_request(types.PingRequest(), types.EmptyResult)
        refused.append("ping")
        return types.CallToolResult(content=[])

    server: Server[Call] = Server("muniment", on_call_tool=work)
    front = Front(replace(worker, server=server), tmp_path)
    assert "result" in await front.ask("tools/call", {"name": "free"}, era=LEGACY)
    assert refused == ["ping"]
    assert front.notices == []
