"""A line says all of what it describes; one that is wrong is refused, and says where."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.errors import InvalidArgumentError
from muniment.memory.episodes import NewEpisode
from muniment.memory.lines import (
    Closing,
    Header,
    episode_line,
    pin_line,
    project_line,
    read_line,
    tombstone_line,
)
from muniment.v1 import memory_pb2

EPISODE_ID = "ep_" + "0a" * 16
PIN_ID = "pin_" + "0b" * 16
CREATED = Timestamp(seconds=1_750_000_000, nanos=123_456_789)
TEXT = 'Line one\nLine "two"\tété \U0001f511\x00\x7f'


def an_episode(**more: Any) -> memory_pb2.Episode:
    raw = TEXT.encode()
    return memory_pb2.Episode(
        episode_id=EPISODE_ID,
        project_id="proj_1",
        session_id="s-1",
        slot_id=7,
        role=memory_pb2.ROLE_TOOL,
        tool_name="grep",
        tokens=memory_pb2.TokenCount(count_tokens=11, tokenizer="estimate-1"),
        content_bytes=len(raw),
        content_sha256=hashlib.sha256(raw).digest(),
        created_at=CREATED,
        corrects="ep_" + "0c" * 16,
        paths=["src/app.py", "b"],
        **more,
    )


def changed(line: bytes, **changes: Any) -> bytes:
    """The line with other values; None takes a field out."""
    said = json.loads(line) | changes
    return json.dumps({key: value for key, value in said.items() if value is not None}).encode()


def test_an_episode_comes_back_as_it_was() -> None:
    record = read_line(episode_line(an_episode(), TEXT), first=False)
    assert record == NewEpisode(an_episode(), TEXT)


def test_a_place_in_the_stream_and_what_came_later_are_no_part_of_it() -> None:
    later = an_episode(seq=9, superseded_by="ep_" + "0d" * 16)
    assert episode_line(later, TEXT) == episode_line(an_episode(), TEXT)


def test_what_an_episode_lacks_stays_absent() -> None:
    episode = an_episode()
    for field in ("tool_name", "corrects", "session_id", "paths"):
        episode.ClearField(field)
    line = episode_line(episode, TEXT)
    assert not {"tool_name", "corrects", "session_id"} & set(json.loads(line))
    assert read_line(line, first=False) == NewEpisode(episode, TEXT)


@pytest.mark.parametrize("session_id", [None, "s-1"])
def test_a_pin_comes_back_without_what_follows_from_it(session_id: str | None) -> None:
    pin = memory_pb2.PinnedRule(
        pin_id=PIN_ID,
        kind=memory_pb2.PIN_KIND_SAFETY_CONSTRAINT,
        content="never push to main",
        project_id="proj_1",
        session_id=session_id,
        created_at=CREATED,
    )
    line = pin_line(pin)
    assert json.loads(line)["kind"] == "safety_constraint"
    assert read_line(line, first=False) == pin


def test_a_project_comes_back_without_its_counts() -> None:
    project = memory_pb2.Project(
        project_id="proj_1", roots=["/a", "/b"], episodes=3, pins=2, created_at=CREATED
    )
    record = read_line(project_line(project), first=False)
    project.episodes = project.pins = 0
    assert record == project


def test_a_tombstone_comes_back() -> None:
    purged = memory_pb2.PurgedProject(project_id="proj_1", purged_at=CREATED, episodes=3, pins=2)
    assert read_line(tombstone_line(purged), first=False) == purged


def test_header_and_closing_line_come_back() -> None:
    header = Header("muniment 1", "ab" * 16, 12, CREATED)
    assert read_line(header.to_line(), first=True) == header
    closing = Closing(9, 1, 2, 3, 4, 0, bytes(32))
    assert read_line(closing.to_line(), first=False) == closing


def test_a_line_is_one_line_of_readable_utf8() -> None:
    line = episode_line(an_episode(), TEXT)
    assert line.count(b"\n") == 1
    assert "été \U0001f511".encode() in line


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("episode_id", "ep_1"),
        ("episode_id", None),
        ("project_id", ""),
        ("project_id", "x" * 201),
        ("session_id", "a\nb"),
        ("slot_id", -1),
        ("slot_id", 1 << 32),
        ("slot_id", True),
        ("slot_id", 1.0),
        ("role", "cook"),
        ("tool_name", 7),
        ("created_at", "yesterday"),
        ("created_at", 0),
        ("corrects", "the last one"),
        ("paths", "src/app.py"),
        ("paths", [1]),
        ("paths", ["a"] * 101),
        ("tokens", 11),
        ("content_bytes", 3),
        ("content_sha256", "0" * 64),
        ("content_sha256", "short"),
        ("content", ""),
        ("content", "other words"),
        ("content", "half a pair: \ud800"),
        ("colour", "red"),
    ],
)
def test_a_wrong_field_of_an_episode_is_named(field: str, value: object) -> None:
    line = changed(episode_line(an_episode(), TEXT), **{field: value})
    with pytest.raises(InvalidArgumentError) as caught:
        read_line(line, first=False)
    # The digest is what tells that the content was changed.
    expected = "content_bytes" if (field, value) == ("content", "other words") else field
    assert caught.value.field == expected


@pytest.mark.parametrize(
    ("tokens", "field"),
    [
        ({"count": "x", "tokenizer": "t", "exact": False}, "tokens.count"),
        ({"count": 1, "tokenizer": "", "exact": False}, "tokens.tokenizer"),
        ({"count": 1, "tokenizer": "t", "exact": 0}, "tokens.exact"),
        ({"count": 1, "tokenizer": "t", "exact": True, "more": 1}, "tokens.more"),
    ],
)
def test_a_wrong_count_of_tokens_is_named(tokens: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_line(changed(episode_line(an_episode(), TEXT), tokens=tokens), first=False)
    assert caught.value.field == field


@pytest.mark.parametrize("content", ["", " padded", "padded\n", "x" * (32 * 1024 + 1)])
def test_a_rule_is_held_to_its_limits(content: str) -> None:
    pin = memory_pb2.PinnedRule(
        pin_id=PIN_ID, kind=memory_pb2.PIN_KIND_TASK_CONTRACT, content="x", project_id="p"
    )
    with pytest.raises(InvalidArgumentError) as caught:
        read_line(changed(pin_line(pin), content=content), first=False)
    assert caught.value.field == "content"


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"\xff\n", None),
        (b"no json\n", None),
        (b"[1]\n", None),
        (b"\n", None),
        (b"[" * 100_000, None),
        (b'{"type": "song"}\n', "type"),
        (b'{"type": 1}\n', "type"),
        (b"{}\n", "type"),
        (b'{"type": "header"}\n', "type"),
    ],
)
def test_what_is_no_line_of_an_export_is_refused(raw: bytes, field: str | None) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_line(raw, first=False)
    assert (caught.value.reason, caught.value.field) == ("EXPORT_LINE_INVALID", field)


@pytest.mark.parametrize(
    "raw", [b"no json\n", b"{}\n", b'{"type":"header","format":"other"}\n', b""]
)
def test_another_file_is_no_export(raw: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_line(raw, first=True)
    assert caught.value.reason == "NOT_AN_EXPORT"


def test_a_newer_version_is_told_apart() -> None:
    line = changed(Header("muniment 9", "", 0, CREATED).to_line(), version=2, colour="red")
    with pytest.raises(InvalidArgumentError) as caught:
        read_line(line, first=True)
    assert caught.value.reason == "EXPORT_VERSION_UNKNOWN"
