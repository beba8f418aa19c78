"""Output is plain where nobody looks, and never drives a terminal."""

from __future__ import annotations

import json
import re
import sys

import pytest

from muniment.cli.output import (
    counted,
    print_json,
    print_table,
    print_text,
    to_the_second,
)


def test_columns_are_aligned_by_what_a_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["word", "n"], [["漢字", "1"], ["abc", "22"]])
    assert capsys.readouterr().out == "WORD  N\n漢字  1\nabc   22\n"


def test_a_column_without_a_value_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["id", "session", "rule"], [["1", "", "a"], ["2", "", ""]])
    assert capsys.readouterr().out == "ID  RULE\n1   a\n2   -\n"


@pytest.mark.parametrize("width", [20, 40, 60])
def test_ids_stay_whole_on_any_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    rule = " ".join(["never"] * 20)
    print_table(["pin", "rule", "other"], [["pin_" + "1" * 32, rule, "ep_2"]], whole=("pin",))
    lines = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()
    assert lines[1].startswith("pin_" + "1" * 32)
    assert "".join(lines).count("never") == 20
    assert max(map(len, lines)) <= max(width, 36 + len("  RULE  OTHER  "))


def test_words_are_counted() -> None:
    assert [counted(n, "pin") for n in (0, 1, 2)] == ["0 pins", "1 pin", "2 pins"]


@pytest.mark.parametrize("timestamp", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678901Z"])
def test_times_are_shown_to_the_second(timestamp: str) -> None:
    assert to_the_second(timestamp) == "2026-01-02 03:04:05Z"


def test_json_keeps_what_is_not_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "é\x1b"})
    assert capsys.readouterr().out == '{\n  "text": "é\\u001b"\n}\n'


def test_json_escapes_what_drives_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"te\u202ext": "\x9b\u2066\x7f"})
    out = capsys.readouterr().out
    assert out == '{\n  "te\\u202ext": "\\u009b\\u2066\\u007f"\n}\n'
    assert json.loads(out) == {"te\u202ext": "\x9b\u2066\x7f"}


def test_text_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_text("a\nb\x1b")
    assert capsys.readouterr().out == "a\nb\\x1b\n"
