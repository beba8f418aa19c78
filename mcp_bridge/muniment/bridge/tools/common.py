"""What the results of the context tools share: for whom a call was, and compact text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muniment.bridge.tools.schemas import string
from muniment.kit.context import CallContext

__all__ = ["WHERE", "compact", "where"]

WHERE: Mapping[str, Any] = {
    "project_id": string(),
    "session_id": string(),
    "session_source": string(),
}
"""The properties that `where` gives."""


def where(context: CallContext, source: str) -> dict[str, Any]:
    """Which project and session the call was for."""
    return {
        "project_id": context.project_id,
        **({"session_id": context.session_id} if context.session_id else {}),
        "session_source": source,
    }


def compact(content: Mapping[str, Any]) -> str:
    """The content as text."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
