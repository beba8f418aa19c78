"""Without a supervisor: what runs is nothing, and that is no error."""

from __future__ import annotations

import pytest

from muniment.kit.paths import Home
from tests.unit.cli.conftest import Runner

STOPPED = {"state": "STOPPED", "pid": None, "uptime_seconds": None}


def test_ps_lists_what_would_run(muniment: Runner) -> None:
    ran = muniment("ps", "--json")
    assert ran.code == 0
    assert ran.json == [{"name": name, **STOPPED} for name in ("code", "memory", "slots", "worker")]


def test_ps_is_plain_in_a_pipe(muniment: Runner) -> None:
    assert muniment("ps").out == (
        "NAME    STATE    PID  UPTIME\n"
        "code    STOPPED  -    -\n"
        "memory  STOPPED  -    -\n"
        "slots   STOPPED  -    -\n"
        "worker  STOPPED  -    -\n"
    )  # fmt: skip


def test_ps_shows_why_one_could_not_start(muniment: Runner, home: Home) -> None:
    home.runtime.mkdir(mode=0o700, parents=True)
    (home.runtime / "memory.why").write_text("no \x1b[2Jroom; make some\n")
    _, memory, _, worker = muniment("ps", "--json").json
    assert memory == {"name": "memory", **STOPPED, "why": "no \x1b[2Jroom; make some"}
    assert "why" not in worker
    assert "no \\x1b[2Jroom; make some" in muniment("ps").out


def test_ps_lists_the_users_own_programs(muniment: Runner, home: Home) -> None:
    own = home.runtime / "conf.d"
    own.mkdir(mode=0o700, parents=True)
    (own / "mine.conf").write_text("[program:mine]\ncommand = sleep 1000\n")
    assert [one["name"] for one in muniment("ps", "--json").json] == [
        "code",
        "memory",
        "slots",
        "worker",
        "mine",
    ]


def test_ps_makes_no_home(muniment: Runner, home: Home) -> None:
    muniment("ps")
    assert not home.path.exists()


def test_down_has_nothing_to_do(muniment: Runner, home: Home) -> None:
    ran = muniment("down", "--json")
    assert (ran.code, ran.json) == (0, {"stopped": False})
    assert not home.path.exists()


def test_a_home_on_a_read_only_file_system_is_looked_at_all_the_same(
    muniment: Runner, home: Home, read_only: None
) -> None:
    assert muniment("ps").code == 0
    assert muniment("down").out == "nothing was running\n"


def test_a_home_that_is_a_file_is_told(muniment: Runner, home: Home) -> None:
    home.path.write_text("")
    assert muniment("ps").code == 0
    ran = muniment("restart", "memory", "--json")
    assert (ran.code, ran.error["reason"]) == (1, "FOLDER_UNUSABLE")
    assert ran.error["message"] == f"the home {home.path} is not a folder"


@pytest.mark.parametrize("words", [["restart", "memory"], ["metrics"]])
def test_what_needs_a_supervisor_says_how_to_start_one(muniment: Runner, words: list[str]) -> None:
    ran = muniment(*words, "--json")
    assert ran.code == 1
    assert ran.error["reason"] == "SUPERVISOR_NOT_RUNNING"
    assert ran.error["fix"] == "start the services with `muniment up`"
