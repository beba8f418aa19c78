"""The front: what a harness spawns. It answers at once, relays the rest, and dies with its harness.

Owns the life of the process and the order of things: one thread reads the harness and answers
what needs no service, the relay's thread carries the rest to the worker and back, and the main
thread watches for the end. It never starts a service before a request needs one.

Standard library only, with kit.paths and kit.supervise at the first need: importing the MCP SDK
or gRPC here would cost seconds of every window that a harness opens.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence

from muniment.bridge.answers import RESOURCES, Answers
from muniment.bridge.dialling import START_BUDGET_SECONDS, Dialler, EnsureRunning
from muniment.bridge.eras import (
    BARE_ERA,
    SUBSCRIPTIONS_LIMIT,
    Era,
    era_of,
    require_known,
    shake_hands,
)
from muniment.bridge.framing import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Message,
    Output,
    Oversize,
    Refusal,
    RequestId,
    complain,
    encode,
    error_reply,
    parse,
    read_lines,
    result_reply,
    take_standard_streams,
)
from muniment.bridge.manifest import MANIFEST_PATH, Manifest, ManifestError
from muniment.bridge.options import HELP, HOME_VARIABLE, Options, UsageError, read_options
from muniment.bridge.relay import Relay

__all__ = ["Front", "main"]

PROTOCOL = 1
"""Of the frames between front and worker."""

DRAIN_SECONDS = 2.0
"""How long requests may still be answered after the harness has closed our input."""

SIGNAL_DRAIN_SECONDS = 1.5
"""The same after a signal; harnesses kill what has not gone two seconds later."""

FLUSH_SECONDS = 0.3
"""How long a harness that does not read may hold up the last answers."""

PARENT_POLL_SECONDS = 1.0

URI_LIMIT_CHARACTERS = 1000
"""No resource has a longer URI, so nothing of a longer one is kept."""

PASSED_ON = (
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PROJECT_DIR",
    "KINT_TENANT",
    "MUNIMENT_PROJECT_ROOT",
    "MUNIMENT_SESSION",
    "MUNIMENT_TENANT",
    "SAKUR4_PROJECT_ROOT",
    "SAKUR4_SESSION",
)
"""Variables by which a harness says what project and session it is in, and for which tenant."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# What rings the bell besides signals, which ring it with their numbers.
_INPUT_ENDED = 200
_OUTPUT_BROKE = 201
_IDLE = 202


