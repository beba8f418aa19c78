"""A line says all of a record, and a line that says anything else is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from muniment.kit.errors import InvalidArgumentError
from muniment.memory.records import limits
from muniment.v1 import records_pb2
from muniment.workflows import record_values
from muniment.workflows.record_lines import Closing, Header, read_header, read_line, record_line
from tests.support.records import entity, records, time_of


@given(records)
def test_a_line_gives_the_record_back(record: records_pb2.Record) -> None:
    line = record_line(record)
    assert line.count(b"\n") == 1
    again = read_line(line, 2)
    assert again == record
    assert isinstance(again, records_pb2.Record)
    assert record_line(again) == line


def test_times_have_nine_digits() -> None:
    said = json.loads(record_line(entity("a", "b", 1)))
    assert said["created_at"] == "2023-11-14T22:13:20.000000000Z"
    assert list(said) == ["kind", "id", "category", "name", "created_at", "updated_at", "body"]


def test_a_time_that_nobody_knows_is_absent() -> None:
    state = records_pb2.Record(state=records_pb2.StateDocument(key="k", body_json="1"))
    line = record_line(state)
    assert json.loads(line) == {"kind": "state", "key": "k", "body": 1}
    assert read_line(line, 2) == state


def test_first_and_last_line_are_read_back() -> None:
    header = Header("muniment 1", "team", "ab", 7, time_of(1, 5))
    assert read_header(header.to_line()) == header
    closing = Closing(3, 1, bytes(32))
    assert read_line(closing.to_line(), 9) == closing


def refused(raw: bytes) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        read_line(raw, 7)
    assert (caught.value.reason, caught.value.field) == ("EXPORT_LINE_INVALID", "line 7")
    return caught.value.message


STATE = {"kind": "state", "key": "k", "updated_at": "2026-01-01T00:00:00Z", "body": {}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "diary"}, "kind must be one of entity, state"),
        ({"kind": 1}, "kind must be a text"),
        ({"key": ""}, "key is empty"),
        ({"key": "a\nb"}, "key has a control character"),
        ({"key": "k" * 1025}, "key has 1025 characters"),
        ({"key": 3}, "key must be a text"),
        ({"updated_at": "noon"}, "updated_at must be a time such as"),
        ({"more": 1}, "more is no key of such a line"),
        ({"body": "x" * 1024 * 1024}, "body takes 1048578 bytes"),
        ({"body": "\ud800"}, "body has half a surrogate pair"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], told: str) -> None:
    assert refused(json.dumps(STATE | change).encode()).startswith(told)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"\xff\n", "is not UTF-8 at byte 0"),
        (b"{\n", "is not JSON"),
        (b"[1]\n", "is not a JSON object"),
        (b'{"kind":"state","key":"k","body":NaN}\n', "has NaN, which JSON does not know"),
        (b'{"kind":"state","key":"k","body":1e999}\n', "body has a number that JSON"),
        (b'{"kind":"state","key":"k"}\n', "body is missing"),
        (
            b'{"kind":"state","key":"k","body":' + b"[" * 600 + b"]" * 600 + b"}\n",
            "body is nested deeper than 500 levels",
        ),
        (b'{"kind":"end","records":true,"left_out":0,"sha256":"0"}\n', "sha256 must be 64 hex"),
        (
            b'{"kind":"archived","id":"1","entity":{"id":"2","category":"","name":"n","body":1}}\n',
            "entity.category is empty",
        ),
    ],
)
def test_what_is_no_line_is_refused(raw: bytes, told: str) -> None:
    assert refused(raw).startswith(told)


def test_a_record_has_to_fit_into_a_message() -> None:
    part = "x" * (1024 * 1024 - 2)
    said = {"kind": "event", "id": "1"} | dict.fromkeys(
        ("evaluated", "acted", "forward", "extra"), part
    )
    assert "a record has at most" in refused(json.dumps(said).encode())


@pytest.mark.parametrize("line", [b"", b"Dear Sir,\n", b'{"kind":"entity"}\n', b'{"kind":1}\n'])
def test_another_file_is_told_by_its_first_line(line: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_header(line)
    assert (caught.value.reason, caught.value.field) == ("NOT_AN_EXPORT", "line 1")


def test_a_later_version_is_told() -> None:
    line = Header("m", "t", "i", 1, time_of(1)).to_line().replace(b'"version":1', b'"version":2')
    with pytest.raises(InvalidArgumentError) as caught:
        read_header(line)
    assert caught.value.reason == "EXPORT_VERSION_UNKNOWN"


@pytest.mark.parametrize(
    "name", ["BODY_LIMIT_BYTES", "BODY_LIMIT_DEPTH", "IDENTIFIER_LIMIT_CHARACTERS"]
)
def test_limits_are_those_of_the_service(name: str) -> None:
    assert getattr(record_values, name) == getattr(limits, name)
