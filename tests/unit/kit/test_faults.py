"""Fault points kill the process where and when a test says, and cost nothing otherwise."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muniment.kit import faults
from tests.support.homes import clean_environment

VISITS = """\
import sys
from muniment.kit import faults

for visit in range(1, 6):
    print(visit, flush=True)
    faults.reach("store.before_commit")
"""


def visit(folder: Path | None) -> tuple[int, list[int]]:
    """Visit the point five times in a process of its own: its exit code, and the visits begun."""
    variables = {} if folder is None else {faults.VARIABLE: str(folder)}
    ran = subprocess.run(
        [sys.executable, "-c", VISITS],
        env=clean_environment() | variables,
        capture_output=True,
        check=False,
        text=True,
        timeout=30,
    )
    assert not ran.stderr
    return ran.returncode, [int(line) for line in ran.stdout.split()]


def test_the_process_dies_at_the_visit_and_the_point_is_disarmed(tmp_path: Path) -> None:
    armed = tmp_path / "store.before_commit"
    armed.write_text("3")
    assert visit(tmp_path) == (-signal.SIGKILL, [1, 2, 3])
    assert not armed.exists()
    assert visit(tmp_path) == (0, [1, 2, 3, 4, 5])


def test_visits_are_counted_over_processes(tmp_path: Path) -> None:
    armed = tmp_path / "store.before_commit"
    armed.write_text("7")
    assert visit(tmp_path) == (0, [1, 2, 3, 4, 5])
    assert armed.read_text() == "2"
    assert visit(tmp_path) == (-signal.SIGKILL, [1, 2])


def test_an_empty_file_means_the_first_visit_and_others_stay_armed(tmp_path: Path) -> None:
    (tmp_path / "store.before_commit").touch()
    (tmp_path / "never.visited").touch()
    assert visit(tmp_path) == (-signal.SIGKILL, [1])
    assert [one.name for one in tmp_path.iterdir()] == ["never.visited"]


def test_without_the_variable_files_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store.before_commit").write_text("1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(faults, "_folder", None)
    faults.reach("store.before_commit")
    assert (tmp_path / "store.before_commit").exists()


def test_a_point_that_is_not_armed_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_folder", None)
    began = time.process_time()
    for _ in range(100_000):
        faults.reach("store.before_commit")
    assert time.process_time() - began < 1.0
