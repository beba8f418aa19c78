"""What `make run` plays: the first session of examples/, to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.integration.house import is_running

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).resolve().parents[2]


def test_the_first_session_holds() -> None:
    played = subprocess.run(
        [sys.executable, ROOT / "examples" / "first_session" / "play.py", "--plain"],
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=200,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stderr == ""
    assert " held. Played in " in played.stdout


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_told_to_stop_it_leaves_nothing(number: signal.Signals) -> None:
    with tempfile.TemporaryDirectory(prefix="mu-", dir="/tmp") as folder:
        playing = subprocess.Popen(
            [sys.executable, ROOT / "examples" / "first_session" / "play.py", "--plain"],
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMPDIR": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        with playing:
            assert playing.stdout is not None
            assert any("== Session 1 ==" in line for line in playing.stdout)
            (pid_file,) = Path(folder).glob("muniment-*/home/run/supervisord.pid")
            supervisor = int(pid_file.read_text())
            playing.send_signal(number)
            playing.stdout.read()
            assert playing.wait(100) == 130
        assert not is_running(supervisor)
        assert not list(Path(folder).iterdir())