class Bell:
    """Wakes the main thread, from a thread or from a signal."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        os.set_blocking(self.writing, False)

    def ring(self, why: int) -> None:
        """Wake the main thread, and let it know why."""
        try:
            os.write(self.writing, bytes((why,)))
        except BlockingIOError:
            return  # It rings already, with more reasons than a pipe holds.

    def reasons(self) -> bytes:
        """Why it rang since it was last asked; empty if it did not."""
        try:
            return os.read(self.reading, 4096)
        except BlockingIOError:
            return b""


class Front:
    """One connection of one harness."""

    def __init__(
        self,
        options: Options,
        reading: int,
        writing: int,
        *,
        parent: int,
        manifest_path: str = MANIFEST_PATH,
        ensure_running: EnsureRunning | None = None,
        start_budget_seconds: float = START_BUDGET_SECONDS,
    ) -> None:
        """Serve one harness on two descriptors.

        Args:
            options: What the harness chose.
            reading: Descriptor of its messages.
            writing: Descriptor of ours.
            parent: Process whose end is ours.
            manifest_path: Where the manifest is.
            ensure_running: Starts the services in place of the supervisor's own starter.
            start_budget_seconds: How long requests wait for a worker that cannot be reached.
        """
        self.bell = Bell()
        self._options = options
        self._reading = reading
        self._writing = writing
        self._parent = parent
        self._manifest = Manifest(manifest_path)
        self._answers = Answers(self._manifest, options.profile, options.names)
        self._output = Output(writing, lambda: self.bell.ring(_OUTPUT_BROKE))
        self._relay = Relay(
            dialler=Dialler(ensure_running, start_budget_seconds),
            greet=self._greeting,
            write=self._output.write,
            on_idle=lambda: self.bell.ring(_IDLE) if self._is_ending else None,
            is_subscribed=lambda: bool(self._subscribed),
        )
        self._handshake = BARE_ERA
        self._latest_client: dict[str, str] | None = None
        self._subscribed: dict[str, None] = {}
        """In the older era; a worker that comes back is told again."""
        self._connection = os.urandom(16).hex()
        self._folder = _working_folder()
        self._is_ending = False

    # --- Life

    def run(self) -> None:
        """Serve until the harness closes our input, a signal, or the end of harness or parent.

        Returns with every request answered, unless nobody is left to read it.
        """
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        watch = select.poll()
        watch.register(self.bell.reading, select.POLLIN)
        watch.register(self._writing, 0)  # Errors only: the other end was closed.
        end: float | None = None
        while True:
            seconds = PARENT_POLL_SECONDS
            if end is not None:
                seconds = min(seconds, max(0.0, end - time.monotonic()))
            ready = dict(watch.poll(seconds * 1000))
            output = ready.get(self._writing, 0)
            if output & select.POLLNVAL:  # A device that cannot be polled; writes will tell.
                watch.unregister(self._writing)
            broken = output & (select.POLLERR | select.POLLHUP)
            reasons = self.bell.reasons()
            if broken or _OUTPUT_BROKE in reasons or os.getppid() != self._parent:
                return
            end = _sooner(end, reasons)
            self._is_ending = end is not None
            if end is not None and (self._relay.is_idle() or time.monotonic() >= end):
                break
        self._say_goodbye()

    def _say_goodbye(self) -> None:
        """Answer what is left, for as long as somebody reads it."""
        last = threading.Thread(target=self._answer_the_rest, name="goodbye", daemon=True)
        last.start()
        last.join(FLUSH_SECONDS)

    def _answer_the_rest(self) -> None:
        self._relay.close("its input ended, or it was told to end, before the answer was there")
        self._output.close()

    # --- Messages

    def _read(self) -> None:
        for line in read_lines(self._reading):
            if self._is_ending:
                return
            try:
                self._handle(line)
            except Exception as error:
                complain(f"unexpected while reading: {error!r}")
        self.bell.ring(_INPUT_ENDED)

    def _handle(self, line: bytes | Oversize) -> None:
        """Answer or relay one line; whatever goes wrong becomes its answer."""
        request_id: RequestId | None = None
        try:
            message = parse(line)
            if message is None:
                return
            request_id = message.request_id
            if request_id is None:
                self._notice(message)
            else:
                self._answer(request_id, message)
        except Refusal as refusal:
            if refusal.request_id is not None:
                request_id = refusal.request_id
            self._output.write(error_reply(request_id, refusal.code, refusal.text, refusal.data))
        except ManifestError as error:
            complain(f"the installation is damaged: {error}")
            text = f"The installation is damaged: {error}. Install Muniment again."
            self._output.write(error_reply(request_id, INTERNAL_ERROR, text))
        except Exception as error:
            complain(f"unexpected: {error!r}")
            text = f"The bridge failed, nothing was recorded: {error!r}"
            self._output.write(error_reply(request_id, INTERNAL_ERROR, text))

    def _answer(self, request_id: RequestId, message: Message) -> None:
        if self._relay.holds(request_id):
            raise Refusal(
                INVALID_REQUEST,
                f"Invalid request: a request with the id {request_id!r:.100} is under way",
            )
        if message.method == "initialize":
            self._handshake = era = shake_hands(message.params)
            self._latest_client = era.client
        else:
            era = era_of(message.params, self._handshake)
        result = self._answers.result(message.method, era, message.params)
        if message.method == RESOURCES and message.params.get("cursor") is None:
            result = self._resources(era, message.params.get("_meta"))
        if result is None:
            self._pass_on(request_id, message, era)
        else:
            self._output.write(result_reply(request_id, result))

    def _resources(self, era: Era, meta: object) -> bytes | None:
        """The list of the project's resources; None where the worker has to say what is wrong.

        Harnesses ask for it before they show their model any tool, so no service may be waited
        for.
        """
        from muniment.bridge.callers import project_of
        from muniment.kit.errors import MunimentError

        try:
            known = meta if isinstance(meta, dict) else {}
            project = project_of(_passed_on(), self._folder, known)
        except (MunimentError, OSError, RuntimeError, ValueError):
            return None
        return self._answers.resources(era, project.project_id)

    def _pass_on(self, request_id: RequestId, message: Message, era: Era) -> None:
        require_known(message.method, era, self._manifest.relayed_methods)
        self._latest_client = era.client
        self._note_subscription(message)
        self._relay.submit(
            request_id, message.method, message.line, era=era.version, client=era.client
        )

    def _note_subscription(self, message: Message) -> None:
        uri = message.params.get("uri")
        if not isinstance(uri, str):
            return
        if message.method == "resources/subscribe":
            # The worker refuses one too many, so none of its kind needs to be told again.
            if len(self._subscribed) < SUBSCRIPTIONS_LIMIT and len(uri) <= URI_LIMIT_CHARACTERS:
                self._subscribed[uri] = None
        elif message.method == "resources/unsubscribe":
            self._subscribed.pop(uri, None)

    def _notice(self, message: Message) -> None:
        """Act on a notification. Most are for the eras' own ceremony, and need no deed."""
        if message.method != "notifications/cancelled":
            return
        request_id = message.params.get("requestId")
        if isinstance(request_id, int | str) and not isinstance(request_id, bool):
            self._relay.cancel(request_id, message.params.get("reason"))

    def _greeting(self) -> bytes:
        greeting = {
            "protocol": PROTOCOL,
            "connection": self._connection,
            "version": self._manifest.version,
            "cwd": self._folder,
            "profile": self._options.profile,
            "names": self._options.names,
            "environment": _passed_on(),
            "client": self._latest_client,
            "subscribed": list(self._subscribed),
        }
        return encode({"hello": greeting})


