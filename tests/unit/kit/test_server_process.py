"""How a service's process ends, so that supervisord and people understand it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from muniment.kit.paths import Home
from muniment.kit.server import CANNOT_START
from tests.support.homes import a_home, clean_environment
from tests.waiting import until

PROCESS = """\
import atexit
import os
import sys
import time

from muniment.kit.errors import PreconditionError
from muniment.kit.server import Service, run_process, serve
from muniment.kit.clock import SystemClock

async def main(home, settings):
    match sys.argv[1]:
        case "refuse":
            print(oct(os.umask(0)))
            raise PreconditionError("the store is newer", reason="SCHEMA_UNKNOWN", fix="upgrade")
        case "break":
            raise ZeroDivisionError
        case "serve":
            service = Service("probe", (), lambda server: None)
            await serve(service, home, settings, SystemClock())

began = time.monotonic()
atexit.register(lambda: print("lived", time.monotonic() - began))
run_process("probe", main)
"""

LONGEST_SECONDS = 30.0


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    seconds_lived: float
    """From the start of `run_process`, so without what was imported before."""
    out: str
    err: str
    why: str | None

    @property
    def last_line(self) -> dict[str, Any]:
        """The newest line of its log."""
        line: dict[str, Any] = json.loads(self.err.splitlines()[-1])
        return line


def begin(home: Home, does: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, does],
        env=clean_environment() | {"MUNIMENT_HOME": str(home.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def to_its_end(does: str, prepare: Callable[[Home], None]) -> Ended:
    with a_home(with_runtime=False) as home:
        home.path.mkdir(mode=0o700)
        prepare(home)
        with begin(home, does) as process:
            out, err = process.communicate(timeout=LONGEST_SECONDS)
        out, _, lived = out.rpartition("lived ")
        why = home.why("probe")
        return Ended(
            process.returncode, float(lived), out, err, why.read_text() if why.is_file() else None
        )


def nothing(_: Home) -> None:
    """Leave the home as it is."""


def wrong_setting(home: Home) -> None:
    home.path.mkdir(exist_ok=True)
    home.settings_file.write_text('log_level = "loud"')


CASES: dict[str, tuple[str, Callable[[Home], None]]] = {
    "refuses": ("refuse", nothing),
    "breaks": ("break", nothing),
    "wrong setting": ("serve", wrong_setting),
}


@pytest.fixture(scope="module")
def ended() -> dict[str, Ended]:
    """How each case ended. All run at once, since each takes its time."""
    with ThreadPoolExecutor(len(CASES)) as threads:
        running = {name: threads.submit(to_its_end, *case) for name, case in CASES.items()}
    return {name: one.result() for name, one in running.items()}


def test_a_known_cause_is_left_in_one_line_for_the_doctor(ended: dict[str, Ended]) -> None:
    refused = ended["refuses"]
    assert refused.code == CANNOT_START == 78
    assert refused.why == "the store is newer; upgrade\n"
    assert refused.last_line["event"] == "cannot start"
    assert refused.last_line["reason"] == "SCHEMA_UNKNOWN"


@pytest.mark.parametrize("case", ["refuses", "wrong setting"])
def test_it_lives_longer_than_startsecs(ended: dict[str, Ended], case: str) -> None:
    assert ended[case].code == CANNOT_START
    assert ended[case].seconds_lived >= 1.2


def test_wrong_settings_are_a_known_cause(ended: dict[str, Ended]) -> None:
    why = ended["wrong setting"].why or ""
    assert why.startswith("log_level: ")
    assert why.count("\n") == 1


def test_a_defect_is_a_crash_that_supervisord_tries_again(ended: dict[str, Ended]) -> None:
    broken = ended["breaks"]
    assert broken.code == 1
    assert broken.why is None
    assert "ZeroDivisionError" in broken.err


def test_what_it_makes_is_for_its_owner_alone(ended: dict[str, Ended]) -> None:
    assert ended["refuses"].out == "0o77\n"


def test_it_serves_until_it_is_told_to_stop() -> None:
    with a_home() as home:
        home.why("probe").write_text("of a former life\n")
        with begin(home, "serve") as process:
            # The reason is taken back when the service is up.
            until(lambda: not home.why("probe").exists(), "the service is up")
            assert home.socket("probe").exists()
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=LONGEST_SECONDS)
        assert process.returncode == 0
        assert not home.socket("probe").exists()
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert events == ["serving", "draining", "stopped"]
