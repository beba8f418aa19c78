"""Text of others is shown without what drives a terminal."""

from __future__ import annotations

from muniment.kit.printable import printable


def test_control_characters_are_spelled_out() -> None:
    assert printable("a\x1b[31m\x9b\x7f\tb\n") == "a\\x1b[31m\\x9b\\x7f\\x09b\\x0a"
    assert printable("a\tb\r\n", one_line=False) == "a\tb\\x0d\n"


def test_changes_of_direction_are_spelled_out() -> None:
    assert printable("a\u202eb\u2066c\u200f", one_line=False) == "a\\u202eb\\u2066c\\u200f"
    assert printable("\u2028") == "\\u2028"
    assert printable("abc \u05d0\u0627\u2713") == "abc \u05d0\u0627\u2713"
