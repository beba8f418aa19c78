"""The operability tools of the context reference."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from muniment.bridge.calls import Call
from muniment.bridge.catalogue import Outcome, Tool
from muniment.bridge.lanes import Resource
from muniment.bridge.tools.memory import compact
from muniment.bridge.tools.schemas import array_of, integer, object_of, string, truth
from muniment.workflows.status import HostStatus, host_status

__all__ = ["MODERN_VERSION", "STATUS", "status_content"]

MODERN_VERSION = "2026-07-28"

_COUNTS = ("episodes", "anchors", "project_episodes", "project_anchors")


async def status_content(call: Call) -> dict[str, Any]:
    """What the host can tell of itself and of the caller's project."""
    context, source = call.context()
    status = await host_status(call.clients, context)
    return {
        "version": version("muniment"),
        "protocol_version": MODERN_VERSION,
        "project_id": context.project_id,
        "project_root": context.project_root,
        **({"session_id": context.session_id} if context.session_id else {}),
        "session_source": source,
        "backend": "none",
        "backend_note": "no inference server is configured",
        "capabilities": "none",
        "cache_coherence": (
            "unavailable: without an inference server the cache cannot be seen,"
            " so pin more aggressively"
        ),
        "embedder": "none",
        **_counts(status),
    }


def _counts(status: HostStatus) -> dict[str, Any]:
    if status.memory is None:
        return {
            "could_not_tell": [*_COUNTS, "tokenizer", "store_holds_other_projects"],
            "failure": str(status.failure),
        }
    stats = status.memory
    if stats.doubts:
        return {
            "tokenizer": stats.tokenizer,
            "could_not_tell": [*_COUNTS, "store_holds_other_projects"],
            "failure": f"{'; '.join(stats.doubts)}; run `muniment verify-store`",
        }
    return {
        "tokenizer": stats.tokenizer,
        "episodes": stats.episodes,
        "anchors": stats.pins,
        "project_episodes": stats.project_episodes,
        "project_anchors": stats.project_pins,
        "store_holds_other_projects": stats.episodes > stats.project_episodes
        or stats.pins > stats.project_pins,
        "could_not_tell": [],
    }


async def _status(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    content = await status_content(call)
    return Outcome(content, compact(content))


STATUS = Tool(
    name="sakur4.status",
    title="Status of the memory host",
    description=(
        "Once at the start of a session, see backend, tokenizer and what is remembered of this"
        " project."
    ),
    input_schema=object_of({}),
    output_schema=object_of(
        {
            **{
                name: string()
                for name in (
                    "version",
                    "protocol_version",
                    "project_id",
                    "project_root",
                    "session_id",
                    "session_source",
                    "backend",
                    "backend_note",
                    "capabilities",
                    "cache_coherence",
                    "tokenizer",
                    "embedder",
                    "failure",
                )
            },
            **{name: integer() for name in _COUNTS},
            "store_holds_other_projects": truth(),
            "could_not_tell": array_of(string()),
        },
        *("version", "protocol_version", "project_id", "session_source"),
        *("backend", "capabilities", "cache_coherence", "embedder", "could_not_tell"),
    ),
    read_only=True,
    idempotent=True,
    reads=frozenset({Resource.EPISODES, Resource.PINS}),
    writes=frozenset(),
    run=_status,
)