def _passed_on() -> dict[str, str]:
    return {
        name: _text(os.environb[name.encode()])
        for name in PASSED_ON
        if name.encode() in os.environb
    }


def _sooner(end: float | None, reasons: bytes) -> float | None:
    """When to end, given what has rung; None for not yet."""
    ends = [] if end is None else [end]
    if _INPUT_ENDED in reasons:
        ends.append(time.monotonic() + DRAIN_SECONDS)
    if any(number in reasons for number in _SIGNALS):
        ends.append(time.monotonic() + SIGNAL_DRAIN_SECONDS)
    return min(ends, default=None)


def _working_folder() -> str:
    try:
        return _text(os.getcwdb())  # noqa: PTH109
    except OSError:
        return os.environ.get("PWD", "/")  # It was deleted under us.


def _text(name: bytes) -> str:
    """A path or variable as text, whatever the locale; bytes that are no UTF-8 stay escaped."""
    return name.decode("utf-8", "surrogateescape")


def main(
    arguments: Sequence[str] | None = None,
    *,
    manifest_path: str = MANIFEST_PATH,
    ensure_running: EnsureRunning | None = None,
    start_budget_seconds: float = START_BUDGET_SECONDS,
) -> None:
    """Serve a harness on standard input and output; exits the process when that ends.

    Args:
        arguments: In place of those of the process.
        manifest_path: In place of the package's own manifest.
        ensure_running: In place of the supervisor's own starter.
        start_budget_seconds: In place of START_BUDGET_SECONDS.
    """
    parent = os.getppid()
    try:
        options = read_options(sys.argv[1:] if arguments is None else arguments, os.environ)
        if options.show is not None:
            version = f"muniment {Manifest(manifest_path).version}\n"
            sys.stdout.write(HELP if options.show == "help" else version)
            return
    except UsageError as error:
        complain(str(error))
        sys.exit(2)
    except ManifestError as error:
        complain(f"the installation is damaged: {error}")
        sys.exit(1)
    for warning in options.warnings:
        complain(warning)
    if options.home is not None:
        os.environ[HOME_VARIABLE] = options.home
    if options.http is not None:
        # Its server needs the SDK and gRPC, and nothing of this module.
        given = sys.argv[1:] if arguments is None else arguments
        os.execv(sys.executable, [sys.executable, "-m", "muniment.bridge.http", *given])
    try:
        reading, writing = take_standard_streams()
    except OSError as error:
        complain(f"standard input and output must be open: {error}")
        sys.exit(1)
    front = Front(
        options,
        reading,
        writing,
        parent=parent,
        manifest_path=manifest_path,
        ensure_running=ensure_running,
        start_budget_seconds=start_budget_seconds,
    )
    _ring_on_signals(front.bell)
    front.run()
    # Threads may stand in a read or a write that nothing ends any more.
    os._exit(0)


def _ring_on_signals(bell: Bell) -> None:
    signal.set_wakeup_fd(bell.writing, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)


if __name__ == "__main__":
    main()
