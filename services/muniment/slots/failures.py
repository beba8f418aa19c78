"""What can go wrong with an inference server, in our words.

None of these is an UnavailableError: that one is of our own services, for which a caller waits.
"""

from __future__ import annotations

from muniment.kit.errors import PreconditionError, TimedOutError

__all__ = [
    "Dropped",
    "KeyRefused",
    "Loading",
    "NoServer",
    "NotNamed",
    "NotSupported",
    "NotUnderstood",
    "Refused",
    "Sleeping",
    "SlowServer",
    "Unreachable",
    "printable",
]

_LONGEST_WORDS = 300


class NoServer(PreconditionError):
    """Nobody named a server, and none answers where llama-server listens by default."""

    def __init__(self) -> None:
        super().__init__(
            "no inference server is configured",
            reason="LLAMA_NONE",
            fix="set `llama_url` or `backend` in muniment.toml, then run `muniment restart slots`",
        )


class NotNamed(PreconditionError):
    """A server answers at the default address, and nobody said that it is ours to use."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"a server answers at {url}, and nothing that was said is sent to one that nobody"
            " named",
            reason="LLAMA_NOT_NAMED",
            fix=f'write llama_url = "{url}" into muniment.toml, then run `muniment restart slots`',
        )


class Unreachable(PreconditionError):
    """Nothing answers at the server's address."""

    def __init__(self, url: str, why: str, *, nothing_is_there: bool = False) -> None:
        super().__init__(
            f"the inference server at {url} cannot be reached ({why})",
            reason="LLAMA_UNREACHABLE",
            fix="start llama-server there, or correct `llama_url` or `backend` in the settings",
        )
        self.nothing_is_there = nothing_is_there
        """Nobody listens: whatever will answer there is started later."""


class Loading(PreconditionError):
    """The server is there and loads its model."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"the inference server at {url} is loading its model",
            reason="LLAMA_LOADING",
            fix="call again when it is ready; `muniment slots show` tells",
        )


class Sleeping(PreconditionError):
    """The server has put its model away until somebody asks for something."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"the inference server at {url} sleeps: its slots hold nothing",
            reason="LLAMA_SLEEPING",
            fix="the next request to it wakes it; or start it without --sleep-idle-seconds",
        )


class KeyRefused(PreconditionError):
    """The server wants another key."""

    def __init__(self, url: str, *, has_key: bool) -> None:
        told = "refuses the API key that we have" if has_key else "wants an API key"
        super().__init__(
            f"the inference server at {url} {told}",
            reason="LLAMA_KEY_REFUSED",
            fix="write its key into a file and name the file in the setting `llama_key_file`",
        )


class NotSupported(PreconditionError):
    """The server was started without what is asked of it."""

    def __init__(self, what: str, flag: str) -> None:
        super().__init__(
            f"the inference server does not {what}",
            reason="LLAMA_NOT_SUPPORTED",
            fix=f"start llama-server with {flag}",
        )


class Refused(PreconditionError):
    """The server understood and would not."""

    def __init__(self, what: str, words: str) -> None:
        super().__init__(
            f"the inference server refused to {what}: {printable(words)}",
            reason="LLAMA_REFUSED",
            fix="see the log of llama-server",
        )


class NotUnderstood(PreconditionError):
    """What answers is no llama-server, or one that we do not know."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"what answers at {url} is not a llama-server that we understand ({what})",
            reason="LLAMA_NOT_UNDERSTOOD",
            fix="correct `llama_url` or `backend` in the settings",
        )


class Dropped(PreconditionError):
    """The server closed the connection instead of answering."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"the inference server at {url} went away while it was asked to {what}",
            reason="LLAMA_DROPPED",
            fix="see whether it runs (`muniment slots show`) and its log, then call again",
        )


class SlowServer(TimedOutError):
    """The server is there and did not answer in time."""

    def __init__(self, url: str, what: str, seconds: float) -> None:
        super().__init__(
            f"the inference server at {url} did not {what} within {seconds:g} s",
            reason="LLAMA_TIMED_OUT",
            fix="it may be busy: `muniment slots show` tells; then call again",
        )


def printable(words: str) -> str:
    """Words of the server as data: on one line, and not too long."""
    text = "".join(one if one.isprintable() else " " for one in words)
    return text if len(text) <= _LONGEST_WORDS else f"{text[:_LONGEST_WORDS]}…"


def slot_busy(slot_id: int, whose: str = "") -> PreconditionError:
    """The error where a slot is at work."""
    return PreconditionError(
        f"slot {slot_id} of the inference server is generating{whose}",
        reason="SLOT_BUSY",
        fix="call again when it has ended; `muniment slots show` tells",
    )


def cannot_be_sealed(why: str, fix: str) -> PreconditionError:
    """The error where a sealed home could not seal what the server would write."""
    return PreconditionError(
        f"this home is sealed, and the server's file could not be: {why}",
        reason="SNAPSHOT_CANNOT_BE_SEALED",
        fix=fix,
    )
