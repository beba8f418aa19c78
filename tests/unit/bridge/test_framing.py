"""Lines, descriptors and what a message is."""

from __future__ import annotations

import itertools
import json
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.bridge.framing import (
    LineSplitter,
    Message,
    Output,
    Oversize,
    Refusal,
    encode,
    error_reply,
    parse,
    read_lines,
    result_reply,
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data in pieces that end at these places."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def lines_of(chunks: list[bytes], limit_bytes: int) -> list[bytes | Oversize]:
    splitter = LineSplitter(limit_bytes)
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*found, *splitter.rest()]


@given(st.lists(st.binary(max_size=9), max_size=9), st.lists(st.integers(0, 99), max_size=9))
def test_lines_do_not_depend_on_how_they_arrive(lines: list[bytes], places: list[int]) -> None:
    data = b"\n".join(line.replace(b"\n", b"") for line in lines)
    expected: list[bytes] = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert lines_of(cut(data, places), 100) == expected


def members(request_id: object, *, id_first: bool) -> dict[str, object]:
    nested: dict[str, object] = {"id": "wrong", "text": 'a "quoted" \\ [{ \n' * 9, "list": [[{}]]}
    own: dict[str, object] = {"jsonrpc": "2.0", "id": request_id}
    rest: dict[str, object] = {"method": "tools/call", "params": nested}
    return own | rest if id_first else rest | own


@settings(max_examples=40)
@given(
    st.one_of(st.integers(), st.text()),
    st.booleans(),
    st.lists(st.integers(0, 9999), max_size=20),
)
def test_the_id_of_an_oversize_request_is_found(
    request_id: object, id_first: bool, places: list[int]
) -> None:
    data = json.dumps(members(request_id, id_first=id_first)).encode() + b"\nnext"
    oversize, after = lines_of(cut(data, places), 50)
    assert isinstance(oversize, Oversize)
    assert oversize.request_id == request_id
    assert after == b"next"


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({"id": 1, "result": "x" * 99}).encode(),
        b'{"id":1,"method":"m","params":"never closed' + b"x" * 99,
        b'{"id":{"a":1},"method":"m","x":"' + b"x" * 99 + b'"}',
        b'{"id":1,"method":"' + b"m" * 20_000 + b'"}',
        b"]" * 99,
        b'{"id":1,"method":"m","x":' + b"[]," * 100_000,
    ],
)
def test_no_id_is_made_up(line: bytes) -> None:
    (oversize,) = lines_of([line], 50)
    assert isinstance(oversize, Oversize)
    assert oversize.request_id is None


def test_what_is_no_message_is_none() -> None:
    assert parse(b"") is None
    assert parse(b" \r") is None
    assert parse(b'{"id":1,"result":{}}') is None


def test_a_message_keeps_its_bytes() -> None:
    line = b'{"jsonrpc": "2.0", "id": 7, "method": "m", "params": {"a": 1.10}}'
    message = parse(b"\xef\xbb\xbf  " + line + b"\r")
    assert isinstance(message, Message)
    assert (message.line, message.request_id, message.params) == (line, 7, {"a": 1.1})


def test_refusals_name_the_request() -> None:
    with pytest.raises(Refusal) as refused:
        parse(b'{"jsonrpc":"2.0","id":"a","method":"m","params":3}')
    assert (refused.value.request_id, refused.value.code) == ("a", -32602)
    with pytest.raises(Refusal) as refused:
        parse(Oversize(4))
    assert (refused.value.request_id, refused.value.code) == (4, -32600)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_what_is_encoded_is_one_line_that_reads_the_same(value: object) -> None:
    encoded = encode(value)
    assert b"\n" not in encoded
    assert json.loads(encoded.decode()) == value


def test_text_that_is_no_unicode_stays_escaped() -> None:
    assert json.loads(encode({"cwd": "caf\udce9"})) == {"cwd": "caf\udce9"}


def test_replies() -> None:
    assert json.loads(result_reply("記", b'{"a":1}')) == {
        "jsonrpc": "2.0",
        "id": "記",
        "result": {"a": 1},
    }
    assert json.loads(error_reply(None, -1, "no")) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "no"},
    }
    assert json.loads(error_reply(1, -1, "no", data=[]))["error"]["data"] == []


def test_output_keeps_messages_whole_between_threads() -> None:
    reading, writing = os.pipe()
    output = Output(writing, lambda: None)

    def write(letter: bytes) -> None:
        for _ in range(20):
            output.write(letter * 20_000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    lines: list[bytes | Oversize] = []
    for line in read_lines(reading):
        lines.append(line)
        if len(lines) == 60:
            os.close(writing)
    for thread in threads:
        thread.join()
    os.close(reading)
    assert set(lines) == {b"a" * 20_000, b"b" * 20_000, b"c" * 20_000}


def test_output_says_once_that_nobody_reads() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    said: list[str] = []
    output = Output(writing, lambda: said.append("broken"))
    output.write(b"one")
    output.write(b"two")
    os.close(writing)
    assert said == ["broken"]


def test_a_closed_output_takes_nothing() -> None:
    reading, writing = os.pipe()
    output = Output(writing, lambda: None)
    output.write(b"one")
    output.close()
    output.write(b"two")
    os.close(writing)
    assert list(read_lines(reading)) == [b"one"]
    os.close(reading)


def test_a_descriptor_that_fails_has_ended() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    assert list(read_lines(reading)) == []


def test_a_non_blocking_descriptor_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    lines = read_lines(reading)
    found: list[bytes | Oversize] = []
    thread = threading.Thread(target=lambda: found.extend(lines))
    thread.start()
    os.write(writing, b"late\n")
    os.close(writing)
    thread.join()
    os.close(reading)
    assert found == [b"late"]
