"""Names that callers choose: session ids, tool names, idempotency keys."""

from __future__ import annotations

from muniment.kit.errors import InvalidArgumentError

__all__ = ["NAME_LIMIT_BYTES", "check_name"]

NAME_LIMIT_BYTES = 200
"""Longest name. With it every key that holds names stays within LMDB's limit."""


def check_name(field: str, value: str) -> str:
    """The name itself; it may be empty.

    Raises:
        InvalidArgumentError: It is too long or has control characters.
    """
    # Half a surrogate pair, which has no bytes, is not printable either.
    if not value.isprintable():
        raise InvalidArgumentError(
            "has control characters",
            reason="NAME_UNPRINTABLE",
            field=field,
            fix="use printable characters",
        )
    if len(value.encode()) > NAME_LIMIT_BYTES:
        raise InvalidArgumentError(
            f"is longer than {NAME_LIMIT_BYTES} bytes",
            reason="NAME_TOO_LONG",
            field=field,
            fix="use a shorter one",
        )
    return value
