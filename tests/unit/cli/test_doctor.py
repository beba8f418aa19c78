"""The doctor finds what is wrong, says what to do, and shows how to register the bridge."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from muniment.cli.main import run
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from tests.unit.cli.conftest import Ran, Runner


def findings(ran: Ran, level: str) -> list[dict[str, Any]]:
    return [one for one in ran.json["findings"] if one["level"] == level]


def test_an_empty_home_is_well(muniment: Runner) -> None:
    ran = muniment("doctor", "--json")
    assert ran.code == 0
    assert not findings(ran, "problem")
    assert not findings(ran, "warning")
    checks = {one["check"] for one in ran.json["findings"]}
    assert checks == {"version", "bridge", "folders", "disk", "settings", "supervisor"}


def test_it_is_plain_in_a_pipe(muniment: Runner) -> None:
    out = muniment("doctor").out
    assert out.startswith("LEVEL  CHECK ")
    assert "\x1b" not in out


def test_folders_that_others_may_enter_are_found(muniment: Runner, home: Home) -> None:
    home.runtime.mkdir(parents=True)
    for folder in (home.path, home.runtime):
        folder.chmod(0o755)
    ran = muniment("doctor", "--json")
    assert ran.code == 1
    assert [one["fix"] for one in findings(ran, "problem")] == [f"chmod 700 {home.runtime}"]
    # The home itself may be a folder that its owner shares; what is in it is private.
    shared = [one["fix"] for one in findings(ran, "warning") if one["check"] == "folders"]
    assert shared == [f"chmod 700 {home.path}"]


def test_sockets_that_others_may_use_are_found(muniment: Runner, home: Home) -> None:
    home.runtime.mkdir(mode=0o700, parents=True)
    home.path.chmod(0o700)
    socket = home.socket("memory")
    socket.write_text("")
    socket.chmod(0o666)
    (found,) = findings(muniment("doctor", "--json"), "problem")
    assert found["message"] == f"others can use {socket} (mode 666)"
    assert found["fix"] == f"chmod 600 {socket}"


def test_a_key_that_others_can_read_is_found(
    muniment: Runner, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "keys of mine"
    monkeypatch.setenv("MUNIMENT_KEY_FOLDER", str(folder))
    shelf = KeyShelf(home, "file", str(folder))
    shelf.keep(HomeKey.make(SystemRandomness(), sealed=False), SystemRandomness())
    assert not findings(muniment("doctor", "--json"), "problem")
    folder.chmod(0o777)
    Path(shelf.where).chmod(0o644)
    ran = muniment("doctor", "--json")
    assert ran.code == 1
    found = [one["fix"] for one in findings(ran, "problem") if one["check"] == "key"]
    assert found == [f"chmod 700 '{folder}'", f"chmod 600 '{shelf.where}'"]


def test_a_link_in_place_of_a_folder_is_found(muniment: Runner, home: Home, tmp_path: Path) -> None:
    home.path.mkdir(mode=0o700)
    home.logs.symlink_to(tmp_path)
    (found,) = findings(muniment("doctor", "--json"), "problem")
    assert found["message"] == f"{home.logs} is a link"
    assert found["fix"] == "remove it, or choose another home"


@pytest.mark.parametrize("below", ["", "below"])
def test_a_home_that_is_a_file_is_found(muniment: Runner, home: Home, below: str) -> None:
    home.path.write_text("")
    ran = muniment("--home", str(home.path / below), "doctor", "--json")
    assert ran.code == 1
    (found,) = findings(ran, "problem")
    assert f"{home.path} is not a folder" in found["message"]
    assert "supervisor" not in {one["check"] for one in ran.json["findings"]}


def test_a_home_that_cannot_be_written_to_is_found(
    muniment: Runner, home: Home, read_only: None
) -> None:
    (found,) = findings(muniment("doctor", "--json"), "problem")
    assert found["message"] == f"nothing can be written to {home.path}"
    missing = home.path / "missing"
    (found,) = findings(muniment("--home", str(missing), "doctor", "--json"), "problem")
    assert found["message"] == f"{missing} cannot be made: nothing can be written to {home.path}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("log_level = loud", "cannot be read"),
        ('log_level = "loud"', "log_level: "),
        ("noise = 1", "noise: no such setting"),
    ],
)
def test_a_broken_settings_file_is_found(
    muniment: Runner, home: Home, text: str, message: str
) -> None:
    home.path.mkdir(mode=0o700)
    home.settings_file.write_text(text)
    ran = muniment("doctor", "--json")
    assert ran.code == 1
    (found,) = findings(ran, "problem")
    assert found["check"] == "settings"
    assert message in found["message"]


def test_settings_that_differ_from_the_default_are_named(muniment: Runner, home: Home) -> None:
    home.path.mkdir(mode=0o700)
    home.settings_file.write_text('log_level = "debug"')
    (found,) = [one for one in findings(muniment("doctor", "--json"), "ok")
                if one["check"] == "settings"]  # fmt: skip
    assert found["message"] == "changed from the default: log_level"


def test_variables_that_mean_nothing_are_found(
    muniment: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = ("KINT_HOME", "MUNIMENT_LOG_LEVLE", "SAKUR4_DB", "SIBYL_CREDENTIALS")
    right = ("KINT_TENANT", "MUNIMENT_LOG_LEVEL", "MUNIMENT_TENANT", "SAKUR4_SESSION")
    for name in (*wrong, *right):
        monkeypatch.setenv(name, "info")
    ran = muniment("doctor", "--json")
    assert ran.code == 0
    told = " ".join(one["message"] for one in findings(ran, "warning"))
    assert all(f"variable {name} means nothing" in told for name in wrong)
    assert len(findings(ran, "warning")) == len(wrong)


def test_the_other_programs_store_is_seen(
    muniment: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = tmp_path / "other one.db"
    monkeypatch.setenv("SIBYL_MEMORY_DB", str(store))
    (warning,) = findings(muniment("doctor", "--json"), "warning")
    assert "does not exist" in warning["message"]
    store.write_text("")
    ran = muniment("doctor", "--json")
    assert not findings(ran, "warning")
    told = " ".join(one["message"] for one in findings(ran, "ok"))
    assert "never written" in told
    assert f"muniment records import-from '{store}'" in told


def test_an_earlier_failure_to_start_is_told(muniment: Runner, home: Home) -> None:
    home.runtime.mkdir(mode=0o700, parents=True)
    home.path.chmod(0o700)
    (home.runtime / "memory.why").write_text("the store is newer; upgrade\n")
    (found,) = findings(muniment("doctor", "--json"), "problem")
    assert found["check"] == "memory"
    assert "the store is newer; upgrade" in found["message"]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("free", "level", "size"),
    [
        (40 * 1024**2, "problem", "40 MiB"),
        (500 * 1024**2, "warning", "500 MiB"),
        (3 * 1024**3, "ok", "3.0 GiB"),
    ],
)
def test_a_full_disk_is_found(
    muniment: Runner, monkeypatch: pytest.MonkeyPatch, free: int, level: str, size: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12 - free, free))
    told = findings(muniment("doctor", "--json"), level)
    (found,) = (one for one in told if one["check"] == "disk")
    assert found["message"].startswith(f"{size} are free at ")


def test_registrations_name_the_bridge_and_the_home(muniment: Runner, home: Home) -> None:
    program = str(Path(sys.executable).with_name("muniment-mcp"))
    ready = muniment("doctor", "--json").json["registrations"]
    words = shlex.split(ready["Claude Code"])
    assert words[:3] == ["claude", "mcp", "add"]
    assert words[words.index("--env") + 1] == f"MUNIMENT_HOME={home.path}"
    assert words[-2:] == ["--", program]
    codex = tomllib.loads(ready["Codex (config.toml)"])["mcp_servers"]["muniment"]
    assert codex == {
        "command": program,
        "startup_timeout_sec": 20,
        "required": True,
        "env": {"MUNIMENT_HOME": str(home.path)},
    }
    opencode = json.loads(ready["OpenCode (opencode.json)"])["mcp"]["muniment"]
    assert opencode["command"] == [program]
    assert opencode["environment"] == {"MUNIMENT_HOME": str(home.path)}


def test_registrations_name_what_the_environment_says(
    muniment: Runner, home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = {
        "MUNIMENT_HOME": str(home.path),
        "MUNIMENT_KEY_STORE": "file",
        "MUNIMENT_KEY_FOLDER": str(tmp_path / "stick"),
        "MUNIMENT_TENANT": "team",
        "MUNIMENT_PROFILE": "vault",
    }
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    ready = muniment("doctor", "--json").json["registrations"]
    words = shlex.split(ready["Claude Code"])
    given = [after for word, after in pairwise(words) if word == "--env"]
    assert given == [f"{name}={value}" for name, value in wanted.items()]
    assert tomllib.loads(ready["Codex (config.toml)"])["mcp_servers"]["muniment"]["env"] == wanted
    opencode = json.loads(ready["OpenCode (opencode.json)"])["mcp"]["muniment"]
    assert opencode["environment"] == wanted


def test_a_home_that_is_found_anyway_is_not_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MUNIMENT_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    run(["doctor", "--json"])
    assert "MUNIMENT_HOME" not in capsys.readouterr().out
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    run(["doctor", "--json"])
    for text in json.loads(capsys.readouterr().out)["registrations"].values():
        assert str(tmp_path / "data" / "muniment") in text
