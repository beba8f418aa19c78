"""Starts the supervisor of a home: once, detached, with nothing of the starter's but settings.

Standard library only, since the bridge's front imports it. Talking to a supervisor that runs is
the command line's business.
"""

from __future__ import annotations

import enum
import fcntl
import os
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from muniment.kit.errors import PreconditionError, UnavailableError
from muniment.kit.files import private_folder
from muniment.kit.paths import HOME_VARIABLE, Home

__all__ = [
    "SUPERVISOR",
    "end_leftovers",
    "ensure_running",
    "kept_down",
    "remove_leftovers",
    "shipped_configuration",
    "start_stopped",
    "supervisor_environment",
    "supervisor_lives",
]

SUPERVISOR = "supervisor"
"""Name of the supervisor's socket in the runtime folder."""

_POLL_SECONDS = 0.02
_ANSWER_SECONDS = 2.0
_KILL_BEFORE_DEADLINE_SECONDS = 1.0
_ANSWER_LIMIT_BYTES = 64 * 1024
_OUTPUT_LIMIT_BYTES = 1024 * 1024

_STATE_CALL = (
    b"<?xml version='1.0'?><methodCall><methodName>supervisor.getState</methodName>"
    b"<params></params></methodCall>"
)

_START_CALL = (
    b"<?xml version='1.0'?><methodCall><methodName>supervisor.startAllProcesses</methodName>"
    b"<params><param><value><boolean>0</boolean></value></param></params></methodCall>"
)

# Lets go of the starter: init adopts the supervisor, so that no harness which kills the tree of
# its children reaches it, and no starter has to reap it. Descriptor 3 is the start lock, which a
# supervisor holds for as long as it lives; supervisord's own reload closes those from 5 on.
_DETACH = """\
import os, signal, sys
if os.fork():
    os._exit(0)
lock = int(sys.argv[1])
os.dup2(lock, 3)
os.closerange(4, lock + 1)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
os.execv(sys.argv[2], sys.argv[2:])
"""

_PASSED_ON = frozenset(
    {
        "CURL_CA_BUNDLE",
        "DBUS_SESSION_BUS_ADDRESS",
        "HOME",
        "LANG",
        "LOGNAME",
        "PATH",
        "REQUESTS_CA_BUNDLE",
        "SIBYL_MEMORY_DB",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "USER",
    }
)
_PASSED_ON_PREFIXES = ("KINT_", "LC_", "MUNIMENT_", "SAKUR4_", "XDG_")

# What one caller chose travels with its calls. In the services' environment it would hold for all.
_CHOSEN_BY_A_CALLER = frozenset(
    {
        "MUNIMENT_PROJECT_ROOT",
        "MUNIMENT_SESSION",
        "SAKUR4_PROJECT_ROOT",
        "SAKUR4_SESSION",
    }
)


class _State(enum.Enum):
    RUNNING = enum.auto()
    BUSY = enum.auto()
    """Something listens, but it is starting, stopping or stuck."""
    ABSENT = enum.auto()


def ensure_running(home: Home, *, deadline_seconds: float) -> bool:
    """Start the home's supervisor if none runs, and wait until it answers.

    Any number of callers at once start one. The supervisor outlives its starter, holds none of
    its descriptors and does not see its signals.

    Returns:
        True if this call started it.

    Services of a supervisor that was killed are ended first.

    Raises:
        PreconditionError: The runtime folder is not safe, or the supervisor cannot start.
        UnavailableError: It did not answer within the deadline.
    """
    end = time.monotonic() + deadline_seconds
    started = False
    output = _Output(home)
    while (state := _ask_state(home, end)) is not _State.RUNNING:
        if state is _State.ABSENT:
            if not started:
                _make_folders(home)
            with _start_lock(home) as lock:
                if lock is not None and started:
                    raise output.explain_failure()
                if lock is not None:
                    end_leftovers(home, deadline_seconds=end - time.monotonic())
                    _spawn(home, output.open(), lock)
                    started = True
        if time.monotonic() >= end:
            raise UnavailableError(
                f"the supervisor did not answer within {deadline_seconds:g} s",
                reason="SUPERVISOR_SILENT",
                fix=f"see {home.logs / 'supervisord.log'}, then call again",
            )
        time.sleep(_POLL_SECONDS)
    return started


