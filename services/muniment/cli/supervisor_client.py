"""Calls to a home's supervisor: XML-RPC over its unix socket, with a deadline and typed errors."""

from __future__ import annotations

import http.client
import socket
import xmlrpc.client
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from muniment.kit.errors import InvalidArgumentError, PreconditionError, UnavailableError
from muniment.kit.paths import Home
from muniment.kit.supervise import SUPERVISOR

__all__ = ["ServiceProcess", "SupervisorClient", "not_running"]

_ANSWER_SECONDS = 5.0

# supervisor.xmlrpc.Faults; the package ships no types.
_SHUTTING_DOWN = 6
_BAD_NAME = 10
_ALREADY_STARTED = 60
_NOT_RUNNING = 70


@dataclass(frozen=True)
class ServiceProcess:
    """One supervised process as the supervisor sees it."""

    name: str
    """As in supervisord's file; `group:name` for one of several."""
    state: str
    """STOPPED, STARTING, RUNNING, BACKOFF, STOPPING, EXITED, FATAL or UNKNOWN."""
    pid: int | None = None
    uptime_seconds: int | None = None


def not_running() -> UnavailableError:
    """The error for a home without a supervisor."""
    return UnavailableError(
        "no supervisor runs for this home",
        reason="SUPERVISOR_NOT_RUNNING",
        fix="start the services with `muniment up`",
    )


class SupervisorClient:
    """Speaks to the supervisor of one home.

    Every method raises UnavailableError where no supervisor runs, or it is going down.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def processes(self) -> list[ServiceProcess]:
        """All supervised processes, by name."""
        told = cast("list[dict[str, Any]]", self._call("getAllProcessInfo"))
        return [_process(one) for one in told]

    def start(self, name: str) -> None:
        """Begin to start a process that does not run.

        Raises:
            InvalidArgumentError: No process has this name.
        """
        self._call("startProcess", name, False, fine=_ALREADY_STARTED)

    def stop(self, name: str) -> None:
        """Begin to stop a process that runs.

        Raises:
            InvalidArgumentError: No process has this name.
        """
        self._call("stopProcess", name, False, fine=_NOT_RUNNING)

    def shutdown(self) -> None:
        """Begin to stop everything, the supervisor included."""
        self._call("shutdown", fine=_SHUTTING_DOWN)

    def _call(self, name: str, *arguments: object, fine: int | None = None) -> object:
        """Make the call; a fault with the code `fine` means that there is nothing to do."""
        transport = _UnixTransport(self._home.socket(SUPERVISOR))
        try:
            with xmlrpc.client.ServerProxy("http://localhost", transport=transport) as proxy:
                answer: object = getattr(proxy.supervisor, name)(*arguments)
                return answer
        except xmlrpc.client.Fault as fault:
            if fault.faultCode == fine:
                return None
            raise _told(fault, arguments) from fault
        except (FileNotFoundError, ConnectionError) as error:
            raise not_running() from error
        except NotADirectoryError as error:
            raise PreconditionError(
                f"the home {self._home.path} is not a folder",
                reason="FOLDER_UNUSABLE",
                fix="choose another home with --home or MUNIMENT_HOME",
            ) from error
        except (OSError, http.client.HTTPException, xmlrpc.client.Error) as error:
            raise UnavailableError(
                f"the supervisor does not answer: {error}",
                reason="SUPERVISOR_SILENT",
                fix="see `muniment logs supervisord`, then run the command again",
            ) from error


def _process(told: dict[str, Any]) -> ServiceProcess:
    name = told["name"] if told["name"] == told["group"] else f"{told['group']}:{told['name']}"
    if not told["pid"]:
        return ServiceProcess(name, told["statename"])
    return ServiceProcess(name, told["statename"], told["pid"], max(0, told["now"] - told["start"]))


def _told(
    fault: xmlrpc.client.Fault, arguments: tuple[object, ...]
) -> InvalidArgumentError | PreconditionError | UnavailableError:
    if fault.faultCode == _SHUTTING_DOWN:
        return UnavailableError(
            "the supervisor is going down",
            reason="SUPERVISOR_GOING_DOWN",
            fix="wait a moment, then run `muniment up`",
        )
    if fault.faultCode == _BAD_NAME:
        return InvalidArgumentError(
            f"no service is called {arguments[0]}",
            reason="SERVICE_UNKNOWN",
            field="service",
            fix="`muniment ps` lists them",
        )
    return PreconditionError(
        f"the supervisor refuses: {fault.faultString}",
        reason="SUPERVISOR_REFUSED",
        fix="see `muniment logs supervisord`",
    )


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_ANSWER_SECONDS)
        self._path = path

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(self.timeout)
            connection.connect(str(self._path))
        except BaseException:
            connection.close()
            raise
        self.sock = connection


class _UnixTransport(xmlrpc.client.Transport):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, host: object) -> http.client.HTTPConnection:
        connection = _UnixConnection(self._path)
        self._connection = None, connection  # For close().
        return connection
