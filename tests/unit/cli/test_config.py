"""Settings are shown with where they come from."""

from __future__ import annotations

import pytest

from muniment.kit.paths import Home
from tests.unit.cli.conftest import Runner


def test_each_setting_has_an_origin(
    muniment: Runner, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.path.mkdir(mode=0o700)
    home.settings_file.write_text('log_level = "debug"')
    monkeypatch.setenv("MUNIMENT_DRAIN_SECONDS", "3")
    shown = {one["name"]: one for one in muniment("config", "show", "--json").json}
    assert shown["log_level"]["origin"] == str(home.settings_file)
    assert shown["log_level"]["value"] == "debug"
    assert shown["drain_seconds"]["origin"] == "environment"
    assert shown["call_deadline_seconds"]["origin"] == "default"


def test_origins_are_a_column_where_asked_for(muniment: Runner) -> None:
    assert muniment("config", "show").out.startswith("SETTING ")
    assert "ORIGIN" not in muniment("config", "show").out
    assert "ORIGIN" in muniment("config", "show", "--origin").out


def test_a_broken_file_is_an_error(muniment: Runner, home: Home) -> None:
    home.path.mkdir(mode=0o700)
    home.settings_file.write_text("log_level =")
    ran = muniment("config", "show", "--json")
    assert (ran.code, ran.error["reason"]) == (1, "SETTINGS_UNREADABLE")
