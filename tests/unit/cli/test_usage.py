"""Wrong usage blames an option or a variable by name, and says where its help is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Runner


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["brew"], "No such command 'brew'; `muniment --help` shows how it is used"),
        (
            ["config", "brew"],
            "No such command 'brew'; `muniment config --help` shows how it is used",
        ),
        (["episodes", "--slot", "1"], "No such option: --slot; `muniment episodes --help`"),
        (["pins", "--sesion", "x"], "No such option: --sesion; did you mean --session?; `muniment"),
        (["config", "show", "--orign"], "did you mean --origin?; `muniment config show --help`"),
        (["restart"], "Missing argument 'service'; `muniment restart --help`"),
        (["commit", "--role", "cook"], "--role: 'cook' is not one of 'system', 'user'"),
        (["recall", "-k", "101", "x"], "-k: must be at most 100; `muniment recall --help`"),
        (["recall", "-k", "many", "x"], "-k: must be a whole number; "),
        (["logs", "memory", "--lines=-1"], "--lines: must be at least 0; "),
        (["status", "--project", "/no/such"], "--project: dir '/no/such' does not exist; "),
        (["ps", "now"], "too many arguments: now; `muniment ps --help`"),
    ],
)
def test_it_is_told_in_one_line(muniment: Runner, words: list[str], told: str) -> None:
    ran = muniment(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("muniment: ")
    assert told in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "rest"),
    [(["recall", "force", "push"], "push"), (["pin", "never", "force", "push"], "force push")],
)
def test_texts_of_several_words_have_to_be_quoted(
    muniment: Runner, words: list[str], rest: str
) -> None:
    told = f'too many arguments: {rest}; quote the text: muniment {words[0]} "..."; '
    assert told in muniment(*words).err


@pytest.mark.parametrize("name", ["MUNIMENT_PROJECT_ROOT", "SAKUR4_PROJECT_ROOT"])
def test_a_variable_is_blamed_for_its_value(
    muniment: Runner, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "/no/such")
    ran = muniment("pins", "--json")
    assert (ran.code, ran.error["reason"]) == (2, "USAGE")
    assert (ran.error["field"], ran.error["message"]) == (name, "dir '/no/such' does not exist")


def test_an_option_is_blamed_where_it_wins_over_a_variable(
    muniment: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MUNIMENT_PROJECT_ROOT", str(tmp_path))
    assert muniment("pins", "--json", "--project", "/no/such").error["field"] == "--project"
