"""The errors of the house: one small tree, translated to gRPC and to MCP in one place each.

An error says what is wrong, which field it concerns and what to do next, in words for the
person or agent who reads them. It never carries a secret or a stack trace.
"""

from __future__ import annotations

__all__ = [
    "ConflictError",
    "InternalError",
    "InvalidArgumentError",
    "LimitError",
    "MunimentError",
    "NotFoundError",
    "PreconditionError",
    "TamperedError",
    "TimedOutError",
    "UnavailableError",
]


class MunimentError(Exception):
    """Any error that a user may see.

    Args:
        message: What is wrong, as a sentence without the fix.
        reason: UPPER_SNAKE_CASE, stable across versions (google.rpc.ErrorInfo.reason).
        field: The argument at fault, where there is one.
        fix: What to do or run next.
    """

    def __init__(
        self, message: str, *, reason: str, field: str | None = None, fix: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.field = field
        self.fix = fix

    def __str__(self) -> str:
        """The message and the fix, as one line."""
        text = self.message if self.field is None else f"{self.field}: {self.message}"
        return f"{text}; {self.fix}" if self.fix else text


class InvalidArgumentError(MunimentError):
    """An argument is missing, malformed or out of range."""


class NotFoundError(MunimentError):
    """What the call names does not exist where it looked."""


class ConflictError(MunimentError):
    """The idempotency key was used for another request."""


class PreconditionError(MunimentError):
    """The call is right, the state is not: a setting, a permission, a version."""


class LimitError(MunimentError):
    """A limit of this host is reached: disk, map, queue."""


class UnavailableError(MunimentError):
    """A service is down or restarting; the same call may succeed later."""


class TimedOutError(MunimentError):
    """The deadline passed. Whether a write took place is unknown; the same key tells."""


class InternalError(MunimentError):
    """A defect of ours. Details are in the service's log."""


class TamperedError(MunimentError):
    """A stored row cannot be believed: it was edited, moved, put back or taken away."""
