"""Recorded conversations with the vault reference's program, where they are at hand."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.tools import ROOT

__all__ = ["GROUPS", "Case", "cases_of", "folder", "group_parameters"]

VARIABLE = "MUNIMENT_TEST_TRANSCRIPTS"
"""The folder with the transcripts; `make test-contract TRANSCRIPTS=FOLDER` sets it."""

BESIDE = ROOT.parent / "shared" / "data" / "records-transcripts"

GROUPS = (
    "01_good",
    "02_write_edges",
    "03_state_journal_edges",
    "04_search_edges",
    "05_truncation_budget",
    "06_cap",
)


@dataclass(frozen=True)
class Case:
    """One call, and what the reference's program answered."""

    group: str
    index: int
    name: str
    tool: str
    arguments: dict[str, Any]
    is_error: bool | None
    """None where there was no answer at all."""
    answer: dict[str, Any]
    """The object, of a failure that of its text."""
    plain_text: str
    """The text of a failure that had no object."""


def folder() -> Path | None:
    """Where the transcripts are, or None."""
    named = os.environ.get(VARIABLE)
    place = Path(named) if named else BESIDE
    if named and not place.is_dir():
        pytest.fail(f"{VARIABLE} names {place}, which is no folder")
    return place if place.is_dir() else None


def cases_of(group: str) -> list[Case]:
    """The cases of a transcript, in their order."""
    place = folder()
    assert place is not None
    recorded = json.loads((place / f"{group}.json").read_text())["cases"]
    return [_case(group, index, one) for index, one in enumerate(recorded)]


def group_parameters(*, search: bool) -> list[Any]:
    """All cases that search, or all others, as parameters; without transcripts one that skips."""
    if folder() is None:
        skip = pytest.mark.skip(reason=f"there are no transcripts; set {VARIABLE} to their folder")
        return [pytest.param(None, marks=skip, id="no-transcripts")]
    return [
        pytest.param(case, id=f"{group}:{case.index}:{case.name}")
        for group in GROUPS
        for case in cases_of(group)
        if (case.tool == "memory_search") == search
    ]


def _case(group: str, index: int, recorded: dict[str, Any]) -> Case:
    response = recorded["response"]
    answer, plain = recorded.get("parsed"), ""
    if answer is None and "text" in response:
        (text,) = response["text"]
        plain = text if isinstance(text, str) else text["head"]
        _, _, told = plain.partition("{")
        answer = json.loads("{" + told) if told else {}
    return Case(
        group=group,
        index=index,
        name=recorded["case"],
        tool=recorded["tool"],
        arguments=_whole(recorded["arguments"]),
        is_error=response.get("isError"),
        answer=answer or {},
        plain_text=plain,
    )


def _whole(value: Any) -> Any:
    """An argument with its long texts made again from their beginning, as they repeat."""
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.keys() >= {"__len__", "head"}:
        return _repeated(value["head"], value["__len__"])
    return {key: _whole(inner) for key, inner in value.items()}


def _repeated(head: str, length: int) -> str:
    period = next(
        size for size in range(1, len(head)) if head == (head[:size] * len(head))[: len(head)]
    )
    return (head[:period] * (length // period + 1))[:length]
