"""How an answer of ours differs from the reference's, as paths: none where it is the same.

What no two runs share is compared by its form: ids, times, nonces, ranks, sentences. Keys that we
add are listed here, once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.contract.transcripts import Case

__all__ = ["EXTRA_KEYS", "TENANT", "differences"]

TENANT = "00000000-0000-0000-0000-000000000001"
"""The tenant of the transcripts."""

EXTRA_KEYS = {
    "total": "how many there are on all pages, since a list or search may show a part",
    "omitted": "rows that were left out for the budget, which the reference drops in silence",
    "total_characters": "how long the whole of a cut value is",
    "truncated": "beside what was cut, as in the reference; also where ours cuts and its did not",
    "tampered": "rows that were changed from outside and are not shown",
    "doubts": "what is amiss with the store as a whole",
    "unsupported": "words of the query that no row has",
    "forms": "words that were found in another form",
    "retrievers": "what found the rows",
    "notes": "what could not be looked at",
}
"""Keys of answers that the reference has not, each with the reason."""

GENERIC = "one or more arguments failed validation (wrong type or format); the offending value is"

_FORMS = {
    "id": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "event_id": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "created_at": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    "updated_at": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    "ts": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    "nonce": r"[0-9a-f]{12}",
    "note": r".{40,}",
    "explain": r"[^\n]{10,500}\.",
}
"""Texts that no two programs share."""

_NUMBERS = ("rank", "best_pre_gate_coverage", "candidates")
"""Numbers that are of the engine; what is null has to be null, though."""

_ELIDED = re.compile(r"\.\.\.\d+ more\.\.\.")


def differences(case: Case, response: Mapping[str, Any], tenant: str) -> list[str]:
    """Where this response is other than the reference's."""
    if case.is_error is None:
        return ["answer"]
    if "error" in response:
        return ["protocol error"]
    result = response["result"]
    if len(result["content"]) != 1:
        return ["content"]
    text = result["content"][0]["text"]
    if result["isError"] != case.is_error:
        return ["isError"]
    told = json.loads(text)
    if case.is_error:
        assert "structuredContent" not in result
        return sorted(set(_of_failure(case, told, tenant)))
    assert result["structuredContent"] == told, "the text is the structured content"
    return sorted(set(_of(case.answer, told, "", tenant)))


def _of_failure(case: Case, told: Mapping[str, Any], tenant: str) -> Iterator[str]:
    assert list(told)[:4] == ["ok", "code", "error", "message"], "one shape for all failures"
    assert told["ok"] is False
    for key in case.answer.keys() - told.keys():
        yield key
    for key in ("code", "error"):
        if told[key] != case.answer[key]:
            yield key
    message = case.answer["message"].replace(TENANT, tenant)
    if message.startswith(GENERIC):
        # Ours names the argument, and neither repeats what was sent.
        if not re.match(
            r"(category|name|body|query|limit|tiers|key|kind|reason)\b", told["message"]
        ):
            yield "message"
    elif _without_sizes(message) != _without_sizes(told["message"]):
        yield "message"


def _without_sizes(message: str) -> str:
    return re.sub(r"\d+\.\d KB", "N KB", message)


def _of(theirs: Any, ours: Any, path: str, tenant: str) -> Iterator[str]:
    name = path.rpartition(".")[2]
    if isinstance(theirs, Mapping) and "__len__" in theirs:
        if not _same_long_text(theirs, ours):
            yield path
    elif isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        yield from _of_objects(theirs, ours, path, tenant)
    elif isinstance(theirs, list) and isinstance(ours, list):
        yield from _of_lists(theirs, ours, path, tenant)
    elif not _same_leaf(name, theirs, ours, tenant):
        yield path


def _same_leaf(name: str, theirs: Any, ours: Any, tenant: str) -> bool:
    if name in _FORMS:
        return isinstance(ours, str) and re.fullmatch(_FORMS[name], ours) is not None
    if name == "tenant_id":
        return bool((theirs, ours) == (TENANT, tenant))
    if name in _NUMBERS:
        return (theirs is None) == (ours is None) and not isinstance(ours, str | bool)
    if name == "snippet":
        return isinstance(ours, str) and bool(theirs) == bool(ours)
    return type(theirs) is type(ours) and bool(theirs == ours)


def _same_long_text(theirs: Mapping[str, Any], ours: Any) -> bool:
    if not isinstance(ours, str) or len(ours) != theirs["__len__"]:
        return False
    return ours.startswith(theirs["head"]) and ours.endswith(theirs["tail"])


def _of_objects(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], path: str, tenant: str
) -> Iterator[str]:
    if path.endswith("_untrusted_context"):
        nonce = ours.get("nonce")
        if ours.get("begin") != f"[UNTRUSTED MEMORY CONTEXT BEGIN:{nonce}]":
            yield path
        if ours.get("end") != f"[UNTRUSTED MEMORY CONTEXT END:{nonce}]":
            yield path
        theirs = {key: value for key, value in theirs.items() if key in ("nonce", "note")}
        ours = {key: value for key, value in ours.items() if key in ("nonce", "note")}
    common = [key for key in ours if key in theirs]
    if common != [key for key in theirs if key in ours]:
        yield f"{path}:order"
    for key in theirs.keys() - ours.keys():
        yield f"{path}.{key}:missing"
    for key in ours.keys() - theirs.keys() - EXTRA_KEYS.keys():
        yield f"{path}.{key}:extra"
    is_event = theirs.get("tier") == "journal"
    for key in common:
        if key == "key" and is_event:
            yield from _of("", ours[key], f"{path}.id", tenant)
        elif key == "gate_drops":
            yield from _of_drops(theirs[key], ours[key], f"{path}.{key}")
        else:
            yield from _of(theirs[key], ours[key], f"{path}.{key}", tenant)


def _of_drops(theirs: Mapping[str, int], ours: Mapping[str, int], path: str) -> Iterator[str]:
    """Counters of the engine's stages: which of them dropped anything."""
    if list(theirs) != list(ours) or not all(type(count) is int for count in ours.values()):
        yield path


def _of_lists(theirs: list[Any], ours: list[Any], path: str, tenant: str) -> Iterator[str]:
    elided = [
        place for place, one in enumerate(theirs) if isinstance(one, str) and _ELIDED.fullmatch(one)
    ]
    if elided:
        (place,) = elided
        left_out = int(theirs[place].strip(".").split()[0])
        if len(ours) != len(theirs) - 1 + left_out:
            yield path
            return
        ours = ours[:place] + ours[place + left_out :]
        theirs = theirs[:place] + theirs[place + 1 :]
    if path.endswith("results") and _keys(theirs) != _keys(ours):
        yield path
        return
    if len(theirs) != len(ours):
        yield path
        return
    for one, other in zip(theirs, ours, strict=True):
        yield from _of(one, other, f"{path}[]", tenant)


def _keys(rows: list[Any]) -> list[Any]:
    """What the rows are, in their order; events are told apart by what they say."""
    return [
        (row.get("tier"), row.get("category"), row["body"])
        if row.get("tier") == "journal"
        else (row.get("tier"), row.get("category"), row.get("key", row.get("name")))
        for row in rows
    ]
