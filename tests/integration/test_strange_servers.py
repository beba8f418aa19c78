"""Whatever a server answers: each call has a clear error, and the service goes on and ends well."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from muniment.v1 import slots_pb2
from tests.support.llama.gateway import Gateway
from tests.support.llama.process import StartLlama
from tests.support.refusals import refused
from tests.support.slots_desk import Desk
from tests.support.slots_process import SlotsHome
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOT_UNDERSTOOD = "LLAMA_NOT_UNDERSTOOD"
DEEP = b"[" * 200_000
MIB = 1 << 20


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """The answer with something changed in it."""

    def instead(body: bytes) -> bytes:
        answer = json.loads(body)
        change(answer)
        return json.dumps(answer).encode()

    return instead


def endless(body: bytes) -> Iterable[bytes]:
    return itertools.repeat(b"x" * MIB)


STRANGE_PROPERTIES: dict[str, Callable[[bytes], bytes | Iterable[bytes]]] = {
    "deep": lambda body: DEEP,
    "deep inside": lambda body: b'{"modalities": ' + b"[" * 400 + b"]" * 400 + b"}",
    "endless": endless,
    "packed": lambda body: gzip.compress(b" " * (64 * MIB) + body),
    "no text": changed(lambda props: props.update(chat_template="\ud800")),
    "no text, written out": lambda body: b'{"x": "\xed\xa0\x80"}',
    "no text in a key": changed(lambda props: props.update({"\udc00": 1})),
    "yes for a number": changed(lambda props: props.update(total_slots=True)),
    "a text for a number": changed(lambda props: props.update(total_slots="2")),
    "no object": lambda body: b"7",
    "nothing": lambda body: b"",
}


@pytest.mark.parametrize("what", STRANGE_PROPERTIES)
async def test_properties_that_are_none(desk: Desk, what: str) -> None:
    desk.serve()
    desk.gateway.instead["/props"] = STRANGE_PROPERTIES[what]
    server = await desk.caller.server()
    assert server.condition == slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD
    assert "is not a llama-server that we understand" in server.detail
    await refused(desk.caller.slots(), NOT_UNDERSTOOD)
    await refused(desk.caller.count(["x"]), NOT_UNDERSTOOD)
    await refused(desk.caller.save(), NOT_UNDERSTOOD)
    desk.gateway.instead.clear()
    assert (await desk.caller.server()).condition == slots_pb2.SERVER_CONDITION_READY


@pytest.mark.parametrize(
    "slots", [DEEP, b"{}", b"[1]", b"[{}]", b'[{"id": 4294967296}]', b'[{"id": 0}, {"id": 0}]']
)
async def test_slots_that_are_none(desk: Desk, slots: bytes) -> None:
    desk.serve()
    await desk.caller.server()
    desk.gateway.instead["/slots"] = lambda body: slots
    await refused(desk.caller.slots(), NOT_UNDERSTOOD)
    await refused(desk.caller.save(), NOT_UNDERSTOOD)


@pytest.mark.parametrize(
    "odd", [True, -1, -7, 2**31, 10**30, 1.0, None, "1", [1]], ids=lambda odd: repr(odd)
)
async def test_tokens_that_are_none_are_not_counted(desk: Desk, odd: object) -> None:
    server = desk.serve()

    def instead(body: bytes) -> bytes:
        tokens = json.loads(body)["tokens"]
        return json.dumps({"tokens": [*tokens, odd]}).encode()

    await desk.caller.server()
    desk.gateway.instead["/tokenize"] = instead
    await refused(desk.caller.count(["one two"]), NOT_UNDERSTOOD)
    estimated = await desk.caller.count(["one two"], exact=False)
    assert not estimated.exact
    assert estimated.note
    desk.gateway.instead.clear()
    desk.gateway.asked.clear()
    counted = await desk.caller.count(["one two"])
    assert list(counted.counts) == [len(server.tokens("one two"))]
    # One odd answer is no reason to ask for each text by itself from then on.
    rows = [one for one in desk.gateway.asked if "/tokenize" in one]
    assert rows
    assert all('{"content": [-1' in one for one in rows)


async def test_a_server_that_does_not_part_texts_is_asked_singly(desk: Desk) -> None:
    server = desk.serve()

    def unparted(body: bytes) -> bytes:
        tokens = [one for one in json.loads(body)["tokens"] if one != -1]
        return json.dumps({"tokens": tokens}).encode()

    desk.gateway.instead["/tokenize"] = unparted
    counted = await desk.caller.count(["one two", "three"])
    assert counted.exact
    assert list(counted.counts) == [len(server.tokens(text)) for text in ("one two", "three")]


async def test_an_answer_may_be_as_long_as_its_texts_need(desk: Desk) -> None:
    server = desk.serve()
    texts = ["\u00e9\u6f22 " * 200_000]
    assert list((await desk.caller.count(texts)).counts) == [len(server.tokens(texts[0]))]


async def test_a_template_that_writes_no_text(desk: Desk) -> None:
    desk.serve()
    desk.gateway.instead["/apply-template"] = lambda body: b'{"prompt": "a\\ud800b"}'
    await refused(desk.caller.template('[{"role": "user", "content": "hi"}]'), NOT_UNDERSTOOD)


async def test_what_is_done_now_and_then_goes_on(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    server = start_llama()
    with Gateway(server) as gateway:
        gateway.instead["/props"] = lambda body: DEEP
        # A user whom nobody knows: a folder that is asked for and cannot be named.
        nowhere = "~nobody-of-that-name/x"
        async with slots_home.serving(
            llama_url=gateway.url, llama_save_folder=nowhere, slots_probe="on"
        ):

            async def looked() -> bool:
                return gateway.was_asked("/props")

            await eventually(looked, "the server was looked at")
            gateway.asked.clear()
            gateway.instead.clear()
            await eventually(looked, "it was looked at again", seconds=40)
    # That the service ended with 0 the home has seen.
