"""The memory tools of the context reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.bridge.calls import Call
from muniment.bridge.catalogue import Outcome, Tool
from muniment.bridge.lanes import Resource
from muniment.bridge.tools.common import WHERE, compact, where
from muniment.bridge.tools.recalled import recalled, rendered_recall
from muniment.bridge.tools.schemas import array_of, integer, number, object_of, string, truth
from muniment.v1 import memory_pb2
from muniment.workflows.episodes import commit_episode
from muniment.workflows.pins import pin
from muniment.workflows.recall import recall

__all__ = ["COMMIT_EPISODE", "PIN", "RECALL"]

_ROLES = ("system", "user", "assistant", "tool", "internal")
_KINDS = ("safety_constraint", "user_correction", "task_contract")


async def _commit_episode(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context, source = call.context(arguments.get("session_id"), arguments.get("slot_id", 0))
    episode = await commit_episode(
        call.clients,
        call.writing(context, COMMIT_EPISODE.name, arguments),
        memory_pb2.CommitEpisodeRequest(
            role=memory_pb2.Role.Value(f"ROLE_{arguments['role'].upper()}"),
            content=arguments["content"],
            tool_name=arguments.get("tool_name"),
            corrects=arguments.get("corrects"),
        ),
        deadline_seconds=call.deadline_seconds,
    )
    content = {
        "episode_id": episode.episode_id,
        "seq": episode.seq,
        "token_count": episode.tokens.count_tokens,
        "tokenizer": episode.tokens.tokenizer,
        **({"supersedes": episode.corrects} if episode.HasField("corrects") else {}),
        **where(context, source),
    }
    return Outcome(content, compact(content))


COMMIT_EPISODE = Tool(
    name="memory.commit_episode",
    title="Commit a turn",
    description=(
        "After every turn and tool result, store it verbatim, so that it can be recalled later."
    ),
    input_schema=object_of(
        {
            "role": {"type": "string", "enum": list(_ROLES)},
            "content": string("Verbatim", minLength=1),
            "tool_name": string("For tool results"),
            "session_id": string(),
            "slot_id": integer(minimum=0),
            "corrects": string("episode_id that it corrects"),
        },
        "role",
        "content",
    ),
    output_schema=object_of(
        {
            "episode_id": string(),
            "seq": integer(),
            "token_count": integer(),
            "tokenizer": string(),
            "supersedes": string(),
            **WHERE,
        },
        *("episode_id", "seq", "token_count", "tokenizer", "project_id", "session_source"),
    ),
    read_only=False,
    idempotent=False,
    reads=frozenset(),
    writes=frozenset({Resource.EPISODES}),
    run=_commit_episode,
)


async def _pin(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    session_id = arguments.get("session_id")
    context, _ = call.context(session_id)
    kind = arguments.get("kind", "unspecified")
    response = await pin(
        call.clients,
        call.writing(context, PIN.name, arguments),
        memory_pb2.PinRequest(
            content=arguments["content"],
            kind=memory_pb2.PinKind.Value(f"PIN_KIND_{kind.upper()}"),
            session_id=session_id,
        ),
        deadline_seconds=call.deadline_seconds,
    )
    cost = response.pin.token_cost
    scope = "this session" if session_id else "this project"
    note = f"costs about {cost.count_tokens} tokens in every prompt of {scope}"
    if response.already_pinned:
        note = f"was pinned before; {note}"
    if response.HasField("previous_kind"):
        before = memory_pb2.PinKind.Name(response.previous_kind).removeprefix("PIN_KIND_").lower()
        note = f"its kind was {before}; {note}"
    content = {
        "anchor_id": response.pin.pin_id,
        "kind": memory_pb2.PinKind.Name(response.pin.kind).removeprefix("PIN_KIND_").lower(),
        "token_cost": cost.count_tokens,
        "tokenizer": cost.tokenizer,
        "already_pinned": response.already_pinned,
        "note": note,
        "project_id": context.project_id,
        **({"session_id": session_id} if session_id else {}),
    }
    return Outcome(content, compact(content))


PIN = Tool(
    name="memory.pin",
    title="Pin a rule",
    description=(
        "When the user states a rule, a correction or a requirement, pin it at once."
        " Pins survive compaction and cost tokens in every prompt."
    ),
    input_schema=object_of(
        {
            "content": string("The rule, in the user's own words", minLength=1),
            "kind": {"type": "string", "enum": list(_KINDS), "default": "task_contract"},
            "session_id": string("Only for this session"),
        },
        "content",
    ),
    output_schema=object_of(
        {
            "anchor_id": string(),
            "kind": string(),
            "token_cost": integer(),
            "tokenizer": string(),
            "already_pinned": truth(),
            "note": string(),
            "project_id": string(),
            "session_id": string(),
        },
        *("anchor_id", "kind", "token_cost", "tokenizer", "already_pinned", "note", "project_id"),
    ),
    read_only=False,
    idempotent=True,
    reads=frozenset(),
    writes=frozenset({Resource.PINS}),
    run=_pin,
)


async def _recall(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context, _ = call.context()
    response = await recall(
        call.clients,
        context,
        memory_pb2.RecallRequest(
            query=arguments["query"],
            # Clamped, as the reference says.
            k=max(1, min(arguments.get("k", 8), 100)),
            session_id=arguments.get("session_id"),
            file_path=arguments.get("file_path"),
            project_id=arguments.get("project_id"),
        ),
        deadline_seconds=call.deadline_seconds,
    )
    content = recalled(arguments["query"], response)
    if arguments.get("include_folded"):
        content["notes"].append("no fold exists yet, so nothing is left out")
    content["rendered"] = rendered_recall(content)
    return Outcome(content, content["rendered"])


RECALL = Tool(
    name="memory.recall",
    title="Recall from memory",
    description=(
        "When you cannot remember something, search what was said and decided; do not guess."
        " Where a hit is stale, trust current_value."
    ),
    input_schema=object_of(
        {
            "query": string("Words or identifiers"),
            "k": integer("Hits, 1-100", default=8),
            "session_id": string("Only this session"),
            "file_path": string("Only what shows this path"),
            "include_folded": truth(),
            "project_id": string("Another project"),
        },
        "query",
    ),
    output_schema=object_of(
        {
            "query": string(),
            "results": array_of(
                object_of(
                    {
                        "kind": string(),
                        "id": string(),
                        "score": number(),
                        "retrievers": array_of(string()),
                        "stale": truth(),
                        "current_value": {"type": ["string", "null"]},
                        "text": string(),
                        "truncated": truth(),
                        "tampered": truth(),
                        "token_cost": integer(),
                        "reasons": array_of(string()),
                        "created_at": string(),
                        "session_id": string(),
                        "role": string(),
                        "tool_name": string(),
                        "seq": integer(),
                        "superseded_by": string(),
                        "pin_kind": string(),
                    },
                    *("kind", "id", "score", "retrievers", "stale", "current_value", "text"),
                    *("token_cost", "reasons"),
                )
            ),
            "stale_flags": array_of(string()),
            "backends": array_of(string()),
            "notes": array_of(string()),
            "rendered": string(),
            "project_id": string(),
        },
        *("query", "results", "stale_flags", "backends", "notes", "rendered", "project_id"),
    ),
    read_only=True,
    idempotent=True,
    reads=frozenset({Resource.EPISODES, Resource.PINS}),
    writes=frozenset(),
    run=_recall,
    profiles=frozenset({"context", "core"}),
)
