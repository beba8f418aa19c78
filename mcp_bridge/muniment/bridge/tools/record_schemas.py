"""Schemas of what the record tools take and give."""

from __future__ import annotations

from typing import Any

from muniment.bridge.tools.schemas import array_of, integer, number, object_of, string, truth

__all__ = ["ANY", "BETWEEN_ROWS", "ENTITY", "FENCE", "HIT", "NAMED", "OK", "VERDICT"]

ANY: dict[str, Any] = {}

OK = {"ok": truth()}

NAMED = {"category": string("Kind of thing, e.g. people"), "name": string()}

FENCE = object_of(
    {"nonce": string(), "begin": string(), "end": string(), "note": string()},
    *("nonce", "begin", "end", "note"),
)

_ENTITY_ROW = {
    "id": string(),
    "tenant_id": string(),
    "category": string(),
    "name": string(),
    "status": {"type": ["string", "null"]},
    "body": ANY,
    "created_at": string(),
    "updated_at": string(),
    "truncated": truth(),
    "total_characters": integer(),
}
_ENTITY_KEYS = ("id", "tenant_id", "category", "name", "status", "body", "created_at", "updated_at")

ENTITY = object_of(_ENTITY_ROW, *_ENTITY_KEYS)

HIT = object_of(
    {
        "tier": string(),
        "key": string(),
        "category": {"type": ["string", "null"]},
        "body": ANY,
        "snippet": string(),
        "rank": number(),
        "ts": string(),
        "truncated": truth(),
        "total_characters": integer(),
    },
    *("tier", "key", "category", "body", "snippet", "rank", "ts"),
)

_COUNT = {"type": ["integer", "null"]}

VERDICT = object_of(
    {
        "code": string(),
        "tokens": array_of(string()),
        "gate": {"type": ["string", "null"]},
        "gate_drops": object_of(
            {"coverage_floor": integer(), "anchor_gate": integer(), "prep_filter": integer()},
            *("coverage_floor", "anchor_gate", "prep_filter"),
        ),
        "best_pre_gate_coverage": {"type": ["number", "null"]},
        "tokens_total": _COUNT,
        "tokens_scored": _COUNT,
        "dropped_function": array_of(string()),
        "candidates": _COUNT,
        "returned": integer(),
        "abstained": truth(),
        "recovery": string(),
        "explain": string(),
        "unsupported": array_of(string()),
        "forms": array_of(object_of({"asked": string(), "found": string(), "how": string()})),
        "retrievers": array_of(string()),
        "notes": array_of(string()),
    },
    *("code", "tokens", "gate", "gate_drops", "best_pre_gate_coverage", "tokens_total"),
    *("tokens_scored", "dropped_function", "candidates", "returned", "abstained", "recovery"),
    "explain",
)

BETWEEN_ROWS = {"total": integer(), "omitted": integer(), "tampered": integer()}
