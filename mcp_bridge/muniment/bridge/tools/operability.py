"""The operability tools of the context reference."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from muniment.bridge.calls import Call
from muniment.bridge.catalogue import Outcome, Tool
from muniment.bridge.lanes import Resource
from muniment.bridge.tools.common import WHERE, compact, where
from muniment.bridge.tools.inference import (
    INFERENCE,
    could_not_tell,
    inference_content,
    serving_tokenizer,
)
from muniment.bridge.tools.schemas import array_of, integer, object_of, string, truth
from muniment.workflows.code_values import told_index
from muniment.workflows.status import HostStatus, host_status

__all__ = ["MODERN_VERSION", "STATUS", "status_content"]

MODERN_VERSION = "2026-07-28"

_COUNTS = ("episodes", "anchors", "project_episodes", "project_anchors")
_CODE = ("repo_files", "code_index")


async def status_content(call: Call) -> dict[str, Any]:
    """What the host can tell of itself and of the caller's project."""
    context, source = call.context()
    status = await host_status(call.clients, context)
    return {
        "version": version("muniment"),
        "protocol_version": MODERN_VERSION,
        "project_root": context.project_root,
        **where(context, source),
        **inference_content(status.inference, context.session_id),
        "embedder": "none",
        **_counts(status),
    }


def _counts(status: HostStatus) -> dict[str, Any]:
    """Who counts, what is remembered, and what of everything could not be told."""
    stats, tokenizer = status.memory, serving_tokenizer(status.inference)
    if tokenizer is None and stats is not None:
        tokenizer = stats.tokenizer
    told: dict[str, Any] = {} if tokenizer is None else {"tokenizer": tokenizer}
    missing = [*could_not_tell(status.inference), *([] if tokenizer else ["tokenizer"])]
    failures = [str(status.failure)] if status.failure else []
    if status.code is None:
        missing += _CODE
    else:
        index = told_index(status.code.state)
        told |= dict(zip(_CODE, (index["files"], index["note"]), strict=True))
    failures += [str(status.code_failure)] if status.code_failure else []
    if stats is None or stats.doubts:
        missing += [*_COUNTS, "store_holds_other_projects"]
        if stats is not None:
            failures.append(f"{'; '.join(stats.doubts)}; run `muniment verify-store`")
    else:
        told |= {
            "episodes": stats.episodes,
            "anchors": stats.pins,
            "project_episodes": stats.project_episodes,
            "project_anchors": stats.project_pins,
            "store_holds_other_projects": stats.episodes > stats.project_episodes
            or stats.pins > stats.project_pins,
        }
    if status.inference.failure is not None:
        failures.append(str(status.inference.failure))
    return {
        **told,
        "could_not_tell": missing,
        **({"failure": "; ".join(failures)} if failures else {}),
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
            "version": string(),
            "protocol_version": string(),
            "project_root": string(),
            **WHERE,
            **INFERENCE,
            "tokenizer": string(),
            "embedder": string(),
            "failure": string(),
            **{name: integer() for name in _COUNTS},
            "repo_files": integer(),
            "code_index": string(),
            "store_holds_other_projects": truth(),
            "could_not_tell": array_of(string()),
        },
        *("version", "protocol_version", "project_id", "session_source"),
        *("backend_note", "cache_coherence", "embedder", "could_not_tell"),
    ),
    read_only=True,
    idempotent=True,
    reads=frozenset({Resource.EPISODES, Resource.PINS}),
    writes=frozenset(),
    run=_status,
)
