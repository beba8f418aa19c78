"""Calls to other services: channels that outlive restarts, deadlines, retries, typed errors.

A call waits for a service that is down within its deadline and is sent again with the same
idempotency key when the service vanished under it, so a restart costs its caller time only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar, cast

import grpc
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from muniment.kit.clock import Clock, SystemClock
from muniment.kit.context import CallContext
from muniment.kit.errors import (
    MunimentError,
    PreconditionError,
    TimedOutError,
    UnavailableError,
)
from muniment.kit.limits import MESSAGE_LIMIT_BYTES
from muniment.kit.paths import Home
from muniment.kit.rpc_errors import from_rpc_error

__all__ = [
    "BULK_SECONDS",
    "COUNT_SECONDS",
    "MAINTENANCE_SECONDS",
    "READ_SECONDS",
    "SLOT_SECONDS",
    "WRITE_SECONDS",
    "Caller",
    "open_channel",
]

READ_SECONDS = 20.0
WRITE_SECONDS = 20.0
BULK_SECONDS = 60.0
COUNT_SECONDS = 180.0
SLOT_SECONDS = 600.0
MAINTENANCE_SECONDS = 3600.0

_FIRST_RETRY_SECONDS = 0.05
_LONGEST_RETRY_SECONDS = 0.5
_GIVEN_UP_SECONDS = 2.0
"""How long a service that has said why it cannot start is waited for: it may be starting anew."""

Request = TypeVar("Request")
Response = TypeVar("Response")


def open_channel(home: Home, service: str) -> grpc.aio.Channel:
    """A channel to the service's socket. It connects when it is first used."""
    return grpc.aio.secure_channel(
        f"unix:{home.socket(service)}",
        grpc.local_channel_credentials(grpc.LocalConnectionType.UDS),
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
            ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
            # A local service is back within a second; gRPC's default would wait up to two minutes.
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 500),
        ],
    )


@dataclass(frozen=True)
class Caller:
    """Makes calls to one service. Every method raises MunimentError: the service's, or our own."""

    service: str
    clock: Clock = field(default_factory=SystemClock)
    home: Home | None = None
    """Where the service says why it cannot start."""

    async def unary(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        context: CallContext,
        deadline_seconds: float,
        *,
        patience_seconds: float | None = None,
    ) -> Response:
        """Make a call, again and again while the service is away, until the deadline.

        With `patience_seconds` it may run for longer than it waits for a service that is away.
        """
        return await self._persist(
            lambda left: method(request, timeout=left, metadata=context.to_metadata()),
            deadline_seconds,
            patience_seconds,
        )

    async def client_stream(
        self,
        method: grpc.aio.StreamUnaryMultiCallable[Request, Response],
        requests: Callable[[], Iterator[Request]],
        context: CallContext,
        deadline_seconds: float,
    ) -> Response:
        """The same for a stream of requests, which `requests` begins anew for each attempt."""
        return await self._persist(
            lambda left: method(requests(), timeout=left, metadata=context.to_metadata()),
            deadline_seconds,
        )

    async def server_stream(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Request, Response],
        request: Request,
        context: CallContext,
        deadline_seconds: float,
    ) -> AsyncGenerator[Response, None]:
        """The responses of a streaming read.

        A service that is away is waited for; a stream that broke in its middle is not begun again.
        """

        async def begin(
            left: float,
        ) -> tuple[grpc.aio.UnaryStreamCall[Request, Response], object]:
            call = method(request, timeout=left, metadata=context.to_metadata())
            try:
                return call, await call.read()
            except BaseException:
                call.cancel()
                raise

        call, response = await self._persist(begin, deadline_seconds)
        try:
            while response is not grpc.aio.EOF:
                yield cast(Response, response)
                response = await call.read()
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error, self.service) from error
        finally:
            # A reader that stops early would leave it running until its deadline.
            call.cancel()

    async def both_streams(
        self,
        method: grpc.aio.StreamStreamMultiCallable[Request, Response],
        requests: AsyncIterator[Request],
        context: CallContext,
        deadline_seconds: float,
    ) -> AsyncIterator[Response]:
        """The responses to a stream of requests, which are taken as the service takes them.

        Raises also what `requests` raises. A stream that broke is not begun again.
        """
        call = method(timeout=deadline_seconds, metadata=context.to_metadata())

        async def send() -> None:
            try:
                async for request in requests:
                    await call.write(request)
                await call.done_writing()
            except grpc.aio.AioRpcError:
                pass  # Whoever reads the responses is told.
            except BaseException:
                call.cancel()
                raise

        sending = asyncio.ensure_future(send())
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error, self.service) from error
        except asyncio.CancelledError:
            if sending.done() and not sending.cancelled():
                await sending
            raise
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _persist(
        self,
        send: Callable[[float], Awaitable[Response]],
        deadline_seconds: float,
        patience_seconds: float | None = None,
    ) -> Response:
        """Send until there is an answer. Safe for writes, whose context carries their key."""
        begin = self.clock.monotonic()
        end = begin + deadline_seconds
        until = end
        away: UnavailableError | None = None

        async def attempt() -> Response:
            nonlocal away, until
            now = self.clock.monotonic()
            if now >= min(until, end):
                raise self._timed_out(away) from away
            left = end - now
            try:
                return await send(left)
            except grpc.aio.AioRpcError as error:
                known = from_rpc_error(error, self.service)
                if isinstance(known, UnavailableError):
                    failed = self.clock.monotonic()
                    if patience_seconds and (away is None or failed - now > _LONGEST_RETRY_SECONDS):
                        # It was there for a while, so the wait for it begins anew.
                        until = failed + patience_seconds
                    away = known
                    if begin + _GIVEN_UP_SECONDS < failed:
                        self._raise_given_up()
                raise known from error

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(UnavailableError),
            wait=wait_random_exponential(_FIRST_RETRY_SECONDS, max=_LONGEST_RETRY_SECONDS),
            reraise=True,
        )
        return await retrying(attempt)

    def _raise_given_up(self) -> None:
        """Raise what a service that cannot start has said; waiting for it is of no use."""
        if self.home is None:
            return
        try:
            reason = self.home.why(self.service).read_text(errors="replace").strip()
        except OSError:
            return
        raise PreconditionError(
            f"the {self.service} service cannot start: {reason}",
            reason="SERVICE_CANNOT_START",
            fix="mend that, then run `muniment up`; nothing of this call was recorded",
        )

    def _timed_out(self, last: UnavailableError | None) -> MunimentError:
        if last is not None and last.reason != "SERVICE_UNAVAILABLE":
            # The service was there, and had its reason each time.
            return TimedOutError(last.message, reason=last.reason, field=last.field, fix=last.fix)
        return TimedOutError(
            f"the {self.service} service did not come back within the deadline",
            reason="SERVICE_AWAY",
            fix="see `muniment doctor`, then call again; a write that took place is not repeated",
        )
