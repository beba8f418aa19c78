"""The front's way to the worker: what it cannot answer itself goes there, and comes back once.

Owns the connection and the list of requests without an answer. When the worker restarts, the
connection is made again and the unanswered requests are sent again, in order and with their old
numbers; from these the worker derives idempotency keys, so that nothing is done twice.
One thread connects, sends and receives. Nothing here decides what a message means.
"""

from __future__ import annotations

import json
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from muniment.bridge.dialling import Dialler, UnreachableError
from muniment.bridge.framing import (
    INTERNAL_ERROR,
    LineSplitter,
    Oversize,
    RequestId,
    complain,
    encode,
    error_reply,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

__all__ = ["Relay"]

IN_FLIGHT_LIMIT = 4096
IN_FLIGHT_LIMIT_BYTES = 128 * 1024 * 1024
"""Beyond either the harness is not read until something is answered."""

RESEND_LIMIT = 16
"""A request under which the worker broke so often is not sent again."""

FRAME_LIMIT_BYTES = 128 * 1024 * 1024
"""Longest frame that is taken from the worker."""

_RECEIVE_BYTES = 256 * 1024
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_UNHURRIED_PAUSE_SECONDS = 1.0
"""Between attempts to connect for whom only changes are told, and nobody waits for an answer."""

# Without end by nature: neither the drain at the end nor a stopped supervisor minds them.
_STANDING_METHODS = frozenset({"subscriptions/listen"})


class _Request:
    """A request that the worker has not answered."""

    __slots__ = ("frame", "is_standing", "request_id", "times_sent")

    def __init__(self, request_id: RequestId, frame: bytes, *, is_standing: bool) -> None:
        self.request_id = request_id
        self.frame = frame
        self.is_standing = is_standing
        self.times_sent = 0


class Relay:
    """Carries requests to the worker and its answers back."""

    def __init__(
        self,
        *,
        dialler: Dialler,
        greet: Callable[[], bytes],
        write: Callable[[bytes], None],
        on_idle: Callable[[], None],
        is_subscribed: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start nothing yet: the first request does.

        Args:
            dialler: Makes connections.
            greet: Makes the frame that opens a connection.
            write: Writes one message to the harness.
            on_idle: Called when the last request that ends by itself has its answer.
            is_subscribed: Whether the worker is to tell of changes though no request waits.
        """
        self._dialler = dialler
        self._greet = greet
        self._write = write
        self._on_idle = on_idle
        self._is_subscribed = is_subscribed
        self._has_conversed = False

        self._changed = threading.Condition()
        # All of the following under the condition's lock.
        self._waiting: dict[int, _Request] = {}
        self._number_of: dict[RequestId, int] = {}
        self._waiting_bytes = 0
        self._last_number = 0
        self._answering = 0
        self._closed = False
        self._link: _Link | None = None
        self._thread: threading.Thread | None = None

    # --- For the reader of the harness

    def holds(self, request_id: RequestId) -> bool:
        """Whether a request of this id waits for its answer."""
        with self._changed:
            return request_id in self._number_of

    def submit(
        self, request_id: RequestId, method: str, message: bytes, *, era: str, client: object
    ) -> None:
        """Send a request as soon as the worker can be reached, without waiting for that.

        Blocks only while the limits of what may be in flight are reached.

        Args:
            request_id: Its id, which no request in flight has.
            method: Its method.
            message: The request's own bytes.
            era: The revision that it speaks.
            client: Name and version of its sender, or None.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room())
            self._last_number += 1
            number = self._last_number
            head = encode({"n": number, "era": era, "client": client})
            request = _Request(
                request_id,
                head[:-1] + b',"message":' + message + b"}\n",
                is_standing=method in _STANDING_METHODS,
            )
            self._waiting[number] = request
            self._number_of[request_id] = number
            self._waiting_bytes += len(request.frame)
            if self._link is not None:
                self._link.send(request.frame)
                request.times_sent += 1
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            came_too_late = self._closed
        if came_too_late:
            self._fail_waiting("the bridge is ending")

    def cancel(self, request_id: RequestId, reason: object) -> None:
        """Forget a request and tell the worker so; nothing, if no such request waits."""
        with self._changed:
            number = self._number_of.get(request_id)
            if number is None:
                return
            self._take(number)
            if self._link is not None:
                self._link.send(encode({"cancel": number, "reason": reason}) + b"\n")
        self._report_idle()

    def is_idle(self) -> bool:
        """Whether every request that ends by itself has its answer written."""
        with self._changed:
            return not self._answering and all(r.is_standing for r in self._waiting.values())

    def close(self, cause: str) -> None:
        """Answer what waits with an error that names the cause, and take nothing more."""
        with self._changed:
            self._closed = True
            if self._link is not None:
                self._link.wake()
            self._changed.notify_all()
        self._fail_waiting(cause)

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the thread of a closed relay to end. False if it still runs."""
        thread = self._thread
        if thread is None:
            return True
        thread.join(timeout_seconds)
        return not thread.is_alive()

    # --- The relay's thread

    def _run(self) -> None:
        pause = 0.0
        while self._has_work():
            try:
                may_start = self._may_start()
                connection = self._dialler.connect(
                    may_start=may_start,
                    is_wanted_after=partial(self._is_wanted_after, may_start),
                )
                if connection is None:
                    continue
                with connection:
                    answered = self._converse(connection)
            except UnreachableError as error:
                if self._has_waiting():
                    complain(str(error))
                self._fail_waiting(str(error))
                self._rest_unless_awaited()
            except Exception as error:
                complain(f"unexpected while relaying: {error!r}")
                self._fail_waiting(f"the bridge failed: {error!r}")
                self._rest_unless_awaited()
            else:
                pause = 0.0 if answered else self._rest(pause)

    def _has_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_wanted())
            return not self._closed

    def _may_start(self) -> bool:
        """Standing requests do not bring back services that somebody has stopped."""
        with self._changed:
            return not self._has_conversed or not all(
                request.is_standing for request in self._waiting.values()
            )

    def _is_wanted_after(self, may_start: bool, seconds: float) -> bool:
        """Not where what has come since may start services: it gets an attempt of its own."""

        def is_over() -> bool:
            return self._closed or not self._is_wanted() or self._may_start() != may_start

        with self._changed:
            if not self._waiting:
                seconds = max(seconds, _UNHURRIED_PAUSE_SECONDS)
            return not self._changed.wait_for(is_over, timeout=seconds)

    def _is_wanted(self) -> bool:
        return bool(self._waiting) or self._is_subscribed()

    def _has_waiting(self) -> bool:
        with self._changed:
            return bool(self._waiting)

    def _rest(self, pause: float) -> float:
        """Leave a worker alone that broke without an answer. Returns the next pause."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, timeout=pause)
        return min(max(2 * pause, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)

    def _rest_unless_awaited(self) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or bool(self._waiting), timeout=_UNHURRIED_PAUSE_SECONDS
            )

    def _converse(self, connection: socket.socket) -> bool:
        """Send and receive until the connection breaks. Returns whether anything was answered."""
        answered = False
        splitter = LineSplitter(FRAME_LIMIT_BYTES)
        link = self._open_link(connection)
        try:
            while not self._closed:
                for line in splitter.feed(link.exchange()):
                    answered |= self._receive(line)
        except (OSError, _GarbledError) as error:
            if isinstance(error, _GarbledError):
                complain(f"the worker sent what is no frame: {error}")
        finally:
            with self._changed:
                self._link = None
            link.close()
        return answered

    def _open_link(self, connection: socket.socket) -> _Link:
        """Greet and send whatever has no answer, before anything that is still to come."""
        self._has_conversed = True
        self._fail_waiting(
            f"the worker broke {RESEND_LIMIT} times with this request under way",
            only=lambda request: request.times_sent >= RESEND_LIMIT and not request.is_standing,
        )
        greeting = self._greet() + b"\n"
        link = _Link(connection)
        with self._changed:
            link.send(greeting)
            for request in self._waiting.values():
                link.send(request.frame)
                request.times_sent += 1
            self._link = link
        return link

    def _receive(self, line: bytes | Oversize) -> bool:
        """Hand on one frame of the worker. Returns whether it was an answer."""
        frame = _decode_frame(line)
        if "refused" in frame:
            self._fail_waiting(f"the worker refused: {frame['refused']}")
            return False  # So that who is subscribed does not ask again at once.
        number = frame.get("n")
        if "notify" in frame:
            if number is None or self._waits(number):
                self._write(encode(frame["notify"]))
            return False
        reply = frame.get("reply")
        if not isinstance(number, int) or not isinstance(reply, dict):
            raise _GarbledError("it has neither a reply nor a notification")
        return self._answer(number, lambda request: encode({**reply, "id": request.request_id}))

    # --- For both

    def _has_room(self) -> bool:
        return len(self._waiting) < IN_FLIGHT_LIMIT and self._waiting_bytes < IN_FLIGHT_LIMIT_BYTES

    def _waits(self, number: object) -> bool:
        with self._changed:
            return number in self._waiting

    def _take(self, number: int) -> _Request | None:
        """Remove a request that is answered or forgotten. Under the lock."""
        request = self._waiting.pop(number, None)
        if request is not None:
            del self._number_of[request.request_id]
            self._waiting_bytes -= len(request.frame)
            self._changed.notify_all()
        return request

    def _answer(self, number: int, make: Callable[[_Request], bytes]) -> bool:
        """Write the answer of a request. False if it has one, or nobody wants it any more."""
        with self._changed:
            # Its id is free before the answer is out: whoever reads that may use it at once.
            request = self._take(number)
            if request is None:
                return False
            self._answering += 1
        try:
            self._write(make(request))
        except (ValueError, RecursionError) as error:
            self._write(_failure(request, f"the answer cannot be encoded ({error})"))
        finally:
            with self._changed:
                self._answering -= 1
            self._report_idle()
        return True

    def _fail_waiting(self, cause: str, only: Callable[[_Request], bool] = lambda _: True) -> None:
        with self._changed:
            numbers = [number for number, request in self._waiting.items() if only(request)]
        for number in numbers:
            self._answer(number, lambda request: _failure(request, cause))

    def _report_idle(self) -> None:
        if self.is_idle():
            self._on_idle()


class _Link:
    """One connection to the worker: frames out in order, bytes in."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._outgoing: deque[bytes] = deque()
        self._under_way = memoryview(b"")
        self._wake_reading, self._wake_writing = os.pipe()
        os.set_blocking(self._wake_reading, False)
        os.set_blocking(self._wake_writing, False)
        self._poller = select.poll()
        self._poller.register(self._wake_reading, select.POLLIN)
        self._poller.register(connection, select.POLLIN)

    def send(self, frame: bytes) -> None:
        """Send a frame after those before it. From any thread, while the link is not closed."""
        self._outgoing.append(frame)
        self.wake()

    def wake(self) -> None:
        """Let `exchange` return."""
        try:
            os.write(self._wake_writing, b"\0")
        except BlockingIOError:
            return  # It is full, so there is enough in it to wake up for.

    def exchange(self) -> bytes:
        """Wait; send what can be sent. Returns what came, possibly nothing.

        Raises:
            OSError: The connection is broken.
        """
        wanted = select.POLLIN
        if self._under_way or self._outgoing:
            wanted |= select.POLLOUT
        self._poller.modify(self._connection, wanted)
        ready = dict(self._poller.poll())
        if self._wake_reading in ready:
            os.read(self._wake_reading, _RECEIVE_BYTES)
        events = ready.get(self._connection.fileno(), 0)
        received = b""
        if events & ~select.POLLOUT:
            received = self._connection.recv(_RECEIVE_BYTES)
            if not received:
                raise ConnectionResetError("the worker closed the connection")
        if events & select.POLLOUT:
            self._send_some()
        return received

    def close(self) -> None:
        """Give back what the link holds besides its connection."""
        os.close(self._wake_reading)
        os.close(self._wake_writing)

    def _send_some(self) -> None:
        if not self._under_way:
            self._under_way = memoryview(self._outgoing.popleft())
        try:
            sent = self._connection.send(self._under_way)
        except OSError:
            return  # If it is broken, the next receipt says so, after what the worker still said.
        self._under_way = self._under_way[sent:]


class _GarbledError(Exception):
    """The worker sent something that the protocol does not have."""


def _decode_frame(line: bytes | Oversize) -> dict[str, object]:
    if isinstance(line, Oversize):
        raise _GarbledError(f"it is longer than {FRAME_LIMIT_BYTES} bytes")
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _GarbledError(str(error)) from error
    if not isinstance(frame, dict):
        raise _GarbledError("it is not an object")
    return frame


def _failure(request: _Request, cause: str) -> bytes:
    fate = (
        "It had been sent, so what it was to write may or may not be recorded: "
        "look before you repeat it"
        if request.times_sent
        else "It was not sent, so nothing was recorded: it can be sent again"
    )
    return error_reply(
        request.request_id,
        INTERNAL_ERROR,
        f"The request was not answered: {cause}. {fate}. "
        "Services may still be starting; `muniment doctor` tells what is wrong, if anything is.",
    )
