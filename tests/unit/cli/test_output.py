"""Output is plain where nobody looks, and never drives a terminal."""

from __future__ import annotations

import pytest

from muniment.cli.output import print_json, print_table, print_text, printable


def test_control_characters_are_spelled_out() -> None:
    assert printable("a\x1b[31m\x9b\x7f\tb\n") == "a\\x1b[31m\\x9b\\x7f\\x09b\\x0a"
    assert printable("a\tb\r\n", one_line=False) == "a\tb\\x0d\n"


def test_columns_are_aligned_by_what_a_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["word", "n"], [["漢字", "1"], ["abc", "22"]])
    assert capsys.readouterr().out == "WORD  N\n漢字  1\nabc   22\n"


def test_json_keeps_what_is_not_unicode(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "é\x1b"})
    assert capsys.readouterr().out == '{\n  "text": "é\\u001b"\n}\n'


def test_text_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_text("a\nb\x1b")
    assert capsys.readouterr().out == "a\nb\\x1b\n"
