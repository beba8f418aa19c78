"""The eight record tools of the vault reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muniment.bridge.calls import Call
from muniment.bridge.catalogue import VAULT_FAMILY, Outcome, Tool
from muniment.bridge.lanes import Resource
from muniment.bridge.tools.common import compact
from muniment.bridge.tools.memory import RECALL
from muniment.bridge.tools.record_schemas import (
    ANY,
    BETWEEN_ROWS,
    ENTITY,
    FENCE,
    HIT,
    NAMED,
    OK,
    VERDICT,
)
from muniment.bridge.tools.recorded import (
    FETCHED_CHARACTERS,
    as_time,
    entity_row,
    fenced,
    hit_row,
    listed_body,
    readable,
    verdict_row,
    within_budget,
)
from muniment.bridge.tools.schemas import array_of, integer, object_of, string, truth
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, NotFoundError
from muniment.kit.fence import disarmed, disarmed_name, echoed_name
from muniment.v1 import records_pb2
from muniment.workflows.records import ask

__all__ = ["RECORD_TOOLS"]

_PROFILES = frozenset({"vault", "all"})

_TIERS = {
    "entity": records_pb2.RECORD_KIND_ENTITY,
    "state": records_pb2.RECORD_KIND_STATE,
    "reference": records_pb2.RECORD_KIND_REFERENCE,
    "journal": records_pb2.RECORD_KIND_JOURNAL,
}

_LEAST_QUERY_CHARACTERS = 3
_SEARCH_HITS, _SEARCH_LIMIT = 10, 50
_LIST_ROWS, _LIST_LIMIT = 50, 200


def _json(field: str, value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        raise InvalidArgumentError(
            "has a number, a character or a depth that JSON cannot carry",
            reason="BODY_NO_JSON",
            field=field,
        ) from None
    return text


def _writing(call: Call, tool: str, arguments: Mapping[str, Any]) -> CallContext:
    return call.writing(call.tenant_context(), tool, arguments)


def _outcome(content: Mapping[str, Any]) -> Outcome:
    return Outcome(content, compact(content))


async def _remember(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    category, name = arguments["category"], arguments["name"]
    await ask(
        call.clients,
        _writing(call, "memory_remember", arguments),
        call.clients.records.Remember,
        records_pb2.RememberRequest(
            category=category, name=name, body_json=_json("body", arguments["body"])
        ),
        deadline_seconds=call.deadline_seconds,
    )
    return _outcome({"ok": True, "category": echoed_name(category), "name": echoed_name(name)})


async def _recall(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context = call.tenant_context()
    category, name = arguments["category"], arguments["name"]
    try:
        found = await ask(
            call.clients,
            context,
            call.clients.records.RecallEntity,
            records_pb2.RecallEntityRequest(category=category, name=name),
            deadline_seconds=call.deadline_seconds,
        )
    except NotFoundError as error:
        raise NotFoundError(
            f"entity {category:.100}/{name:.100} not found for tenant {context.tenant_id}",
            reason=error.reason,
            fix="memory_list shows what there is, memory_search finds it by other words",
        ) from error
    entity = entity_row(found.entity, context.tenant_id)
    entity["body"], cut = readable(found.entity.body_json)
    return _outcome(fenced({"ok": True, "entity": {**entity, **cut}}))


async def _search(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    query = arguments["query"]
    limit = min(max(arguments.get("limit", _SEARCH_HITS), 1), _SEARCH_LIMIT)
    long_enough = len(query.strip()) >= _LEAST_QUERY_CHARACTERS
    tiers = arguments.get("tiers") if long_enough else None
    response = await ask(
        call.clients,
        call.tenant_context(),
        call.clients.records.SearchRecords,
        records_pb2.SearchRecordsRequest(
            query=query,
            limit=limit,
            kinds=_kinds(tiers) if tiers else (),
            raw=bool(tiers),
            body_limit_characters=FETCHED_CHARACTERS,
        ),
        deadline_seconds=call.deadline_seconds,
    )
    rows, omitted = within_budget(hit_row(hit) for hit in response.hits)
    content: dict[str, Any] = {
        "ok": True,
        "query": disarmed(query),
        "count": len(rows),
        "results": rows,
        "verdict": verdict_row(response, len(rows)),
        "total": response.total,
    }
    if omitted:
        content["omitted"] = omitted
    if response.tampered:
        content["tampered"] = response.tampered
    return _outcome(fenced(content))


def _kinds(tiers: str) -> list[records_pb2.RecordKind.ValueType]:
    names = [name for name in (part.strip() for part in tiers.split(",")) if name]
    unknown = sorted(set(names) - set(_TIERS))
    if unknown:
        raise InvalidArgumentError(
            f"unknown tiers: {', '.join(unknown):.200}; valid: {', '.join(_TIERS)}",
            reason="ARGUMENT_WRONG",
        )
    return [_TIERS[name] for name in dict.fromkeys(names)]


async def _list(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context = call.tenant_context()
    category = arguments.get("category")
    limit = min(max(arguments.get("limit", _LIST_ROWS), 1), _LIST_LIMIT)
    response = await ask(
        call.clients,
        context,
        call.clients.records.ListEntities,
        records_pb2.ListEntitiesRequest(
            category=category,
            limit=limit,
            body_limit_characters=FETCHED_CHARACTERS,
        ),
        deadline_seconds=call.deadline_seconds,
    )
    listed = []
    for one in response.entities:
        row = entity_row(one.entity, context.tenant_id)
        row["body"], cut = listed_body(one.entity.body_json, one.body_characters)
        listed.append({**row, **cut})
    rows, _ = within_budget(listed)
    # The service, too, sends no more than fits a message.
    omitted = min(limit, response.total) - len(rows) - response.tampered
    content: dict[str, Any] = {
        "ok": True,
        "category": None if category is None else echoed_name(category),
        "count": len(rows),
        "results": rows,
        "total": response.total,
    }
    if omitted > 0:
        content["omitted"] = omitted
    if response.tampered:
        content["tampered"] = response.tampered
    if response.doubts:
        content["doubts"] = list(response.doubts)
    return _outcome(fenced(content))


async def _forget(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    category, name = arguments["category"], arguments["name"]
    await ask(
        call.clients,
        _writing(call, "memory_forget", arguments),
        call.clients.records.Forget,
        records_pb2.ForgetRequest(category=category, name=name, reason=arguments.get("reason")),
        deadline_seconds=call.deadline_seconds,
    )
    archived = {"category": echoed_name(category), "name": echoed_name(name)}
    return _outcome({"ok": True, "archived": archived})


async def _set_state(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    await ask(
        call.clients,
        _writing(call, "memory_set_state", arguments),
        call.clients.records.SetState,
        records_pb2.SetStateRequest(
            key=arguments["key"], body_json=_json("body", arguments["body"])
        ),
        deadline_seconds=call.deadline_seconds,
    )
    return _outcome({"ok": True, "key": echoed_name(arguments["key"])})


async def _get_state(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    key = arguments["key"]
    try:
        found = await ask(
            call.clients,
            call.tenant_context(),
            call.clients.records.GetState,
            records_pb2.GetStateRequest(key=key),
            deadline_seconds=call.deadline_seconds,
        )
    except NotFoundError:
        return _outcome({"ok": False, "code": "NOT_FOUND", "key": echoed_name(key)})
    body, cut = readable(found.state.body_json)
    updated = as_time(found.state.updated_at)
    content = {"ok": True, "key": disarmed_name(found.state.key), "body": body}
    return _outcome(fenced({**content, "updated_at": updated, **cut}))


async def _record_event(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    response = await ask(
        call.clients,
        _writing(call, "memory_record_event", arguments),
        call.clients.records.RecordEvent,
        records_pb2.RecordEventRequest(
            kind=arguments["kind"],
            body_json=_json("body", _object(arguments["body"])),
            category=arguments.get("category"),
            name=arguments.get("name"),
        ),
        deadline_seconds=call.deadline_seconds,
    )
    kind = disarmed(arguments["kind"])
    return _outcome({"ok": True, "event_id": response.event_id, "kind": kind})


def _object(body: Any) -> Any:
    """The body; read, where a host sent an object as its JSON text."""
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            body = None
    if not isinstance(body, dict):
        raise InvalidArgumentError("must be an object", reason="ARGUMENT_WRONG", field="body")
    return body


async def _either_recall(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    raise InvalidArgumentError(
        "is missing; it takes text, or give category and name to read one record",
        reason="ARGUMENT_MISSING",
        field="query",
    )


def _tool(
    name: str,
    title: str,
    description: str,
    takes: dict[str, Any],
    gives: dict[str, Any],
    run: Any,
    **more: Any,
) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        input_schema=takes,
        output_schema=gives,
        run=run,
        family=VAULT_FAMILY,
        **{"profiles": _PROFILES, **more},
    )


_READS: dict[str, Any] = {
    "read_only": True,
    "idempotent": True,
    "reads": frozenset({Resource.RECORDS}),
    "writes": frozenset(),
}
_WRITES: dict[str, Any] = {
    "read_only": False,
    "idempotent": True,
    "reads": frozenset(),
    "writes": frozenset({Resource.RECORDS}),
}

_REMEMBER = _tool(
    "memory_remember",
    "Remember a record",
    "When you learn a lasting fact, keep it under category and name; the same names update it.",
    object_of({**NAMED, "body": {"description": "Any JSON value"}}, "category", "name", "body"),
    object_of({**OK, "category": string(), "name": string()}, "ok", "category", "name"),
    _remember,
    **_WRITES,
)

_RECALL = _tool(
    "memory_recall",
    "Recall a record",
    "When you know category and name, read that record whole; else use memory_search.",
    object_of(NAMED, "category", "name"),
    object_of(
        {**OK, "entity": ENTITY, "_untrusted_context": FENCE},
        *("ok", "entity", "_untrusted_context"),
    ),
    _recall,
    **(_READS | {"profiles": frozenset({"vault"})}),
)

_SEARCH = _tool(
    "memory_search",
    "Search records",
    "Before you act on a memory, search; without rows do what verdict.recovery says, twice at"
    " most.",
    object_of(
        {
            "query": string("Words or a question"),
            "limit": integer("Rows, 1-50", default=_SEARCH_HITS),
            "tiers": string("Ungated, of these: entity,state,reference,journal"),
        },
        "query",
    ),
    object_of(
        {
            **OK,
            "query": string(),
            "count": integer(),
            "results": array_of(HIT),
            "verdict": VERDICT,
            **BETWEEN_ROWS,
            "_untrusted_context": FENCE,
        },
        *("ok", "query", "count", "results", "verdict", "total", "_untrusted_context"),
    ),
    _search,
    **_READS,
)

_LIST = _tool(
    "memory_list",
    "List records",
    "When you want to see what is kept, list entities, the most recently updated first.",
    object_of({"category": string(), "limit": integer("Rows, 1-200", default=_LIST_ROWS)}),
    object_of(
        {
            **OK,
            "category": {"type": ["string", "null"]},
            "count": integer(),
            "results": array_of(ENTITY),
            **BETWEEN_ROWS,
            "doubts": array_of(string()),
            "_untrusted_context": FENCE,
        },
        *("ok", "category", "count", "results", "total", "_untrusted_context"),
    ),
    _list,
    **_READS,
)

_FORGET = _tool(
    "memory_forget",
    "Forget a record",
    "When a record no longer holds, move it to the archive, where no search finds it.",
    object_of({**NAMED, "reason": string()}, "category", "name"),
    object_of(
        {**OK, "archived": object_of({"category": string(), "name": string()})}, "ok", "archived"
    ),
    _forget,
    **(_WRITES | {"idempotent": False}),
)

_SET_STATE = _tool(
    "memory_set_state",
    "Set a state document",
    "When what you are working on changes, overwrite the state document of that key.",
    object_of({"key": string(), "body": {"description": "Any JSON value"}}, "key", "body"),
    object_of({**OK, "key": string()}, "ok", "key"),
    _set_state,
    **_WRITES,
)

_GET_STATE = _tool(
    "memory_get_state",
    "Read a state document",
    "Once at the start of a session, read the state document that you set before.",
    object_of({"key": string()}, "key"),
    object_of(
        {
            **OK,
            "code": string(),
            "key": string(),
            "body": ANY,
            "updated_at": string(),
            "truncated": truth(),
            "total_characters": integer(),
            "_untrusted_context": FENCE,
        },
        *("ok", "key"),
    ),
    _get_state,
    **_READS,
)

_RECORD_EVENT = _tool(
    "memory_record_event",
    "Record an event",
    "After something happened or was decided, append it to the journal; nothing changes it later.",
    object_of(
        {
            "kind": string("e.g. decision"),
            "body": {"type": ["object", "string"], "description": "An object"},
            "category": string("Of the entity that it is about"),
            "name": string("Of that entity"),
        },
        *("kind", "body"),
    ),
    object_of({**OK, "event_id": string(), "kind": string()}, "ok", "event_id", "kind"),
    _record_event,
    **(_WRITES | {"idempotent": False}),
)

_EITHER_RECALL = Tool(
    name="memory_recall",
    title="Recall from memory",
    description=(
        "When you cannot remember, search what was said with query, or read one record with"
        " category and name."
    ),
    input_schema=object_of({**RECALL.input_schema["properties"], **NAMED}),
    output_schema=object_of(
        {
            **RECALL.output_schema["properties"],
            **_RECALL.output_schema["properties"],
        }
    ),
    read_only=True,
    idempotent=True,
    reads=RECALL.reads | _RECALL.reads,
    writes=frozenset(),
    run=_either_recall,
    profiles=frozenset({"all"}),
)
"""In the list of all tools, where the names of two would differ by a dot alone."""

RECORD_TOOLS = (
    _REMEMBER,
    _RECALL,
    _EITHER_RECALL,
    _SEARCH,
    _LIST,
    _FORGET,
    _SET_STATE,
    _GET_STATE,
    _RECORD_EVENT,
)
