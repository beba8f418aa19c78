"""Reaching the worker: starting it, waiting for it, and knowing when that is no use."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable

import pytest

from muniment.bridge import dialling
from muniment.bridge.dialling import Dialler, UnreachableError
from muniment.kit.paths import Home
from tests.unit.bridge.wire import WorkerSocket

BUDGET_SECONDS = 0.3


@pytest.fixture(autouse=True)
def _at_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_HOME", str(home.path))


def unwanted(_: float) -> bool:
    return False


def wanted(_: float) -> bool:
    return True


def starter(*deeds: Callable[[Home], bool]) -> Callable[[Home, float], bool]:
    """Does one thing after the other, and then keeps doing the last."""
    left = list(deeds)

    def ensure_running(home: Home, deadline_seconds: float) -> bool:
        assert deadline_seconds > 0
        return (left.pop(0) if len(left) > 1 else left[0])(home)

    return ensure_running


def runs_already(_: Home) -> bool:
    return False


def write_reason(home: Home, text: str, *, age_ns: int = 0) -> None:
    home.runtime.mkdir(parents=True, exist_ok=True)
    path = home.runtime / "worker.why"
    path.write_text(text)
    written = path.stat().st_mtime_ns - age_ns
    os.utime(path, ns=(written, written))


def test_a_worker_that_is_there_is_not_started(home: Home) -> None:
    def never(*_: object) -> bool:
        raise AssertionError

    with WorkerSocket(home):
        connection = Dialler(never, BUDGET_SECONDS).connect(
            may_start=True, is_wanted_after=unwanted
        )
        assert connection is not None
        connection.close()


def test_a_worker_is_started_and_waited_for(home: Home) -> None:
    started: list[WorkerSocket] = []

    def start(at: Home) -> bool:
        assert at == home
        return True

    def appear(_: float) -> bool:
        started.append(WorkerSocket(home))
        return True

    connection = Dialler(starter(start), 10.0).connect(may_start=True, is_wanted_after=appear)
    assert connection is not None
    connection.close()
    with started[0]:
        assert len(started) == 1


def test_nobody_waits_any_more() -> None:
    dialler = Dialler(starter(runs_already), 10.0)
    assert dialler.connect(may_start=True, is_wanted_after=unwanted) is None


def test_nothing_is_started_where_that_is_not_allowed() -> None:
    def never(*_: object) -> bool:
        raise AssertionError

    assert Dialler(never, 10.0).connect(may_start=False, is_wanted_after=unwanted) is None


def test_the_budget_ends_it(home: Home) -> None:
    with pytest.raises(UnreachableError) as failed:
        Dialler(starter(runs_already), BUDGET_SECONDS).connect(
            may_start=True, is_wanted_after=wanted
        )
    assert str(home.socket("worker")) in str(failed.value)
    assert "0.3 s" in str(failed.value)
    assert "No such file" in str(failed.value)


def test_a_reason_given_now_ends_it_at_once(home: Home) -> None:
    write_reason(home, "an older reason", age_ns=10**12)

    def give_up(at: Home) -> bool:
        write_reason(at, "muniment.toml: no such setting\n")
        return True

    with pytest.raises(UnreachableError, match=r"cannot start: muniment\.toml: no such setting"):
        Dialler(starter(give_up), 60.0).connect(may_start=True, is_wanted_after=wanted)


def test_a_reason_already_told_shortens_the_wait(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialling, "GIVEN_UP_BUDGET_SECONDS", BUDGET_SECONDS)

    def give_up(at: Home) -> bool:
        write_reason(at, "the store is newer")
        return True

    dialler = Dialler(starter(give_up, runs_already), 60.0)
    for mentions in ("cannot start: the store is newer", "had said: the store is newer"):
        with pytest.raises(UnreachableError, match=mentions):
            dialler.connect(may_start=True, is_wanted_after=wanted)


def test_an_older_reason_is_waited_out(home: Home) -> None:
    write_reason(home, "of a former life", age_ns=10**12)
    worker: list[WorkerSocket] = []

    def appear(_: float) -> bool:
        worker.append(WorkerSocket(home))
        return True

    connection = Dialler(starter(runs_already), 60.0).connect(
        may_start=True, is_wanted_after=appear
    )
    assert connection is not None
    connection.close()
    with worker[0]:
        assert len(worker) == 1


def test_a_start_that_fails_is_told_in_its_words() -> None:
    def fail(_: Home) -> bool:
        raise RuntimeError("the disk is full")

    with pytest.raises(UnreachableError, match="could not be started: the disk is full"):
        Dialler(starter(fail), 60.0).connect(may_start=True, is_wanted_after=wanted)


def test_a_home_that_is_no_folder_is_said(home: Home) -> None:
    home.path.write_text("a file")
    with pytest.raises(UnreachableError, match=f"home {home.path} cannot be used"):
        Dialler(None, 60.0).connect(may_start=True, is_wanted_after=wanted)


def test_the_socket_of_somebody_else_is_not_spoken_to(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def somebody(connection: socket.socket, *_: int) -> bytes:
        return struct.pack("3i", 1, os.getuid() + 1, 1)

    monkeypatch.setattr(socket.socket, "getsockopt", somebody)
    with WorkerSocket(home), pytest.raises(UnreachableError, match="belongs to user"):
        Dialler(starter(runs_already), 60.0).connect(may_start=True, is_wanted_after=wanted)


def test_the_supervisor_is_looked_after_while_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "_SUPERVISOR_RECHECK_SECONDS", 0.0)
    asked: list[float] = []

    def ensure_running(home: Home, deadline_seconds: float) -> bool:
        asked.append(time.monotonic())
        return False

    with pytest.raises(UnreachableError):
        Dialler(ensure_running, BUDGET_SECONDS).connect(may_start=True, is_wanted_after=wanted)
    assert len(asked) > 1
