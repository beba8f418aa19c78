"""Errors are one line or one object, never a stack trace; exit codes say which kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from muniment.cli import house
from muniment.cli.main import run
from muniment.kit.paths import Home
from tests.unit.cli.conftest import Runner


def test_without_a_command_it_helps(muniment: Runner) -> None:
    ran = muniment()
    assert ran.code == 0
    assert "Usage: muniment" in ran.out


def test_version_needs_no_home(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("muniment ")


@pytest.mark.parametrize("group", ["config", "key"])
def test_a_group_without_a_command_helps(muniment: Runner, group: str) -> None:
    ran = muniment(group)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: muniment {group}")


def test_wrong_usage_is_json_where_asked_for(muniment: Runner) -> None:
    ran = muniment("ps", "--hot", "--json")
    assert ran.code == 2
    assert ran.error["reason"] == "USAGE"


def test_after_two_dashes_json_is_a_text(muniment: Runner) -> None:
    ran = muniment("restart", "--", "--json")
    assert ran.code == 1
    assert ran.err.startswith("muniment: service: no service is called --json")


def test_an_error_names_its_field_and_its_fix(muniment: Runner) -> None:
    ran = muniment("restart", "nobody", "--json")
    assert ran.code == 1
    assert ran.error == {
        "reason": "SERVICE_UNKNOWN",
        "message": "no service is called nobody",
        "field": "service",
        "fix": "use one of memory, slots, worker, all",
    }


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["pins"], "--project"),
        (["recall", "words"], "--project"),
        (["--home", "relative", "ps"], "--home as an absolute path"),
    ],
)
def test_a_deleted_current_folder_is_told(
    home: Home, tmp_path: Path, words: list[str], way_out: str
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    script = 'rmdir "$PWD" && exec "$@"'
    ran = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "muniment.cli", *words],
        cwd=folder,
        env={**os.environ, "MUNIMENT_HOME": str(home.path)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("muniment: the current folder was deleted")
    assert way_out in ran.stderr
    assert not home.path.exists()


def test_a_defect_is_one_line_that_says_where(
    muniment: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(house, "list_services", broken)
    ran = muniment("ps")
    assert ran.code == 1
    assert ran.err.startswith("muniment: ZeroDivisionError: by nought (at ")
    assert ran.err.count("\n") == 1


def test_interruption_is_quiet(muniment: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(house, "list_services", interrupted)
    ran = muniment("ps")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_a_reader_who_left_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "muniment.cli", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process, process.stderr:
        assert process.stderr.read() == b""


def test_whatever_the_locale_output_is_utf8() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "muniment.cli", "restart", "字"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert ran.stderr.decode().startswith("muniment: service: no service is called 字")
