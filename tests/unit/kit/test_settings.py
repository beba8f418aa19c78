"""The host's settings: which value wins, where it came from, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home
from muniment.kit.settings import Settings, explain, load_settings, unknown_variables


def write(home: Home, text: str) -> None:
    home.settings_file.write_text(text, encoding="utf-8")


def refusal(home: Home) -> PreconditionError:
    with pytest.raises(PreconditionError) as refused:
        load_settings(home)
    with pytest.raises(PreconditionError) as refused_too:
        explain(home)
    assert str(refused.value) == str(refused_too.value)
    assert "\n" not in str(refused.value)
    return refused.value


def origins(home: Home) -> dict[str, tuple[str, str]]:
    return {one.name: (one.value, one.origin) for one in explain(home)}


def test_defaults_need_neither_file_nor_environment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUNIMENT_KEY_FOLDER")
    settings = load_settings(home)
    assert (settings.log_level, settings.drain_seconds) == ("info", 10.0)
    assert {origin for _, origin in origins(home).values()} == {"default"}


def test_the_environment_is_stronger_than_the_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, 'log_level = "debug"\ndrain_seconds = 3\n')
    monkeypatch.setenv("MUNIMENT_LOG_LEVEL", "warning")
    settings = load_settings(home)
    assert (settings.log_level, settings.drain_seconds) == ("warning", 3.0)
    found = origins(home)
    assert found["log_level"] == ("warning", "environment")
    assert found["drain_seconds"] == ("3.0", str(home.settings_file))
    assert found["call_deadline_seconds"] == ("20.0", "default")


def test_an_empty_variable_is_none(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_LOG_LEVEL", "")
    assert load_settings(home).log_level == "info"
    assert origins(home)["log_level"] == ("info", "default")


def test_every_setting_is_explained_by_name(home: Home) -> None:
    told = explain(home)
    assert [one.name for one in told] == sorted(Settings.model_fields)
    assert all(one.description.endswith(".") for one in told)


def test_settings_are_frozen(home: Home) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(load_settings(home), "log_level", "debug")  # noqa: B010


@pytest.mark.parametrize(
    ("text", "field", "says"),
    [
        ('log_level = "loud"', "log_level", "'debug', 'info', 'warning' or 'error'"),
        ("drain_seconds = -1", "drain_seconds", "greater than or equal to 0"),
        ("drain_seconds = nan", "drain_seconds", "less than or equal to 14"),
        ("drain_seconds = 14.5", "drain_seconds", "less than or equal to 14"),
        ('memory_map_bytes = "much"', "memory_map_bytes", "valid integer"),
        ("memory_map_bytes = 1024", "memory_map_bytes", "greater than or equal to"),
        (f"memory_map_bytes = {1 << 62}", "memory_map_bytes", "less than or equal to"),
        ("reply_life_seconds = inf", "reply_life_seconds", "less than or equal to 31622400"),
        ("reply_life_seconds = 1e308", "reply_life_seconds", "less than or equal to 31622400"),
        ("call_deadline_seconds = 0", "call_deadline_seconds", "greater than or equal to 1"),
        ("log_levle = 'info'", "log_levle", "no such setting"),
        ("[memory]\nmap_bytes = 1", "memory", "no such setting"),
    ],
)
def test_a_wrong_line_is_named_with_its_file(home: Home, text: str, field: str, says: str) -> None:
    write(home, text)
    refused = refusal(home)
    assert (refused.reason, refused.field) == ("SETTING_INVALID", field)
    assert says in refused.message
    assert str(home.settings_file) in refused.message
    unknown = "no such setting" in refused.message
    assert (
        "the settings are backend, call_deadline_seconds, code_file_bytes, code_watch"
        in str(refused.fix)
    ) == unknown


def test_a_wrong_variable_is_named_and_its_value_is_not(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_LOG_LEVEL", "hunter2")
    monkeypatch.setenv("MUNIMENT_MEMORY_MAP_BYTES", "hunter2")
    refused = refusal(home)
    assert refused.reason == "SETTING_INVALID"
    assert f"MUNIMENT_{(refused.field or '').upper()}" in refused.message
    assert "hunter2" not in str(refused)


@pytest.mark.parametrize("text", ["log_level = hunter2", 'log_level = "hunter2', "= 1"])
def test_a_file_that_is_no_toml_is_named(home: Home, text: str) -> None:
    write(home, text)
    refused = refusal(home)
    assert refused.reason == "SETTINGS_UNREADABLE"
    assert str(home.settings_file) in refused.message
    assert "hunter2" not in str(refused)


def test_a_file_that_is_no_utf_8_is_named(home: Home) -> None:
    home.settings_file.write_bytes(b'log_level = "\xff"')
    assert refusal(home).reason == "SETTINGS_UNREADABLE"


def test_a_file_that_may_not_be_read_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "")

    def closed(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", closed)
    assert refusal(home).reason == "SETTINGS_UNREADABLE"


def test_an_empty_file_is_fine(home: Home) -> None:
    write(home, "# nothing yet\n")
    assert load_settings(home).log_level == "info"


def test_variables_that_mean_nothing_are_named(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    for name in ("MUNIMENT_LOG_LEVLE", "MUNIMENT_HOME", "MUNIMENT_LOG_LEVEL", "MUNIMENT_FAULTS"):
        monkeypatch.setenv(name, "x")
    assert unknown_variables() == ["MUNIMENT_LOG_LEVLE"]
