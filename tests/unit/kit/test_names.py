"""Names that callers choose."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.kit.errors import InvalidArgumentError
from muniment.kit.names import NAME_LIMIT_BYTES, check_name


@pytest.mark.parametrize(
    "name", ["", "s", "a b", "Sitzung ä", "会議", "🜲", "x" * NAME_LIMIT_BYTES, "é" * 100]
)
def test_good_names_come_back_as_they_are(name: str) -> None:
    assert check_name("session_id", name) == name


@pytest.mark.parametrize("name", ["x" * (NAME_LIMIT_BYTES + 1), "é" * 101])
def test_the_limit_counts_bytes(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        check_name("session_id", name)
    assert refused.value.reason == "NAME_TOO_LONG"
    assert refused.value.field == "session_id"
    assert str(NAME_LIMIT_BYTES) in refused.value.message


@pytest.mark.parametrize(
    "name", ["a\nb", "\0", "tab\t", "\x1b[31m", "a\x7f", "\u202e", "\u2028", "\udcff"]
)
def test_control_characters_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        check_name("tool_name", name)
    assert refused.value.reason == "NAME_UNPRINTABLE"
    assert refused.value.field == "tool_name"


@given(st.text())
def test_what_is_accepted_can_be_shown_on_one_line(name: str) -> None:
    with suppress(InvalidArgumentError):
        assert check_name("name", name) == name
        assert len(name.splitlines()) <= 1
        assert len(name.encode()) <= NAME_LIMIT_BYTES


def test_a_refusal_does_not_repeat_the_name() -> None:
    for name in ("hunter2\n", "hunter2" * 100):
        with pytest.raises(InvalidArgumentError) as refused:
            check_name("name", name)
        assert "hunter2" not in str(refused.value)
