"""An export holds what was there when it began, in order, and the same for the same store."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from muniment.kit.clock import timestamp
from muniment.kit.errors import NotFoundError, PreconditionError
from muniment.memory import exporting
from muniment.memory.counts import Serving
from muniment.memory.exporting import Export
from muniment.memory.limits import EXPORT_PAGE_BYTES
from muniment.memory.schema import EPISODES, PROJECTS
from muniment.v1 import memory_pb2
from tests.support.bare_memory import BareMemory, a_bare_memory
from tests.support.seams import FakeClock

ONE, OTHER = "proj_one", "proj_other"


def objects(lines: bytes) -> list[dict[str, Any]]:
    assert lines.endswith(b"\n")
    return [json.loads(line) for line in lines.split(b"\n")[:-1]]


def of_type(lines: bytes, kind: str) -> list[dict[str, Any]]:
    return [one for one in objects(lines) if one["type"] == kind]


def fill(memory: BareMemory) -> None:
    memory.commit(ONE, "first", session_id="s-1", root="/src/one")
    memory.commit(OTHER, "second", role=memory_pb2.ROLE_TOOL, tool_name="grep")
    memory.pin(ONE, "keep it short")
    memory.unpin(ONE, memory.pin(ONE, "taken away"))
    memory.commit(ONE, "third", session_id="s-2")
    memory.pin(OTHER, "ask first", session_id="s-3")


def test_everything_is_there_in_order_with_a_sound_end(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        fill(memory)
        lines = memory.export()
        incarnation, position = memory.store.incarnation, memory.store.position
    told = objects(lines)
    assert [one["type"] for one in told] == [
        *("header", "project", "project", "pin", "pin", "episode", "episode", "episode", "end")
    ]
    header, end = told[0], told[-1]
    assert (header["format"], header["version"]) == ("muniment-export", 1)
    assert (header["incarnation"], header["position"]) == (incarnation, position)
    assert [one["content"] for one in told if "content" in one] == [
        *("keep it short", "ask first", "first", "second", "third")
    ]
    before = lines[: lines.rindex(b'{"type":"end"')]
    assert end == {
        "type": "end",
        "lines": 8,
        "projects": 2,
        "episodes": 3,
        "pins": 2,
        "tombstones": 0,
        "left_out": 0,
        "sha256": hashlib.sha256(before).hexdigest(),
    }


@pytest.mark.parametrize("sealed", [False, True])
def test_the_same_store_gives_the_same_bytes(tmp_path: Path, sealed: bool) -> None:
    still = FakeClock()
    with a_bare_memory(tmp_path, sealed=sealed) as memory:
        fill(memory)

        def export() -> bytes:
            with memory.store.read() as reader:
                begun = Export(reader, None, "muniment test", timestamp(still), Serving())
                return begun.page(reader) + begun.end(reader)[0]

        assert export() == export()
        still.move(60)
        between = export().split(b"\n")[1:-2]
        assert between == memory.export().split(b"\n")[1:-2]


def test_one_project_has_nothing_of_others(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        fill(memory)
        lines = memory.export(ONE)
    assert {one["project_id"] for one in objects(lines)[1:-1]} == {ONE}
    assert [one["content"] for one in of_type(lines, "episode")] == ["first", "third"]
    assert of_type(lines, "project")[0]["roots"] == ["/src/one"]


def test_pages_are_read_each_in_its_moment_and_nothing_new_gets_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "EXPORT_PAGE_BYTES", 400)
    with a_bare_memory(tmp_path) as memory:
        for number in range(6):
            memory.commit(ONE, f"turn {number}")
        rule = memory.pin(ONE, "in force when it began")
        with memory.store.read() as reader:
            export = Export(reader, ONE, "muniment test", timestamp(memory.clock), Serving())
        memory.unpin(ONE, rule)
        memory.commit(ONE, "too late")
        pages = []
        while not export.done:
            with memory.store.read() as reader:
                pages.append(export.page(reader))
        with memory.store.read() as reader:
            line, result = export.end(reader)
    lines = b"".join(pages) + line
    assert len(pages) >= 5
    assert [one["content"] for one in of_type(lines, "episode")] == [
        f"turn {number}" for number in range(6)
    ]
    assert [one["content"] for one in of_type(lines, "pin")] == ["in force when it began"]
    assert (result.episodes, result.size_bytes) == (6, len(lines))
    assert result.sha256.hex() == objects(lines)[-1]["sha256"]


def test_an_episode_longer_than_a_page_is_one_line(tmp_path: Path) -> None:
    content = "é" * EXPORT_PAGE_BYTES + "\U0001f511"
    with a_bare_memory(tmp_path) as memory:
        memory.commit(ONE, content)
        assert of_type(memory.export(ONE), "episode")[0]["content"] == content


def test_a_purged_project_leaves_its_tombstone(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        fill(memory)
        memory.purge(ONE)
        lines = memory.export()
        memory.commit(ONE, "used again")
        again = memory.export(ONE)
    (tombstone,) = of_type(lines, "tombstone")
    assert (tombstone["project_id"], tombstone["episodes"], tombstone["pins"]) == (ONE, 2, 1)
    assert {one["project_id"] for one in objects(lines)[2:-1]} == {OTHER}
    assert [one["type"] for one in objects(again)] == [
        *("header", "tombstone", "project", "episode", "end")
    ]
    assert objects(lines)[-1]["left_out"] == 0


def test_there_is_no_export_of_what_is_not_there(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        fill(memory)
        memory.purge(ONE)
        for project_id, reason in ((ONE, "PROJECT_PURGED"), ("proj_none", "PROJECT_UNKNOWN")):
            with pytest.raises(NotFoundError) as caught:
                memory.export(project_id)
            assert caught.value.reason == reason


def test_a_purge_meanwhile_ends_it(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        fill(memory)
        with memory.store.read() as reader:
            export = Export(reader, None, "muniment test", timestamp(memory.clock), Serving())
        memory.purge(ONE)
        with memory.store.read() as reader:
            export.page(reader)
            with pytest.raises(PreconditionError) as caught:
                export.end(reader)
    assert caught.value.reason == "EXPORT_OVERTAKEN"


def test_what_cannot_be_believed_is_left_out_and_counted(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        fill(memory)
        place = memory.store.protection.address
        stranger(memory, EPISODES.name, place(1))
        stranger(memory, PROJECTS.name, place(OTHER))
        lines = memory.export()
    assert [one["content"] for one in of_type(lines, "episode")] == ["second", "third"]
    assert [one["project_id"] for one in of_type(lines, "project")] == [ONE]
    assert objects(lines)[-1]["left_out"] == 2


def stranger(memory: BareMemory, table: str, address: bytes) -> None:
    """Spoil a row, as somebody does who has the files and not the key."""

    def spoil() -> None:
        with memory.store.standing_still() as environment:
            database = environment.open_db(table.encode())
            with environment.begin(write=True, db=database) as transaction:
                row = transaction.get(address)
                assert row is not None
                transaction.put(address, bytes(row)[:-1] + bytes([row[-1] ^ 1]))

    memory.store.between(spoil).result()


def test_a_project_with_nothing_is_not_written(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        memory.unpin(ONE, memory.pin(ONE, "taken away"))
        assert [one["type"] for one in objects(memory.export())] == ["header", "end"]
