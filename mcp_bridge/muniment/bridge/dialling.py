"""Reaching the worker: its socket, and the supervisor that starts it where it is not there.

The modules of `kit` and of sockets are imported at the first need, since most of what a harness
asks at its start is answered without a worker.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from muniment.kit.paths import Home

__all__ = ["START_BUDGET_SECONDS", "Dialler", "EnsureRunning", "UnreachableError"]

START_BUDGET_SECONDS = 30.0
"""How long requests wait for a worker that cannot be reached, before they are answered so."""

GIVEN_UP_BUDGET_SECONDS = 5.0
"""The same, for a worker that could not start before and has said nothing new since."""

_PAUSE_SECONDS = 0.05
_SUPERVISOR_RECHECK_SECONDS = 2.0
_REASON_LIMIT_BYTES = 2048
_WORKER = "worker"

EnsureRunning = Callable[["Home", float], bool]
"""Starts the home's supervisor if none runs, within so many seconds; true if this call did."""


class UnreachableError(Exception):
    """There is no worker to speak to; the text says why."""


class Dialler:
    """Connects to the worker of the home that this process belongs to."""

    def __init__(self, ensure_running: EnsureRunning | None, start_budget_seconds: float) -> None:
        """Use `ensure_running` in place of the supervisor's own, where one is given."""
        self._ensure_running = ensure_running or _ensure_running
        self._start_budget_seconds = start_budget_seconds
        self._reported: tuple[int, str] | None = None

    def connect(
        self, *, may_start: bool, is_wanted_after: Callable[[float], bool]
    ) -> socket.socket | None:
        """A connection to the worker, which is started where that is allowed.

        Args:
            may_start: Whether a supervisor is started if none runs.
            is_wanted_after: Waits for so many seconds and says whether anybody still wants it.

        Returns:
            The connection, or None if it is no longer wanted.

        Raises:
            UnreachableError: The time is spent, or more of it would not help.
        """
        home = _locate()
        began = time.monotonic()
        end = began + self._start_budget_seconds
        next_check = 0.0
        reason_before = _reason(home)
        while True:
            try:
                return _dial(home, end)
            except OSError as error:
                trouble = error.strerror or str(error)
            now = time.monotonic()
            if may_start and now >= next_check:
                started = self._start(home, end - now)
                next_check = time.monotonic() + _SUPERVISOR_RECHECK_SECONDS
                if not started and reason_before is not None and reason_before == self._reported:
                    end = min(end, now + GIVEN_UP_BUDGET_SECONDS)
            reason = _reason(home)
            if reason is not None and reason != reason_before:
                self._reported = reason
                raise UnreachableError(f"the worker cannot start: {reason[1]}")
            if time.monotonic() >= end:
                self._reported = reason
                raise _spent(home, time.monotonic() - began, trouble, reason)
            if not is_wanted_after(_PAUSE_SECONDS):
                return None

    def _start(self, home: Home, seconds: float) -> bool:
        try:
            return self._ensure_running(home, max(seconds, _PAUSE_SECONDS))
        except Exception as error:
            raise UnreachableError(f"the services could not be started: {error}") from error


def _spent(
    home: Home, seconds: float, trouble: str, reason: tuple[int, str] | None
) -> UnreachableError:
    text = (
        f"the worker could not be reached at {home.socket(_WORKER)} "
        f"within {seconds:.1f} s ({trouble})"
    )
    return UnreachableError(text if reason is None else f"{text}; it had said: {reason[1]}")


def _ensure_running(home: Home, deadline_seconds: float) -> bool:
    from muniment.kit.supervise import ensure_running, start_stopped

    started = ensure_running(home, deadline_seconds=deadline_seconds)
    if not started and home.why(_WORKER).exists():
        # It was given up on; what it minded may be mended since.
        start_stopped(home, deadline_seconds=deadline_seconds)
    return started


def _locate() -> Home:
    from muniment.kit.paths import Home

    try:
        return Home.locate()
    except (OSError, RuntimeError, ImportError) as error:
        raise UnreachableError(f"the data home cannot be found: {error}") from error


def _dial(home: Home, end: float) -> socket.socket:
    """Connect, or raise OSError where it may help to try again."""
    import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(max(_PAUSE_SECONDS, end - time.monotonic()))
        connection.connect(str(home.socket(_WORKER)))
        _require_own(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_own(connection: socket.socket) -> None:
    """Refuse to talk to another user: the runtime folder may stand in a folder for everybody."""
    import os
    import socket

    if sys.platform != "linux":
        return
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    _, owner, _ = struct.unpack("3i", credentials)
    if owner not in (os.getuid(), 0):
        raise UnreachableError(f"the worker's socket belongs to user {owner}")


def _reason(home: Home) -> tuple[int, str] | None:
    """When and why the worker gave up starting, if it did."""
    path = home.why(_WORKER)
    try:
        written = path.stat().st_mtime_ns
        with path.open("rb") as file:
            text = file.read(_REASON_LIMIT_BYTES).decode(errors="replace")
    except OSError:
        return None
    return written, " ".join(text.split())
