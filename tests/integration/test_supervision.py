"""The services under their real supervisor: started, killed, given up on, stopped."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator

import pytest

from muniment.cli.services import list_services
from tests.integration.house import House, a_house, is_running
from tests.waiting import until

pytestmark = pytest.mark.timeout(180)

SERVICES = ["code", "memory", "slots", "worker"]


@pytest.fixture
def house() -> Iterator[House]:
    with a_house() as house:
        yield house


@pytest.fixture
def raised_house(house: House) -> House:
    house.must("up")
    return house


@pytest.fixture(scope="module")
def shared_house() -> Iterator[House]:
    """One that is up, for tests that leave it up."""
    with a_house() as house:
        house.must("up")
        yield house


def kill(house: House, name: str) -> int:
    """Kill a service that runs; wait until another process runs in its place."""
    first = until(lambda: running_pid(house, name), f"{name} runs")
    os.kill(first, signal.SIGKILL)
    return until(lambda: running_pid(house, name, but=first), f"{name} is restarted")


def running_pid(house: House, name: str, *, but: int | None = None) -> int | None:
    (service,) = (one for one in list_services(house.home) if one.name == name)
    return service.pid if service.state == "RUNNING" and service.pid != but else None


def test_a_house_goes_up_and_down(house: House) -> None:
    raised = house.must("up")
    assert raised["started"]
    assert [one["name"] for one in raised["services"]] == SERVICES
    for one in house.must("ps"):
        assert set(one) == {"name", "state", "pid", "uptime_seconds"}
        assert one["state"] == "RUNNING"
        assert isinstance(one["uptime_seconds"], int)
    assert not house.must("up")["started"]
    pids = house.pids()
    assert all(map(is_running, pids))
    assert house.must("down") == {"stopped": True}
    assert not any(map(is_running, pids))
    assert [one["state"] for one in house.must("ps")] == ["STOPPED"] * len(SERVICES)
    assert not list(house.home.runtime.glob("*.sock"))


def test_only_its_owner_reaches_it(shared_house: House) -> None:
    home = shared_house.home
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.runtime.glob("*.sock")}
    assert modes == {f"{name}.sock": 0o600 for name in (*SERVICES, "supervisor")}
    folders = (path for path in (home.path, *home.path.rglob("*")) if path.is_dir())
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in folders)
    files = (path for path in home.path.rglob("*") if path.is_file() and not path.is_symlink())
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)


def test_one_that_is_killed_ten_times_is_restarted_ten_times(shared_house: House) -> None:
    for _ in range(10):
        kill(shared_house, "memory")
    until(lambda: shared_house.run("status").code == 0, "the memory answers")


def test_restarting_makes_another_process(shared_house: House) -> None:
    before = {one["name"]: one["pid"] for one in shared_house.must("ps")}
    after = {one["name"]: one["pid"] for one in shared_house.must("restart", "memory")}
    assert after["memory"] != before["memory"]
    assert after["worker"] == before["worker"]
    again = {one["name"]: one["pid"] for one in shared_house.must("restart", "all")}
    assert again["memory"] != after["memory"]
    assert again["worker"] != after["worker"]


def test_one_that_knows_why_it_cannot_start_is_given_up_on(house: House) -> None:
    house.home.path.mkdir(mode=0o700)
    house.home.settings_file.write_text('log_level = "loud"')
    ran = house.run("up", "--json")
    assert ran.code == 1
    assert "log_level" in ran.err
    assert "SERVICE_GIVEN_UP" in ran.err
    until(
        lambda: {one.state for one in list_services(house.home)} == {"EXITED"},
        "all are given up on",
    )
    assert "log_level" in house.service("memory")["why"]
    assert "log_level" in house.run("ps").out.decode()
    assert "log_level" in house.run("status").err
    doctor = house.run("doctor", "--json")
    assert doctor.code == 1
    problems = {one["check"] for one in doctor.json["findings"] if one["level"] == "problem"}
    assert problems == {"settings", *SERVICES}

    house.home.settings_file.write_text('log_level = "debug"')
    assert house.run("up").out.startswith(b"started memory, slots, worker\n")
    assert "why" not in house.service("memory")
    assert not house.must("up")["started"]


def test_what_a_killed_supervisor_leaves_is_replaced(raised_house: House) -> None:
    left = raised_house.pids()
    raised_house.must("commit", "--role", "user", "kept")
    os.kill(raised_house.supervisor_pid(), signal.SIGKILL)
    doctor = raised_house.run("doctor")
    assert doctor.code == 1
    assert b"it was killed, and memory, slots, worker went on without it" in doctor.out
    assert b"none runs" not in doctor.out
    assert raised_house.must("up")["started"]
    assert not any(map(is_running, left))
    assert len(raised_house.must("episodes")) == 1


def test_down_ends_what_a_killed_supervisor_left(raised_house: House) -> None:
    left = raised_house.pids()
    os.kill(raised_house.supervisor_pid(), signal.SIGKILL)
    assert raised_house.must("down") == {"stopped": True}
    assert not any(map(is_running, left))
    assert not list(raised_house.home.runtime.glob("*.sock"))
    assert not (raised_house.home.runtime / "supervisord.pid").exists()


@pytest.mark.parametrize("name", ["with space & 漢字 100%", "h" * 210])
def test_any_home_will_do(name: str) -> None:
    with a_house(name) as house:
        house.must("commit", "--role", "user", "something to remember")
        assert len(house.must("recall", "remember")["results"]) == 1
        assert house.run("doctor").code == 0
        assert all(path.stat().st_size for path in house.home.logs.glob("memory.log"))
        assert len(os.fsencode(house.home.socket("supervisor"))) < 100


def test_settings_that_differ_from_the_services_are_told(shared_house: House) -> None:
    findings = shared_house.run(
        "doctor", "--json", environment={"MUNIMENT_DRAIN_SECONDS": "3"}
    ).json["findings"]
    warnings = [one for one in findings if one["level"] == "warning"]
    assert sorted({one["check"] for one in warnings}) == SERVICES[:3]
    warning = warnings[0]
    assert warning["message"] == (
        "drain_seconds is 10.0 in the service (default) and 3.0 here (environment)"
    )
    assert warning["fix"] == "`muniment down`, then `muniment up`"


def test_homes_are_apart(shared_house: House) -> None:
    with a_house() as other:
        assert [one["state"] for one in other.must("ps")] == ["STOPPED"] * len(SERVICES)
        assert other.must("down") == {"stopped": False}
    assert shared_house.service("memory")["state"] == "RUNNING"
