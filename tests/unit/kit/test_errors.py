"""The tree of errors: what they say, and that it is one tree."""

from __future__ import annotations

import pytest

from muniment.kit import errors

KINDS = [
    getattr(errors, name)
    for name in errors.__all__
    if getattr(errors, name) is not errors.MunimentError
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_muniment_error_and_no_other(kind: type[errors.MunimentError]) -> None:
    assert kind.__bases__ == (errors.MunimentError,)


def test_its_parts_can_be_read() -> None:
    error = errors.NotFoundError("is gone", reason="GONE", field="name", fix="look elsewhere")
    assert (error.message, error.reason, error.field, error.fix) == (
        "is gone",
        "GONE",
        "name",
        "look elsewhere",
    )


@pytest.mark.parametrize(
    ("field", "fix", "text"),
    [
        (None, None, "is wrong"),
        ("k", None, "k: is wrong"),
        (None, "mend it", "is wrong; mend it"),
        ("k", "mend it", "k: is wrong; mend it"),
    ],
)
def test_it_reads_as_one_line(field: str | None, fix: str | None, text: str) -> None:
    error = errors.InvalidArgumentError("is wrong", reason="WRONG", field=field, fix=fix)
    assert str(error) == text
