"""What happens around every call: metrics, errors, deadline, context; one interceptor each.

Each is an async context manager around the servicer's method, so that unary and streaming
calls pass through the same few lines.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any

import grpc
import structlog

from muniment.kit.clock import Clock
from muniment.kit.context import CallContext
from muniment.kit.errors import InternalError, InvalidArgumentError, MunimentError
from muniment.kit.metrics import Metrics
from muniment.kit.rpc_errors import to_status

__all__ = ["call_context", "interceptors"]

_log = structlog.get_logger()
_Call = grpc.aio.ServicerContext[Any, Any]
_context: ContextVar[CallContext] = ContextVar("muniment_call_context")

# gRPC's own services take no part in the house's rules.
_FOREIGN = ("/grpc.",)


def call_context() -> CallContext:
    """The context of the call that is being served."""
    return _context.get()


def interceptors(metrics: Metrics, clock: Clock) -> tuple[grpc.aio.ServerInterceptor, ...]:
    """The house's interceptors, outermost first."""
    return (
        _MetricsInterceptor(metrics, clock),
        _ErrorsInterceptor(),
        _DeadlineInterceptor(),
        _ContextInterceptor(),
    )


class _Interceptor(grpc.aio.ServerInterceptor):
    """Wraps the method's behaviour, whatever its arity, in `around`."""

    @abstractmethod
    def around(self, method: str, call: _Call) -> AbstractAsyncContextManager[None]:
        """What happens before and after the method."""

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Wrap the handler that would serve the call."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(_FOREIGN):
            return handler
        kind = ("stream" if handler.request_streaming else "unary") + (
            "_stream" if handler.response_streaming else "_unary"
        )
        behaviour = getattr(handler, kind)

        async def one(request: Any, call: _Call) -> Any:
            async with self.around(method, call):
                return await behaviour(request, call)

        async def many(request: Any, call: _Call) -> AsyncIterator[Any]:
            async with self.around(method, call):
                async for response in behaviour(request, call):
                    yield response

        make = getattr(grpc, f"{kind}_rpc_method_handler")
        wrapped: grpc.RpcMethodHandler[Any, Any] = make(
            many if handler.response_streaming else one,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )
        return wrapped


class _MetricsInterceptor(_Interceptor):
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock

    @asynccontextmanager
    async def around(self, method: str, call: _Call) -> AsyncIterator[None]:
        began = self._clock.monotonic()
        self._metrics.add_running(1)
        code = "OK"
        try:
            yield
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        except BaseException:
            code = _code_name(call.code())
            raise
        finally:
            self._metrics.add_running(-1)
            self._metrics.ended(method, code, self._clock.monotonic() - began)


def _code_name(code: Any) -> str:
    # grpc.aio hands out the number for a code that was set by abort.
    if isinstance(code, grpc.StatusCode):
        return code.name
    return next((one.name for one in grpc.StatusCode if one.value[0] == code), "UNKNOWN")


class _ErrorsInterceptor(_Interceptor):
    @asynccontextmanager
    async def around(self, method: str, call: _Call) -> AsyncIterator[None]:
        try:
            yield
        except MunimentError as error:
            await _abort(call, error)
        except Exception as error:
            if isinstance(error, grpc.aio.AbortError):
                raise
            _log.exception("call failed", method=method)
            defect = InternalError(
                "the service failed on this call",
                reason="INTERNAL",
                fix="see the service's log with `muniment logs`",
            )
            await _abort(call, defect)


async def _abort(call: _Call, error: MunimentError) -> None:
    status = to_status(error)
    await call.abort(status.code, status.details, tuple(status.trailing_metadata or ()))


class _DeadlineInterceptor(_Interceptor):
    @asynccontextmanager
    async def around(self, method: str, call: _Call) -> AsyncIterator[None]:
        if call.time_remaining() is None:
            raise InvalidArgumentError(
                "the call has no deadline",
                reason="DEADLINE_MISSING",
                field="deadline",
                fix="set one; the contract names each call's class",
            )
        yield


class _ContextInterceptor(_Interceptor):
    @asynccontextmanager
    async def around(self, method: str, call: _Call) -> AsyncIterator[None]:
        context = CallContext.from_metadata(call.invocation_metadata() or ())
        _context.set(context)
        with structlog.contextvars.bound_contextvars(
            method=method,
            project=context.project_id,
            session=context.session_id,
            caller=context.caller,
        ):
            yield
