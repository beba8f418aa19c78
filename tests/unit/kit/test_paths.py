"""Where a home keeps its things."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from muniment.kit.paths import HOME_VARIABLE, SOCKET_PATH_LIMIT_BYTES, Home


def test_what_is_named_explicitly_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "variable"))
    assert Home.locate(str(tmp_path / "explicit")).path == tmp_path / "explicit"
    assert Home.locate().path == tmp_path / "variable"


@pytest.mark.parametrize("value", [None, ""])
def test_the_platforms_data_folder_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(HOME_VARIABLE, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    home = Home.locate()
    assert home.path.is_relative_to(tmp_path)
    assert home.path.name == "muniment"


def test_one_home_has_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    named = ("real", "./real/", "link", "~/real", f"{tmp_path}/x/../real")
    assert {Home.locate(one) for one in named} == {Home(tmp_path / "real")}


def test_everything_is_below_the_home_where_it_is_short() -> None:
    home = Home(Path("/data/muniment"))
    assert home.socket("memory") == Path("/data/muniment/run/memory.sock")
    assert home.logs == Path("/data/muniment/logs")
    assert home.settings_file == Path("/data/muniment/muniment.toml")
    assert home.data("memory") == Path("/data/muniment/memory")


@pytest.mark.parametrize("length", [1, 60, 70, 71, 72, 73, 80, 90, 200])
@pytest.mark.parametrize("letter", ["x", "é"])
def test_socket_paths_stay_short_however_long_the_home(length: int, letter: str) -> None:
    home = Home(Path("/") / (letter * length))
    longest = home.runtime / "supervisor-12345678.sock"
    assert len(os.fsencode(longest)) < SOCKET_PATH_LIMIT_BYTES
    assert len(os.fsencode(home.socket("memory"))) < SOCKET_PATH_LIMIT_BYTES


def test_long_homes_do_not_share_a_runtime_folder() -> None:
    first, second = (Home(Path("/") / ("x" * 100 + end)) for end in "ab")
    assert first.runtime != second.runtime
    assert first.runtime == Home(first.path).runtime
    assert str(os.getuid()) in str(first.runtime)
