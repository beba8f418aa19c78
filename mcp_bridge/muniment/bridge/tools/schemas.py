"""Words of the hand-written schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["array_of", "integer", "number", "object_of", "string", "truth"]


def object_of(properties: Mapping[str, Any], *required: str, closed: bool = True) -> dict[str, Any]:
    """An object with these properties and no others."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    if closed:
        schema["additionalProperties"] = False
    return schema


def string(description: str | None = None, **more: Any) -> dict[str, Any]:
    """A text."""
    return _of("string", description, more)


def integer(description: str | None = None, **more: Any) -> dict[str, Any]:
    """A whole number."""
    return _of("integer", description, more)


def number() -> dict[str, Any]:
    """A number."""
    return {"type": "number"}


def truth() -> dict[str, Any]:
    """True or false."""
    return {"type": "boolean"}


def array_of(items: Mapping[str, Any]) -> dict[str, Any]:
    """A list."""
    return {"type": "array", "items": dict(items)}


def _of(kind: str, description: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
    described = {"description": description} if description else {}
    return {"type": kind, **described, **more}
