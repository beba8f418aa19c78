"""A manifest of a few made-up tools, with everything in it that revisions treat differently."""

from __future__ import annotations

import json
from pathlib import Path


def _tool(name: str) -> dict[str, object]:
    return {
        "name": name,
        "title": f"Title of {name}",
        "description": f"Does {name} — 記憶.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
        "annotations": {"readOnlyHint": True, "title": "Shown"},
    }


PROMPTS: list[dict[str, object]] = [
    {
        "name": "preamble",
        "title": "Preamble",
        "description": "How to use the memory.",
        "arguments": [{"name": "project", "title": "Project", "required": True}],
    }
]

TEMPLATES: list[dict[str, object]] = [
    {
        "name": "receipt",
        "title": "Receipt",
        "uriTemplate": "sakur4://receipt/{project}",
        "description": "One receipt.",
        "mimeType": "application/json",
        "annotations": {"priority": 0.5},
    }
]


def _listing(*names: str, prompts: bool = True) -> dict[str, object]:
    return {
        "tools": [_tool(name) for name in names],
        "prompts": PROMPTS if prompts else [],
        "resource_templates": TEMPLATES if prompts else [],
    }


MANIFEST: dict[str, object] = {
    "version": "9.8.7",
    "instructions": {
        "context": "Commit every turn; recall before you answer.",
        "vault": "Search before you rely on a record.",
    },
    "server_info": {"name": "muniment", "title": "Muniment", "version": "9.8.7"},
    "methods": [
        "completion/complete",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "tools/call",
    ],
    "capabilities": {
        "modern": {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
        },
        "legacy": {
            "tools": {"listChanged": False},
            "prompts": {"listChanged": False},
            "resources": {"listChanged": False, "subscribe": True},
        },
    },
    "profiles": {
        "context": {
            "reference": _listing("memory.recall", "sakur4.status"),
            "safe": _listing("memory_recall", "sakur4_status"),
        },
        "vault": {"safe": _listing("state_set", "state_get")},
        "core": {"safe": _listing("memory_recall", prompts=False)},
        "all": {"safe": _listing("memory_recall", "sakur4_status", "state_get")},
    },
    "cache": {
        "server/discover": {"ttlMs": 300000, "cacheScope": "public"},
        "tools/list": {"ttlMs": 300000, "cacheScope": "public"},
        "prompts/list": {"ttlMs": 300000, "cacheScope": "public"},
        "resources/list": {"ttlMs": 10000, "cacheScope": "private"},
        "resources/templates/list": {"ttlMs": 10000, "cacheScope": "private"},
    },
}


def write_manifest(folder: Path) -> Path:
    """The manifest as a file in a folder."""
    path = folder / "manifest.json"
    path.write_bytes(json.dumps(MANIFEST).encode())
    return path
