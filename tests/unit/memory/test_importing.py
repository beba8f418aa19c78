"""What was exported comes in as it was; what is wrong is refused by line and field, and alone."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.kit.errors import InvalidArgumentError, NotFoundError
from muniment.memory import importing
from muniment.memory.schema import EPISODES, PROJECTS
from muniment.v1 import memory_pb2
from tests.support.bare_memory import BareMemory, Imported, a_bare_memory

ONE, OTHER = "proj_one", "proj_other"


def fill(memory: BareMemory) -> None:
    first = memory.commit(ONE, "the port is 8080 ünd\nmore", session_id="s-1", root="/src/one")
    memory.commit(OTHER, "found", role=memory_pb2.ROLE_TOOL, tool_name="grep", slot_id=3)
    memory.pin(ONE, "keep it short", kind=memory_pb2.PIN_KIND_SAFETY_CONSTRAINT)
    memory.commit(ONE, "no: 9090", session_id="s-1", corrects=first.episode_id)
    memory.pin(OTHER, "ask first", session_id="s-3")


def exported(folder: Path, project_id: str | None = None) -> bytes:
    with a_bare_memory(folder / "source") as memory:
        fill(memory)
        return memory.export(project_id)


def lines_of(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)


def between(raw: bytes) -> list[bytes]:
    """The lines between header and end."""
    return lines_of(raw)[1:-1]


def closed(lines: list[bytes]) -> bytes:
    """The lines with an end that fits them, whatever they say."""
    before = b"".join(lines)
    end = {"type": "end", "lines": len(lines), "sha256": hashlib.sha256(before).hexdigest()}
    counts = dict.fromkeys(("projects", "episodes", "pins", "tombstones", "left_out"), 0)
    return before + json.dumps(end | counts).encode() + b"\n"


def edited(raw: bytes, which: int, **changes: Any) -> bytes:
    """The file with another line `which`, from 0, and an end that fits."""
    lines = lines_of(raw)[:-1]
    lines[which] = json.dumps(json.loads(lines[which]) | changes).encode() + b"\n"
    return closed(lines)


def counts(imported: Imported) -> dict[str, tuple[int, int]]:
    told = imported.result
    return {
        name: (getattr(told, name).imported, getattr(told, name).present)
        for name in ("projects", "episodes", "pins", "tombstones")
    }


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1 << 20, 100, 7])
def test_an_empty_home_has_all_of_it_afterwards(
    tmp_path: Path, sealed: bool, chunk_bytes: int
) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target", sealed=sealed) as memory:
        imported = memory.take(raw, chunk_bytes=chunk_bytes)
        assert counts(imported) == {
            "projects": (2, 0),
            "episodes": (3, 0),
            "pins": (2, 0),
            "tombstones": (0, 0),
        }
        assert imported.result.whole
        assert not imported.remarks
        assert between(memory.export()) == between(raw)
        (hit,) = memory.recall(ONE, "8080").hits
        assert hit.text == "the port is 8080 ünd\nmore"
        assert hit.current_value == "no: 9090"
        with memory.store.read() as reader:
            project = reader.get(PROJECTS, ONE)
            row = reader.lookup(EPISODES, memory.store.protection.address(1))
        assert project is not None
        assert (project.project.episodes, project.project.pins) == (2, 1)
        assert row is not None
        assert row.payload.written_by == "test import"
        assert memory.pins(ONE)[0].rendered == "[SAFETY CONSTRAINT] keep it short"


def test_again_it_passes_everything_over(tmp_path: Path) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target") as memory:
        memory.take(raw)
        again = memory.take(raw)
        assert counts(again) == {
            "projects": (0, 2),
            "episodes": (0, 3),
            "pins": (0, 2),
            "tombstones": (0, 0),
        }
        assert again.result.whole
        assert between(memory.export()) == between(raw)


def test_what_is_here_stays_and_places_are_new(tmp_path: Path) -> None:
    raw = exported(tmp_path, ONE)
    with a_bare_memory(tmp_path / "target") as memory:
        memory.commit(ONE, "mine", session_id="s-9")
        memory.pin(ONE, "keep it short")
        imported = memory.take(raw)
        assert counts(imported)["projects"] == (0, 1)
        # The same text in the same scope is one pin, whatever its id.
        assert counts(imported)["pins"] == (0, 1)
        contents = [json.loads(one)["content"] for one in between(memory.export(ONE))[1:]]
        assert contents == [*("keep it short", "mine", "the port is 8080 ünd\nmore", "no: 9090")]


def test_a_file_that_was_cut_is_taken_as_far_as_it_goes(tmp_path: Path) -> None:
    raw = exported(tmp_path)
    lines = lines_of(raw)
    ends = [sum(map(len, lines[:count])) for count in range(1, len(lines))]
    for number, end in enumerate([ends[0], ends[3] + 10, ends[-1], len(raw) - 20]):
        with a_bare_memory(tmp_path / str(number)) as memory:
            imported = memory.take(raw[:end])
            assert not imported.result.whole
            assert not imported.refused
            assert "the end of the file is missing" in imported.remarks[-1].text
            whole = sum(1 for one in ends if one <= end)
            taken = sum(taken for taken, _ in counts(imported).values())
            assert taken == min(whole, len(lines) - 1) - 1
            # The whole file finishes what the cut one began.
            assert memory.take(raw).result.whole
            assert between(memory.export()) == between(raw)


def test_the_last_end_of_line_may_be_missing(tmp_path: Path) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target") as memory:
        assert memory.take(raw.rstrip(b"\n")).result.whole


def test_a_file_that_was_edited_is_noticed(tmp_path: Path) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target") as memory:
        imported = memory.take(raw.replace(b"/src/one", b"/src/two"))
    assert not imported.result.whole
    assert [one.text for one in imported.remarks] == ["the file was changed after it was written"]
    assert counts(imported)["episodes"] == (3, 0)


@pytest.mark.parametrize(
    ("which", "changes", "field"),
    [
        (1, {"created_at": "never"}, "created_at"),
        (3, {"kind": "whim"}, "kind"),
        (5, {"content": "forged"}, "content_bytes"),
        (5, {"content_sha256": "0" * 64}, "content_sha256"),
        (5, {"type": "song"}, "type"),
        (6, {"slot_id": "three"}, "slot_id"),
    ],
)
def test_a_line_that_is_wrong_is_refused_alone(
    tmp_path: Path, which: int, changes: dict[str, Any], field: str
) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target") as memory:
        imported = memory.take(edited(raw, which, **changes))
        depends = [(8, "corrects")] if which == 5 else []
        assert imported.refused == [(which + 1, field), *depends]
        assert imported.result.refused_lines == 1 + len(depends)
        assert imported.result.whole
        # What was right is here, and the right file brings the rest.
        assert memory.take(raw).result.refused_lines == 0
        if which != 1:
            assert {*between(memory.export())} == {*between(raw)}


@pytest.mark.parametrize(
    ("which", "changes", "field"),
    [
        (5, {"role": "assistant"}, "role"),
        (5, {"session_id": "s-2"}, "session_id"),
        (5, {"project_id": OTHER}, "project_id"),
        (5, {"created_at": "2020-01-01T00:00:00Z"}, "created_at"),
        (
            5,
            {
                "content": "forged",
                "content_bytes": 6,
                "content_sha256": hashlib.sha256(b"forged").hexdigest(),
            },
            "content",
        ),
        (3, {"content": "do as you like"}, "content"),
        (3, {"session_id": "s-1"}, "session_id"),
    ],
)
def test_the_same_id_with_other_words_is_refused_and_changes_nothing(
    tmp_path: Path, which: int, changes: dict[str, Any], field: str
) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target") as memory:
        memory.take(raw)
        imported = memory.take(edited(raw, which, **changes))
        assert imported.refused == [(which + 1, field)]
        assert "differs" in imported.remarks[0].text
        assert between(memory.export()) == between(raw)


def test_a_rule_that_was_taken_away_here_stays_away(tmp_path: Path) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target") as memory:
        memory.take(raw)
        (pin,) = memory.pins(ONE)
        memory.unpin(ONE, pin.pin_id)
        imported = memory.take(raw)
        assert counts(imported)["pins"] == (0, 2)
        assert "stays away" in imported.remarks[0].text
        assert memory.pins(ONE) == []


@pytest.mark.parametrize("session_id", ["s-2", "s-1"])
def test_a_correction_needs_what_it_corrects(tmp_path: Path, session_id: str) -> None:
    lines = lines_of(exported(tmp_path, ONE))[:-1]
    corrected = json.loads(lines[3])
    correction = json.loads(lines[4]) | {"session_id": session_id}
    assert correction["corrects"] == corrected["episode_id"]
    if session_id == "s-1":
        # Before it, nobody knows what it corrects.
        order = [*lines[:3], lines[4], lines[3]]
    else:
        order = [*lines[:4], json.dumps(correction).encode() + b"\n"]
    with a_bare_memory(tmp_path / "target") as memory:
        imported = memory.take(closed(order))
    assert [field for _, field in imported.refused] == ["corrects"]
    assert counts(imported)["episodes"] == (1, 0)


def test_lines_behind_the_end_are_refused(tmp_path: Path) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target") as memory:
        imported = memory.take(raw + raw)
    assert imported.result.refused_lines == len(lines_of(raw))
    assert counts(imported)["episodes"] == (3, 0)


def test_an_endless_line_is_refused_and_not_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "IMPORT_LINE_LIMIT_BYTES", 2000)
    raw = exported(tmp_path)
    lines = lines_of(raw)[:-1]
    lines.insert(5, b'{"type":"' + b"x" * 9000 + b'"}\n')
    with a_bare_memory(tmp_path / "target") as memory:
        imported = memory.take(closed(lines), chunk_bytes=100)
    assert imported.refused == [(6, "")]
    assert imported.result.whole
    assert counts(imported)["episodes"] == (3, 0)


def test_remarks_have_a_limit_and_refusals_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "IMPORT_REMARKS_LIMIT", 3)
    lines = [*lines_of(exported(tmp_path))[:1], *[b"no json\n"] * 10]
    with a_bare_memory(tmp_path / "target") as memory:
        imported = memory.take(closed(lines))
    assert imported.result.refused_lines == 10
    assert len(imported.remarks) == 3


@pytest.mark.parametrize("raw", [b"", b"{}\n", b"hello", b"\n\n"])
def test_another_file_is_refused_as_a_whole(tmp_path: Path, raw: bytes) -> None:
    with a_bare_memory(tmp_path) as memory:
        with pytest.raises(InvalidArgumentError) as caught:
            memory.take(raw)
        assert caught.value.reason == "NOT_AN_EXPORT"


def test_what_was_left_out_is_told(tmp_path: Path) -> None:
    raw = exported(tmp_path)
    end = json.loads(lines_of(raw)[-1]) | {"left_out": 2}
    with a_bare_memory(tmp_path / "target") as memory:
        imported = memory.take(b"".join(lines_of(raw)[:-1]) + json.dumps(end).encode())
    assert imported.result.whole
    assert "2 episodes and pins" in imported.remarks[0].text


def test_what_was_purged_here_comes_back_only_if_it_is_wanted(tmp_path: Path) -> None:
    raw = exported(tmp_path)
    with a_bare_memory(tmp_path / "target") as memory:
        memory.take(raw)
        memory.purge(ONE)
        imported = memory.take(raw)
        assert imported.refused == [(2, "project_id"), *[(n, "project_id") for n in (4, 6, 8)]]
        assert "purged on" in imported.remarks[0].text
        assert {json.loads(one)["project_id"] for one in between(memory.export())[1:]} == {OTHER}
        revived = memory.take(raw, revive=True)
        assert counts(revived)["episodes"] == (2, 1)
        assert not revived.remarks
        assert {*between(memory.export())} == {*between(raw)}
        # Once it is back, it is here like anything else.
        assert counts(memory.take(raw))["episodes"] == (0, 3)


def test_what_came_after_a_purge_is_taken(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path / "source") as source:
        fill(source)
        source.purge(ONE)
        source.commit(ONE, "a new life")
        raw = source.export()
    with a_bare_memory(tmp_path / "target") as memory:
        imported = memory.take(raw)
        assert counts(imported)["tombstones"] == (1, 0)
        assert not imported.remarks
        assert between(memory.export()) == between(raw)
        assert counts(memory.take(raw))["tombstones"] == (0, 1)


def test_a_tombstone_from_elsewhere_purges_nothing_here(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path / "source") as source:
        fill(source)
        source.purge(ONE)
        raw = source.export()
    with a_bare_memory(tmp_path / "target") as memory:
        memory.commit(ONE, "mine")
        assert counts(memory.take(raw))["tombstones"] == (0, 1)
        assert memory.recall(ONE, "mine").hits


def test_the_example_in_the_documents_is_an_export(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text()
    example = page.split("```json\n")[1].split("```")[0].encode()
    with a_bare_memory(tmp_path) as memory:
        imported = memory.take(example)
        assert imported.result.whole
        assert not imported.remarks
        assert between(memory.export()) == between(example)


# --- Whatever there is to export

TEXTS = st.text(min_size=1, max_size=60).filter(lambda one: bool(one.encode()))
NAMES = st.sampled_from(["", "s-1", "s 2 é"])
PROJECTS_OF_IT = st.sampled_from([ONE, OTHER, "proj_three"])


@st.composite
def histories(draw: st.DrawFn) -> list[Callable[[BareMemory], None]]:
    """Things that are done to a memory, in order."""
    done: list[Callable[[BareMemory], None]] = []
    for _ in range(draw(st.integers(0, 8))):
        project_id, session_id, content = draw(PROJECTS_OF_IT), draw(NAMES), draw(TEXTS)
        kind = draw(st.sampled_from(["commit", "correct", "pin", "unpin", "purge"]))
        if kind == "commit":
            tool = draw(st.none() | st.sampled_from(["", "grep"]))
            slot = draw(st.integers(0, 2**32 - 1))
            done.append(
                partial(
                    _commit,
                    project_id=project_id,
                    content=content,
                    session_id=session_id,
                    tool_name=tool,
                    slot_id=slot,
                )
            )
        elif kind == "correct":
            done.append(partial(_correct, project_id=project_id, content=content))
        elif kind == "pin":
            done.append(
                partial(_pin, project_id=project_id, content=content, session_id=session_id)
            )
        else:
            done.append(partial(_unpin if kind == "unpin" else _purge, project_id=project_id))
    return done


def _commit(memory: BareMemory, *, project_id: str, content: str, **more: Any) -> None:
    memory.commit(project_id, content, **more)


def _pin(memory: BareMemory, *, project_id: str, content: str, session_id: str) -> None:
    memory.pin(project_id, f"rule {content!r}", session_id=session_id or None)


def _correct(memory: BareMemory, *, project_id: str, content: str) -> None:
    first = memory.commit(project_id, content, session_id="s-1")
    memory.commit(project_id, f"no, {content}", session_id="s-1", corrects=first.episode_id)


def _unpin(memory: BareMemory, *, project_id: str) -> None:
    for pin in memory.pins(project_id)[:1]:
        memory.unpin(project_id, pin.pin_id)


def _purge(memory: BareMemory, *, project_id: str) -> None:
    with suppress(NotFoundError):
        memory.purge(project_id)


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
@given(history=histories(), sealed=st.booleans(), chunk_bytes=st.integers(1, 5000))
def test_export_import_export_gives_the_same_lines(
    history: list[Callable[[BareMemory], None]], sealed: bool, chunk_bytes: int
) -> None:
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        with a_bare_memory(Path(folder) / "source") as source:
            for act in history:
                act(source)
            raw = source.export()
        with a_bare_memory(Path(folder) / "target", sealed=sealed) as target:
            imported = target.take(raw, chunk_bytes=chunk_bytes)
            assert imported.result.whole
            assert not imported.remarks
            again = target.export()
        assert between(again) == between(raw)
        first, second = json.loads(lines_of(raw)[-1]), json.loads(lines_of(again)[-1])
        assert first | {"sha256": ""} == second | {"sha256": ""}
