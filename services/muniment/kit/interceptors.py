"""What happens around every call: metrics, errors, deadline, context.

It is one async context manager around the servicer's method, so that unary and streaming calls
pass through the same few lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

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
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_context: ContextVar[CallContext] = ContextVar("muniment_call_context")

# gRPC's own services take no part in the house's rules.
_FOREIGN = ("/grpc.",)


def call_context() -> CallContext:
    """The context of the call that is being served."""
    return _context.get()


def interceptors(metrics: Metrics, clock: Clock) -> tuple[grpc.aio.ServerInterceptor, ...]:
    """The house's interceptors, outermost first."""
    return (_HouseInterceptor(metrics, clock),)


class _HouseInterceptor(grpc.aio.ServerInterceptor):
    """Wraps each method's behaviour, whatever its arity, in `_around`.

    It is one for everything: each more would cost every call a few coroutines.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._wrapped: dict[str, tuple[_Handler, _Handler]] = {}
        """By method: the handler, and what it became."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        """Wrap the handler that would serve the call."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(_FOREIGN):
            return handler
        known = self._wrapped.get(method)
        if known is None or known[0] is not handler:
            known = self._wrapped[method] = handler, self._wrap(method, handler)
        return known[1]

    def _wrap(self, method: str, handler: _Handler) -> _Handler:
        kind = ("stream" if handler.request_streaming else "unary") + (
            "_stream" if handler.response_streaming else "_unary"
        )
        behaviour = getattr(handler, kind)

        async def one(request: Any, call: _Call) -> Any:
            async with self._around(method, call):
                return await behaviour(request, call)

        async def many(request: Any, call: _Call) -> AsyncIterator[Any]:
            async with self._around(method, call):
                async for response in behaviour(request, call):
                    yield response

        make = getattr(grpc, f"{kind}_rpc_method_handler")
        wrapped: _Handler = make(
            many if handler.response_streaming else one,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )
        return wrapped

    @asynccontextmanager
    async def _around(self, method: str, call: _Call) -> AsyncIterator[None]:
        """Count the call; give it its context; turn its errors into status codes."""
        began = self._clock.monotonic()
        self._metrics.add_running(1)
        failure: MunimentError | None = None
        code = "OK"
        try:
            _require_deadline(call)
            _set_context(method, call)
            yield
        except MunimentError as error:
            failure = error
        except grpc.aio.AbortError:
            code = _code_name(call.code())
            raise
        except Exception:
            _log.exception("call failed", method=method)
            failure = _DEFECT
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        except BaseException:
            code = _code_name(call.code())
            raise
        finally:
            if failure is not None:
                code = to_status(failure).code.name
            # Before the caller hears of it: who asks for the counts then finds its call in them.
            self._metrics.add_running(-1)
            self._metrics.ended(method, code, self._clock.monotonic() - began)
        if failure is not None:
            await _abort(call, failure)


_DEFECT = InternalError(
    "the service failed on this call",
    reason="INTERNAL",
    fix="see the service's log with `muniment logs`",
)


def _code_name(code: Any) -> str:
    # grpc.aio hands out the number for a code that was set by abort.
    if isinstance(code, grpc.StatusCode):
        return code.name
    return next((one.name for one in grpc.StatusCode if one.value[0] == code), "UNKNOWN")


async def _abort(call: _Call, error: MunimentError) -> None:
    status = to_status(error)
    await call.abort(status.code, status.details, tuple(status.trailing_metadata or ()))


def _require_deadline(call: _Call) -> None:
    if call.time_remaining() is None:
        raise InvalidArgumentError(
            "the call has no deadline",
            reason="DEADLINE_MISSING",
            field="deadline",
            fix="set one; the contract names each call's class",
        )


def _set_context(method: str, call: _Call) -> None:
    """For the task of this call, which ends with it."""
    context = CallContext.from_metadata(call.invocation_metadata() or ())
    _context.set(context)
    structlog.contextvars.bind_contextvars(
        method=method,
        project=context.project_id,
        session=context.session_id,
        caller=context.caller,
    )
