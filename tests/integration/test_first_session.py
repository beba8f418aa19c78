"""What `make run` plays: the first session of examples/, to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
