"""Contents and schemas that the suite looks for, as its scenarios describe them."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import mcp_types as types

__all__ = [
    "ALL_DEFAULTS",
    "ALL_ENUMS",
    "PNG",
    "SCHEMA_2020_12",
    "audio",
    "embedded",
    "form",
    "image",
    "message",
    "text",
]


def _png() -> bytes:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def _wav() -> bytes:
    """Eight samples of silence."""
    samples = b"\x80" * 8
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    data = struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data


PNG = base64.b64encode(_png()).decode()
WAV = base64.b64encode(_wav()).decode()


def text(content: str) -> types.TextContent:
    """A text."""
    return types.TextContent(text=content)


def image() -> types.ImageContent:
    """A picture."""
    return types.ImageContent(data=PNG, mime_type="image/png")


def audio() -> types.AudioContent:
    """A sound."""
    return types.AudioContent(data=WAV, mime_type="audio/wav")


def embedded(uri: str, mime_type: str, content: str) -> types.EmbeddedResource:
    """A resource inside something else."""
    inner = types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return types.EmbeddedResource(resource=inner)


def message(content: types.ContentBlock) -> types.PromptMessage:
    """What the user says."""
    return types.PromptMessage(role="user", content=content)


def form(**properties: Any) -> dict[str, Any]:
    """A form in which each property has to be filled in."""
    return {"type": "object", "properties": properties, "required": list(properties)}


ALL_DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}

_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [
    {"const": f"value{number}", "title": f"{word} Choice"}
    for number, word in enumerate(("First", "Second", "Third"), 1)
]

ALL_ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
    "required": [],
}

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
