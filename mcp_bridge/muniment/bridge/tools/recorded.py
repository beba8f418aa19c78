"""Records as the vault tools hand them out: bounded, inside a fence, with all that was cut said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.fence import disarmed, disarmed_name, fence
from muniment.kit.nesting import is_deeper
from muniment.kit.randomness import SystemRandomness
from muniment.v1 import records_pb2
from muniment.workflows.verdicts import code_name, explain, gate_name, recovery

__all__ = [
    "FETCHED_CHARACTERS",
    "HIT_CHARACTERS",
    "READ_CHARACTERS",
    "RESULT_CHARACTERS",
    "as_time",
    "entity_row",
    "fenced",
    "hit_row",
    "listed_body",
    "readable",
    "verdict_row",
    "within_budget",
]

HIT_CHARACTERS = 1500
"""Longest body or snippet of a hit or listed entity."""

READ_CHARACTERS = 1_000_000
"""Longest body of a record that is read alone."""

RESULT_CHARACTERS = 200_000
"""All rows of one answer together."""

VALUE_LEVELS = 128
"""Deepest nesting of a value that is handed out as one; a deeper one is handed out as its text."""

FETCHED_CHARACTERS = 2 * HIT_CHARACTERS
"""What is asked of the service for a hit: enough, when markers are taken out of it."""

_ELLIPSIS = "…"

_BETWEEN_VALUES = re.compile(r'("(?:[^"\\]|\\.)*"?)|([:,])', re.DOTALL)
"""In JSON without blanks: a text, the last one unfinished perhaps, or what stands between values.
"""

_RANDOMNESS = SystemRandomness()

_MILLISECONDS = 3

_TIERS = {
    records_pb2.RECORD_KIND_ENTITY: "entity",
    records_pb2.RECORD_KIND_STATE: "state",
    records_pb2.RECORD_KIND_REFERENCE: "reference",
    records_pb2.RECORD_KIND_JOURNAL: "journal",
}


def fenced(content: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, with the block that says that its values are data; these are disarmed already."""
    return {**content, "_untrusted_context": fence(_RANDOMNESS)}


def as_time(timestamp: Timestamp) -> str:
    """RFC 3339 in UTC, with milliseconds."""
    text = timestamp.ToJsonString().removesuffix("Z")
    seconds, _, fraction = text.partition(".")
    return f"{seconds}.{fraction[:_MILLISECONDS].ljust(_MILLISECONDS, '0')}Z"


def entity_row(entity: records_pb2.Entity, tenant_id: str) -> dict[str, Any]:
    """All of an entity but its body, which comes in its place as null."""
    return {
        # Of a record that came from elsewhere it may be any text.
        "id": disarmed(entity.id),
        "tenant_id": tenant_id,
        "category": disarmed_name(entity.category),
        "name": disarmed_name(entity.name),
        "status": disarmed(entity.status) if entity.HasField("status") else None,
        "body": None,
        "created_at": as_time(entity.created_at),
        "updated_at": as_time(entity.updated_at),
    }


def readable(body_json: str) -> tuple[Any, dict[str, Any]]:
    """A body that is read alone, and what there is to say of it where it was cut."""
    return _bounded(body_json, len(body_json), READ_CHARACTERS)


def listed_body(body_json: str, characters: int) -> tuple[Any, dict[str, Any]]:
    """A hit's body, of which the service may have sent the beginning alone."""
    return _bounded(body_json, characters, HIT_CHARACTERS)


def _bounded(body_json: str, characters: int, limit: int) -> tuple[Any, dict[str, Any]]:
    if characters == len(body_json):
        value = disarmed(json.loads(body_json))
        rendered = json.dumps(value, ensure_ascii=False)
        if is_deeper(value, VALUE_LEVELS):
            # The SDK cannot carry it, nor can many a host.
            return _whole_or_cut(rendered, limit), {
                "truncated": True,
                "total_characters": characters,
            }
        if len(rendered) <= limit:
            return value, {}
    else:
        rendered = str(disarmed(_spaced(body_json)))
    cut = {"truncated": True, "total_characters": characters}
    return rendered[:limit] + _ELLIPSIS, cut


def _whole_or_cut(rendered: str, limit: int) -> str:
    return rendered if len(rendered) <= limit else rendered[:limit] + _ELLIPSIS


def _spaced(body_json: str) -> str:
    """The beginning of a JSON text, with the blanks that `json.dumps` has by default."""
    return _BETWEEN_VALUES.sub(lambda part: part[1] or f"{part[2]} ", body_json)


def hit_row(hit: records_pb2.SearchHit) -> dict[str, Any]:
    """A hit of a search."""
    body, cut = listed_body(hit.body_json, hit.body_characters)
    snippet = str(disarmed(hit.snippet))
    if len(snippet) > HIT_CHARACTERS:
        snippet, cut = snippet[:HIT_CHARACTERS] + _ELLIPSIS, {**cut, "truncated": True}
    return {
        "tier": _TIERS[hit.kind],
        "key": disarmed_name(hit.key),
        "category": disarmed_name(hit.category) if hit.HasField("category") else None,
        "body": body,
        "snippet": snippet,
        "rank": hit.rank,
        "ts": as_time(hit.ts),
        **cut,
    }


def within_budget(rows: Iterable[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], int]:
    """The rows that fit, the first always among them; and how many were left out."""
    kept: list[Mapping[str, Any]] = []
    used = omitted = 0
    for row in rows:
        used += len(json.dumps(row, ensure_ascii=False))
        if omitted or (kept and used > RESULT_CHARACTERS):
            omitted += 1
        else:
            kept.append(row)
    return kept, omitted


def verdict_row(response: records_pb2.SearchRecordsResponse, returned: int) -> dict[str, Any]:
    """The thirteen keys of a verdict, and behind them what the reference has no key for."""
    verdict = response.verdict
    told = {
        "code": code_name(verdict),
        "tokens": list(verdict.tokens),
        "gate": gate_name(verdict),
        "gate_drops": {
            "coverage_floor": verdict.dropped_coverage_floor,
            "anchor_gate": verdict.dropped_anchor,
            "prep_filter": verdict.dropped_preparation,
        },
        "best_pre_gate_coverage": (
            round(verdict.best_coverage, 4) if verdict.HasField("best_coverage") else None
        ),
        "tokens_total": verdict.tokens_total if verdict.HasField("tokens_total") else None,
        "tokens_scored": verdict.tokens_scored if verdict.HasField("tokens_scored") else None,
        "dropped_function": list(verdict.dropped_function),
        "candidates": verdict.candidates if verdict.HasField("candidates") else None,
        "returned": returned,
        "abstained": code_name(verdict) in ("abstained_on", "negation_abstain"),
        "recovery": recovery(verdict),
        "explain": explain(verdict, returned, response.total),
        **_more(verdict),
    }
    # Words of the query alone may come to a marker.
    return dict(disarmed(told))


def _more(verdict: records_pb2.Verdict) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if verdict.unsupported:
        told["unsupported"] = list(verdict.unsupported)
    if verdict.forms:
        told["forms"] = [
            {"asked": form.asked, "found": form.found, "how": form.how} for form in verdict.forms
        ]
    if verdict.retrievers:
        told["retrievers"] = list(verdict.retrievers)
    if verdict.notes:
        told["notes"] = list(verdict.notes)
    return told
