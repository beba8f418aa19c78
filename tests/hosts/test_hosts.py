"""Real harnesses with a scripted model keep a turn and a rule, and find them in another process.

Not part of the ordinary tests: npm installs more than a gigabyte for them. `make test-hosts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.hosts.harnesses import HARNESSES, Harness, install
from tests.hosts.sessions import LAST_TURN, RULE, TOOLS, TURN, Seen, play
from tests.integration.house import a_house

pytestmark = pytest.mark.timeout(1200)


@dataclass(frozen=True)
class Habits:
    """What docs/harnesses.md says of a harness."""

    offered: str
    """How the model sees our tools."""
    revision: str
    session_source: str
    shows_structure: bool
    """Whether the model is given the structured answer, and not the text."""


HABITS = {
    "claude-code": Habits("mcp__muniment__{}", "2026-07-28", "harness", True),
    "codex": Habits("mcp__muniment:{}", "2025-06-18", "harness", True),
    "opencode": Habits("muniment_{}", "2025-11-25", "derived", False),
}


@pytest.fixture(scope="module", params=HARNESSES, ids=lambda harness: harness.name)
def seen(request: pytest.FixtureRequest) -> Iterator[Seen]:
    """Everything that a harness did, in a house of its own."""
    harness: Harness = request.param
    install()
    with a_house() as house:
        yield play(harness, house)


@pytest.fixture
def habits(seen: Seen) -> Habits:
    """What is expected of it."""
    return HABITS[seen.harness.name]


def test_every_run_comes_to_its_end(seen: Seen) -> None:
    for run, words in (
        (seen.first, "It writes no more."),
        (seen.second, "It recalls no more."),
        (seen.third, "It looks no more."),
    ):
        assert run.ran.code == 0, run.ran
        assert words in run.ran.out, run.ran
        assert run.unknown == []


def test_the_model_sees_each_tool_once(seen: Seen, habits: Habits) -> None:
    expected = [habits.offered.format(tool) for tool in TOOLS]
    for run in (seen.first, seen.second, seen.third):
        assert run.offered() == expected


def test_the_memory_has_what_was_sent_once(seen: Seen) -> None:
    (pin,) = seen.pins
    assert pin["content"] == RULE
    assert [one["role"] for one in seen.episodes] == ["user", "user"]
    assert [content.decode() for content in seen.contents] == [TURN, LAST_TURN]


def test_another_process_recalls_it(seen: Seen, habits: Habits) -> None:
    given = seen.second.returned(-2)
    # In JSON, or behind a margin: then line by line.
    for line in (*TURN.splitlines(), RULE):
        assert (
            json.dumps(line, ensure_ascii=False)[1:-1] if habits.shows_structure else line
        ) in given
    assert given.startswith("=== RECALLED MEMORY ===") is not habits.shows_structure


def test_the_project_is_the_folder(seen: Seen) -> None:
    for status in (_status(seen.first.returned(-3)), _status(seen.second.returned(-1))):
        assert status["project_root"] == str(seen.project)


def test_the_session_is_the_harnesss_own_where_it_tells(seen: Seen, habits: Habits) -> None:
    first, second = _status(seen.first.returned(-3)), _status(seen.second.returned(-1))
    assert first["session_source"] == second["session_source"] == habits.session_source
    assert seen.episodes[0]["session_id"] == first["session_id"] != second["session_id"]
    if habits.session_source == "harness":
        assert first["session_id"] == seen.first.ran.session
        assert second["session_id"] == seen.second.ran.session


def test_the_revision_is_the_one_in_the_documents(seen: Seen, habits: Habits) -> None:
    assert seen.wire.revisions == [habits.revision]


def test_no_front_outlives_its_harness(seen: Seen) -> None:
    assert seen.killed.ran.code != 0
    for run in (seen.first, seen.second, seen.third, seen.killed):
        assert run.fronts
        assert not run.left
    # No process besides, such as one for a probe.
    assert len(seen.second.fronts) == 1


def test_nothing_wants_to_leave_loopback(seen: Seen) -> None:
    for run in (seen.first, seen.second, seen.third, seen.killed):
        assert run.outside == []


def _status(given: str) -> dict[str, str]:
    """The status in what a model was given, which may have words before it."""
    status: dict[str, str] = json.loads(given[given.index("{") :])
    return status
