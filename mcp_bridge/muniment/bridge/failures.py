"""What the wire is told of a request that failed: our own words, never those of an exception."""

from __future__ import annotations

import json

import structlog
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

from muniment.kit.errors import (
    InvalidArgumentError,
    MunimentError,
    NotFoundError,
)
from muniment.kit.fence import disarmed

__all__ = ["as_protocol_error", "vault_failure"]

_log = structlog.get_logger()


def as_protocol_error(error: Exception, method: str, *, log: str) -> MCPError:
    """The JSON-RPC error for whatever a request raised; `log` says where a defect can be read."""
    if isinstance(error, MCPError):
        return error
    if isinstance(error, ValidationError):
        places = (".".join(map(str, one["loc"])) for one in error.errors())
        fields = sorted({place.removeprefix("params.") for place in places})
        text = f"{', '.join(fields)}: missing or of the wrong type for {method}"
        return MCPError(INVALID_PARAMS, text, data={"fields": fields})
    _log.error("request failed", method=method, exc_info=error)
    return MCPError(INTERNAL_ERROR, f"the bridge failed on this request; see {log}")


_CAP_EXCEEDED = "CAP_EXCEEDED"


def vault_failure(error: MunimentError) -> str:
    """The text of a failed call of the vault reference's tools: JSON, with code and class."""
    message = error.message if error.field is None else f"{error.field} {error.message}"
    code, name, recovery = "ERROR", type(error).__name__, error.fix
    if isinstance(error, InvalidArgumentError):
        code, name = "VALIDATION_ERROR", "ValidationError"
    elif isinstance(error, NotFoundError):
        code, name = "NOT_FOUND", "NotFoundError"
    elif error.reason == _CAP_EXCEEDED:
        code, name = _CAP_EXCEEDED, "CapExceededError"
    # Names in it are of the caller, or were shown to it.
    told = {"ok": False, "code": code, "error": name, "message": disarmed(message)}
    if recovery:
        told["recovery"] = recovery
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))
