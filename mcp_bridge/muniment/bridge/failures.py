"""What the wire is told of a request that failed: our own words, never those of an exception."""

from __future__ import annotations

import structlog
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

__all__ = ["as_protocol_error"]

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
