"""Records as plain values that print and turn into JSON.

A value that may be absent is null; what is said only where there is something to say is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from muniment.v1 import records_pb2 as pb
from muniment.workflows import verdicts

__all__ = [
    "Answer",
    "archived_told",
    "change_told",
    "entity_told",
    "event_told",
    "hit_told",
    "listed_told",
    "record_told",
    "reference_told",
    "state_told",
    "time_told",
    "verdict_told",
    "warnings_of",
]

Answer = dict[str, Any]


def record_told(record: pb.Record) -> Answer:
    """A record of any kind."""
    match record.WhichOneof("record"):
        case "entity":
            return {"kind": "entity"} | entity_told(record.entity)
        case "state":
            return {"kind": "state"} | state_told(record.state)
        case "reference":
            return {"kind": "reference"} | reference_told(record.reference)
        case "event":
            return {"kind": "journal"} | event_told(record.event)
        case _:
            return {"kind": "archive"} | archived_told(record.archived)


def _name(name: pb.RecordName) -> Answer:
    """How a record is named."""
    answer: Answer = {"kind": _kind(name.kind)}
    if name.kind == pb.RECORD_KIND_ENTITY:
        answer["category"] = name.category
    return answer | {"key": name.key}


def _kind(kind: pb.RecordKind.ValueType) -> str:
    return pb.RecordKind.Name(kind).removeprefix("RECORD_KIND_").lower()


def entity_told(entity: pb.Entity) -> Answer:
    """An entity."""
    return {
        "id": entity.id,
        "category": entity.category,
        "name": entity.name,
        "status": entity.status if entity.HasField("status") else None,
        **time_told(entity, "created_at"),
        **time_told(entity, "updated_at"),
        "body": json.loads(entity.body_json),
    }


def listed_told(listed: pb.ListedEntity) -> Answer:
    """An entity of a list; its body is the beginning, as a text, where it was cut."""
    whole = pb.Entity()
    whole.CopyFrom(listed.entity)
    whole.body_json = "null"
    body, more = _bounded(listed.entity.body_json, listed.body_characters)
    return entity_told(whole) | {"body": body} | more


def _bounded(body_json: str, characters: int) -> tuple[Any, Answer]:
    """A body of which only the beginning may have been sent: then it is a text."""
    if len(body_json) == characters:
        return json.loads(body_json), {}
    return body_json, {"truncated": True, "body_characters": characters}


def archived_told(archived: pb.ArchivedEntity) -> Answer:
    """An entity that was forgotten."""
    return {
        "id": archived.id,
        **time_told(archived, "archived_at"),
        "reason": archived.reason if archived.HasField("reason") else None,
        "entity": entity_told(archived.entity),
    }


def state_told(state: pb.StateDocument) -> Answer:
    """A state document."""
    return {"key": state.key, **time_told(state, "updated_at"), "body": json.loads(state.body_json)}


def reference_told(reference: pb.ReferenceDocument) -> Answer:
    """A reference document."""
    return {
        "key": reference.key,
        **time_told(reference, "updated_at"),
        "metadata": json.loads(reference.metadata_json or "{}"),
        "body": reference.body,
    }


def event_told(event: pb.JournalEvent) -> Answer:
    """An event, with those of its four values that it has."""
    answer: Answer = {"id": event.id} | time_told(event, "ts")
    for part in ("evaluated", "acted", "forward", "extra"):
        text = getattr(event, f"{part}_json")
        if text:
            answer[part] = json.loads(text)
    return answer


def time_told(message: Any, field: str) -> Answer:
    """A time under its name; null where it is not known."""
    return {field: getattr(message, field).ToJsonString() if message.HasField(field) else None}


def change_told(change: pb.RecordChange) -> Answer:
    """A change, and the record before it."""
    what = {(False, True): "created", (True, True): "changed", (True, False): "deleted"}
    answer: Answer = {
        "position": change.position,
        "at": change.at.ToJsonString(),
        "what": what.get((change.existed, change.exists), "nothing"),
        **_name(change.name if change.name.key else pb.RecordName(kind=change.kind)),
    }
    if change.HasField("before"):
        answer["before"] = record_told(change.before)
    for field in ("before_sha256", "after_sha256"):
        if value := getattr(change, field):
            answer[field] = value.hex()
    return answer


def hit_told(hit: pb.SearchHit) -> Answer:
    """A hit of a search."""
    body, more = _bounded(hit.body_json, hit.body_characters)
    answer: Answer = {"tier": _kind(hit.kind), "key": hit.key}
    if hit.HasField("category"):
        answer["category"] = hit.category
    return answer | {
        "snippet": hit.snippet,
        "rank": hit.rank,
        **time_told(hit, "ts"),
        "matched": list(hit.matched),
        "body": body,
        **more,
    }


def verdict_told(verdict: pb.Verdict, returned: int, total: int) -> Answer:
    """A verdict, with what would help and a sentence on why."""
    optional = {
        "best_coverage": verdict.best_coverage if verdict.HasField("best_coverage") else None,
        "tokens_total": verdict.tokens_total if verdict.HasField("tokens_total") else None,
        "tokens_scored": verdict.tokens_scored if verdict.HasField("tokens_scored") else None,
        "candidates": verdict.candidates if verdict.HasField("candidates") else None,
    }
    return {
        "code": verdicts.code_name(verdict),
        "recovery": verdicts.recovery(verdict),
        "explain": verdicts.explain(verdict, returned, total),
        "tokens": list(verdict.tokens),
        "gate": verdicts.gate_name(verdict),
        **optional,
        "dropped_function": list(verdict.dropped_function),
        "unsupported": list(verdict.unsupported),
        "forms": [
            {"asked": form.asked, "found": form.found, "how": form.how} for form in verdict.forms
        ],
        "retrievers": list(verdict.retrievers),
        "notes": list(verdict.notes),
    }


def warnings_of(tampered: int, doubts: Iterable[str]) -> list[str]:
    """What makes a list less than it seems."""
    fails = "fail their check and are not shown; run `muniment verify-store`"
    found = [f"{tampered} records {fails}"] if tampered else []
    return found + [
        f"{doubt}, so something may be missing; run `muniment verify-store`" for doubt in doubts
    ]
