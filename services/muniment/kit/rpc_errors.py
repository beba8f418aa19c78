"""Errors across gRPC: made here, read here.

A MunimentError becomes a status code with google.rpc details (ErrorInfo always, BadRequest for a
field, RetryInfo where a retry helps, Help-like fixes in ErrorInfo metadata), and back.
"""

from __future__ import annotations

from typing import cast

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from muniment.kit import errors

__all__ = ["DOMAIN", "from_rpc_error", "to_status"]

DOMAIN = "muniment"

_RETRY_AFTER = Duration(nanos=200_000_000)

_CODES: dict[type[errors.MunimentError], tuple[grpc.StatusCode, int]] = {
    errors.InvalidArgumentError: (grpc.StatusCode.INVALID_ARGUMENT, code_pb2.INVALID_ARGUMENT),
    errors.NotFoundError: (grpc.StatusCode.NOT_FOUND, code_pb2.NOT_FOUND),
    errors.ConflictError: (grpc.StatusCode.ALREADY_EXISTS, code_pb2.ALREADY_EXISTS),
    errors.PreconditionError: (
        grpc.StatusCode.FAILED_PRECONDITION,
        code_pb2.FAILED_PRECONDITION,
    ),
    errors.LimitError: (grpc.StatusCode.RESOURCE_EXHAUSTED, code_pb2.RESOURCE_EXHAUSTED),
    errors.UnavailableError: (grpc.StatusCode.UNAVAILABLE, code_pb2.UNAVAILABLE),
    errors.TimedOutError: (grpc.StatusCode.DEADLINE_EXCEEDED, code_pb2.DEADLINE_EXCEEDED),
    errors.TamperedError: (grpc.StatusCode.DATA_LOSS, code_pb2.DATA_LOSS),
    errors.InternalError: (grpc.StatusCode.INTERNAL, code_pb2.INTERNAL),
}
_CLASSES = {code: kind for kind, (code, _) in _CODES.items()}


def to_status(error: errors.MunimentError) -> grpc.Status:
    """The gRPC status that carries the error."""
    number = next(_CODES[kind][1] for kind in type(error).__mro__ if kind in _CODES)
    status = status_pb2.Status(code=number, message=error.message)
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN)
    if error.fix:
        info.metadata["fix"] = error.fix
    if error.field:
        info.metadata["field"] = error.field
    status.details.add().Pack(info)
    if error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=error.field, description=error.message, reason=error.reason
        )
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    if isinstance(error, errors.UnavailableError):
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=_RETRY_AFTER))
    return rpc_status.to_status(status)


def from_rpc_error(error: grpc.aio.AioRpcError, service: str) -> errors.MunimentError:
    """The MunimentError that the call ended with, whoever made it."""
    kind = _CLASSES.get(error.code(), errors.InternalError)
    status = rpc_status.from_call(cast(grpc.Call, error))
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            return kind(
                error.details() or "",
                reason=info.reason,
                field=info.metadata.get("field") or None,
                fix=info.metadata.get("fix") or None,
            )
    return _transport_error(kind, error, service)


def _transport_error(
    kind: type[errors.MunimentError], error: grpc.aio.AioRpcError, service: str
) -> errors.MunimentError:
    """An error that gRPC itself made, in our words."""
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return errors.PreconditionError(
            f"the {service} service is of an older version and does not know this call",
            reason="SERVICE_OLDER",
            fix=f"run `muniment restart {service}`; nothing of this call was done",
        )
    if kind is errors.UnavailableError:
        return kind(
            f"the {service} service does not answer",
            reason="SERVICE_UNAVAILABLE",
            fix="see `muniment doctor`, then call again",
        )
    if kind is errors.TimedOutError:
        return kind(
            f"the {service} service did not answer within the deadline",
            reason="DEADLINE_EXCEEDED",
            fix="call again; a write that took place is not repeated",
        )
    return kind(
        f"the {service} service failed ({error.code().name})",
        reason="RPC_FAILED",
        fix=f"see `muniment logs {service}`",
    )