def supervisor_lives(home: Home) -> bool:
    """Whether a supervisor of this home exists, even one that does not answer (yet or any more)."""
    if _ask_state(home, time.monotonic() + _ANSWER_SECONDS) is not _State.ABSENT:
        return True
    try:
        # Nothing is made or written: the home may be missing, or on a read-only file system.
        descriptor = os.open(home.runtime / "start.lock", os.O_RDONLY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise PreconditionError(
            f"the runtime folder {home.runtime} cannot be used: {error.strerror}",
            reason="RUNTIME_UNSAFE",
            fix="see `muniment doctor`, or choose another home with MUNIMENT_HOME",
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def end_leftovers(home: Home, *, deadline_seconds: float) -> bool:
    """End services that a killed supervisor left, which would keep new ones from their sockets.

    For a home without a supervisor. They may drain for most of the deadline; then they are killed.

    Returns:
        True if there were some.

    Raises:
        UnavailableError: One was still there at the deadline.
    """
    end = time.monotonic() + deadline_seconds
    asked: set[int] = set()
    # One that drains listens no more, but still has its store open.
    while leftovers := _listeners(home) | {pid for pid in asked if _lives(pid)}:
        for pid in leftovers - asked:
            _signal(pid, signal.SIGTERM)
        asked |= leftovers
        left = end - time.monotonic()
        if left < _KILL_BEFORE_DEADLINE_SECONDS:
            for pid in leftovers:
                _signal(pid, signal.SIGKILL)
        if left < 0:
            raise UnavailableError(
                f"services of an earlier supervisor are still ending: {sorted(leftovers)}",
                reason="LEFTOVERS",
                fix="call again in a moment",
            )
        time.sleep(_POLL_SECONDS)
    return bool(asked)


def remove_leftovers(home: Home) -> None:
    """Remove the files of a supervisor and services that were killed, unless one starts now."""
    with _start_lock(home) as lock:
        if lock is not None:
            for path in (home.runtime / "supervisord.pid", *home.runtime.glob("*.sock")):
                path.unlink(missing_ok=True)


@contextmanager
def kept_down(home: Home) -> Iterator[None]:
    """Keep anybody from starting a supervisor of this home during the block.

    Raises:
        PreconditionError: The runtime folder is not safe.
        UnavailableError: One runs, or is being started.
    """
    _make_folders(home)
    with _start_lock(home) as lock:
        if lock is None:
            raise UnavailableError(
                "the services of this home run",
                reason="SERVICES_RUN",
                fix="end your harnesses, since their calls start them; then run this again",
            )
        yield


def _listeners(home: Home) -> set[int]:
    """The processes that listen on the sockets of the runtime folder."""
    found = set()
    for path in home.runtime.glob("*.sock"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            try:
                connection.connect(str(path))
                found.add(_peer(connection))
            except OSError:
                continue  # Nobody listens.
    return found


def _peer(connection: socket.socket) -> int:
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid = int.from_bytes(credentials[:4], sys.byteorder)
    else:
        # SOL_LOCAL and LOCAL_PEERPID of macOS, which Python does not name.
        pid = connection.getsockopt(0, 2)
    if pid <= 0:
        raise UnavailableError(
            f"a process of another container listens on {connection.getpeername()}",
            reason="LEFTOVERS",
            fix="stop it where it runs, or choose another home with MUNIMENT_HOME",
        )
    return pid


def _lives(pid: int) -> bool:
    """Whether the process runs; one that ended and was not reaped yet does not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):  # Not Linux, or an old one.
        return _signal(pid, 0)
    try:
        return not select.select([descriptor], [], [], 0)[0]
    finally:
        os.close(descriptor)


def _signal(pid: int, number: int) -> bool:
    """Whether there was a process to signal."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def supervisor_environment(home: Home, environment: Mapping[str, str]) -> dict[str, str]:
    """What a supervisor and its services get to see of the starter's environment."""
    passed = {
        name: value
        for name, value in environment.items()
        if (name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES))
        and name not in _CHOSEN_BY_A_CALLER
    }
    return passed | {
        HOME_VARIABLE: str(home.path),
        "SUPERVISED_RUNTIME": str(home.runtime),
        # supervisord expands the names of log files twice, and splits commands like a shell.
        "SUPERVISED_LOGS": str(home.logs).replace("%", "%%"),
        "SUPERVISED_PYTHON": _quoted(sys.executable),
    }


def _quoted(path: Path | str) -> str:
    import shlex  # At the price of regular expressions, which most fronts do without.

    return shlex.quote(str(path))


def start_stopped(home: Home, *, deadline_seconds: float) -> None:
    """Ask a running supervisor to start what is stopped or was given up on, without waiting."""
    _ask(home, time.monotonic() + deadline_seconds, _START_CALL)


def _ask_state(home: Home, end: float) -> _State:
    """How the supervisor fares; takes no longer than `end` (monotonic), or a moment after it."""
    reply = _ask(home, end, _STATE_CALL)
    if reply is None:
        return _State.ABSENT
    # A supervisor that is stopping or reloading answers every call with a fault.
    return _State.RUNNING if b"<string>RUNNING</string>" in reply else _State.BUSY


def _ask(home: Home, end: float, call: bytes) -> bytes | None:
    """The supervisor's answer; what came of it if it broke off; None if nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(min(_ANSWER_SECONDS, max(_POLL_SECONDS, end - time.monotonic())))
        try:
            connection.connect(str(home.socket(SUPERVISOR)))
        except (TimeoutError, BlockingIOError):
            return b""
        except OSError:
            return None
        head = (
            f"POST /RPC2 HTTP/1.0\r\nContent-Type: text/xml\r\nContent-Length: {len(call)}\r\n\r\n"
        )
        reply = b""
        try:
            connection.sendall(head.encode() + call)
            while (part := connection.recv(4096)) and len(reply) < _ANSWER_LIMIT_BYTES:
                reply += part
        except OSError:
            return b""
    return reply


def _make_folders(home: Home) -> None:
    try:
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PreconditionError(
            f"the home {home.path} cannot be used: {error.strerror}",
            reason="FOLDER_UNUSABLE",
            fix="free the path, or choose another home with MUNIMENT_HOME",
        ) from error
    if not home.runtime.is_relative_to(home.path):
        _make_own_folder(home.runtime.parent)
    _make_own_folder(home.runtime)
    private_folder(home.logs)
    private_folder(home.runtime / "conf.d")


def _make_own_folder(path: Path) -> None:
    """Make the folder, or check that nobody else can have put anything into it."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise PreconditionError(
            f"the runtime folder {path} cannot be used: {error.strerror}",
            reason="RUNTIME_UNSAFE",
            fix=f"remove {path}",
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PreconditionError(
            f"the runtime folder {path} is a link or another user's",
            reason="RUNTIME_UNSAFE",
            fix=f"remove {path}, or choose another home with MUNIMENT_HOME",
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        raise PreconditionError(
            f"others may enter the runtime folder {path}",
            reason="RUNTIME_UNSAFE",
            fix=f"chmod 700 {_quoted(path)}",
        )


@contextmanager
def _start_lock(home: Home) -> Iterator[int | None]:
    """A descriptor that holds the lock, or None while a supervisor or another starter has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    try:
        descriptor = os.open(home.runtime / "start.lock", flags, 0o600)
    except OSError as error:
        raise _cannot_start(str(error), home) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _spawn(home: Home, output: int, lock: int) -> None:
    """Start a supervisor that keeps the lock; its output goes to the descriptor `output`."""
    import subprocess  # Costs the front 10 ms, and most fronts find a supervisor.

    configuration = home.runtime / "supervisord.conf"
    supervisord = [sys.executable, "-P", "-m", "supervisor.supervisord", "-n"]
    supervisord += ["-c", str(configuration)]
    try:
        # Whoever holds the lock knows that this socket has no owner any more.
        home.socket(SUPERVISOR).unlink(missing_ok=True)
        configuration.unlink(missing_ok=True)
        configuration.symlink_to(shipped_configuration())
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _DETACH, str(lock), *supervisord],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(lock,),
            env=supervisor_environment(home, os.environ),
            cwd="/",
            umask=0o077,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _cannot_start(str(error), home) from error
    finally:
        os.close(output)


def shipped_configuration() -> Path:
    """The supervisor's file: the wheel's copy, else the checkout's."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "cli" / "supervisord.conf"
    return installed if installed.exists() else package.parent.parent / "supervisord.conf"


class _Output:
    """The file that takes what a supervisor says before it has a log, or when it dies."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.logs / "supervisord.out"
        self._begin = 0

    def open(self) -> int:
        """A descriptor that appends."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        try:
            descriptor = os.open(self._path, flags, 0o600)
            self._begin = os.fstat(descriptor).st_size
            if self._begin > _OUTPUT_LIMIT_BYTES:
                os.ftruncate(descriptor, 0)
                self._begin = 0
        except OSError as error:
            raise _cannot_start(str(error), self._home) from error
        return descriptor

    def explain_failure(self) -> PreconditionError:
        """The supervisor let go of the lock, so it is dead. What it said last is why."""
        with self._path.open("rb") as file:
            file.seek(self._begin)
            lines = file.read(_OUTPUT_LIMIT_BYTES).decode(errors="replace").splitlines()
        said = [line.strip() for line in lines if line.strip() and not line.startswith("For help")]
        return _cannot_start(said[-1] if said else "it ended without a word", self._home)


def _cannot_start(why: str, home: Home) -> PreconditionError:
    return PreconditionError(
        f"the supervisor cannot start: {why}",
        reason="SUPERVISOR_FAILED",
        fix=f"see the files in {home.logs}",
    )
