"""Makes the manifest that the front answers from: `python -m muniment.bridge.build_manifest`.

It is what the worker would answer, written down; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from pydantic import BaseModel

from muniment.bridge.catalogue import NAMES, PROFILES
from muniment.bridge.manifest import MANIFEST_PATH
from muniment.bridge.protocol import (
    CACHE_HINTS,
    INSTRUCTIONS,
    listed_prompts,
    listed_templates,
    listed_tools,
    make_server,
)
from muniment.bridge.tools.operability import MODERN_VERSION
from muniment.bridge.worker import CATALOGUE
from muniment.kit.files import replace_file

__all__ = ["render"]

_RELAYED = (
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "subscriptions/listen",
)


def render() -> str:
    """The manifest's text."""
    server = make_server(CATALOGUE, ListenHandler(InMemorySubscriptionBus()))
    manifest = {
        "version": version("muniment"),
        "instructions": dict(INSTRUCTIONS),
        "server_info": _wire(server.server_info),
        "methods": list(_RELAYED),
        "capabilities": {
            "modern": _wire(server.get_capabilities(protocol_version=MODERN_VERSION)),
            "legacy": _wire(server.get_capabilities()),
        },
        "profiles": {
            profile: {
                names: {
                    "tools": _wires(listed_tools(CATALOGUE, profile, names)),
                    "prompts": _wires(listed_prompts()),
                    "resource_templates": _wires(listed_templates()),
                }
                for names in (NAMES if profile == "context" else ("safe",))
            }
            for profile in PROFILES
        },
        "cache": {
            method: {"ttlMs": hint.ttl_ms, "cacheScope": hint.scope}
            for method, hint in sorted(CACHE_HINTS.items())
        },
    }
    return json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"


def _wire(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _wires(models: Sequence[BaseModel]) -> list[dict[str, Any]]:
    return [_wire(model) for model in models]


if __name__ == "__main__":
    replace_file(Path(MANIFEST_PATH), render().encode())
