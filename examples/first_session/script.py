"""The session file: its steps as typed values, and what makes one well-formed.

Reads text and returns values; talks to nobody.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "PIN_KINDS",
    "ROLES",
    "Commit",
    "Impact",
    "Kill",
    "Narrate",
    "NewSession",
    "Pin",
    "Recall",
    "ScriptError",
    "Step",
    "parse",
    "read",
]

ROLES = ("user", "assistant", "tool", "system")
PIN_KINDS = ("safety_constraint", "user_correction", "task_contract")


class ScriptError(Exception):
    """A line of the session file is not what it should be; names the line and the field."""


@dataclass(frozen=True)
class Commit:
    """A turn to record."""

    step: int
    role: str
    content: str
    tool_name: str | None
    corrects: int | None
    """The step of the earlier turn that this one corrects."""


@dataclass(frozen=True)
class Pin:
    """A rule to pin."""

    step: int
    content: str
    kind: str


@dataclass(frozen=True)
class Recall:
    """A question, and what one of its first answers has to contain."""

    step: int
    query: str
    expect: str
    why: str
    """One sentence for the reader."""


@dataclass(frozen=True)
class Impact:
    """What a change of a symbol would reach, and files that have to be among it."""

    step: int
    symbol: str
    expect: tuple[str, ...]
    why: str
    """One sentence for the reader."""


@dataclass(frozen=True)
class Kill:
    """End a service with SIGKILL."""

    step: int
    service: str


@dataclass(frozen=True)
class NewSession:
    """Leave the bridge and start another one."""

    step: int


@dataclass(frozen=True)
class Narrate:
    """A sentence for the reader."""

    step: int
    text: str


Step = Commit | Pin | Recall | Impact | Kill | NewSession | Narrate

# What each kind of line may hold beside `step` and `do`: required fields, then optional ones.
_FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "commit": (frozenset({"role", "content"}), frozenset({"tool_name", "corrects"})),
    "pin": (frozenset({"content", "kind"}), frozenset()),
    "recall": (frozenset({"query", "expect", "why"}), frozenset()),
    "impact": (frozenset({"symbol", "expect", "why"}), frozenset()),
    "kill": (frozenset({"service"}), frozenset()),
    "new_session": (frozenset(), frozenset()),
    "narrate": (frozenset({"text"}), frozenset()),
}


def read(path: Path) -> list[Step]:
    """Return the steps of a session file, in order.

    Raises:
        ScriptError: The file cannot be read, or a line is malformed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"cannot read the session file: {error}") from error
    return parse(text.removesuffix("\n").split("\n"))


def parse(lines: Iterable[str]) -> list[Step]:
    """Return the steps that these lines hold, one JSON object a line, numbered from 1.

    Raises:
        ScriptError: A line is malformed, or corrects what is no earlier turn of its session.
    """
    steps: list[Step] = []
    correctable: set[int] = set()
    for number, line in enumerate(lines, 1):
        step = _step(number, line)
        if isinstance(step, NewSession):
            correctable.clear()
        elif isinstance(step, Commit):
            if step.corrects is not None and step.corrects not in correctable:
                raise ScriptError(
                    f"line {number}: corrects: {step.corrects} is no earlier turn of this session"
                )
            correctable.add(number)
        steps.append(step)
    return steps


def _step(number: int, line: str) -> Step:
    entry = _entry(number, line)
    match entry["do"]:
        case "commit":
            return _commit(number, entry)
        case "pin":
            kind = _one_of(number, entry, "kind", PIN_KINDS)
            return Pin(number, _text(number, entry, "content"), kind)
        case "recall":
            query, expect, why = (_text(number, entry, f) for f in ("query", "expect", "why"))
            return Recall(number, query, expect, why)
        case "impact":
            symbol, why = (_text(number, entry, f) for f in ("symbol", "why"))
            return Impact(number, symbol, _texts(number, entry, "expect"), why)
        case "kill":
            return Kill(number, _text(number, entry, "service"))
        case "new_session":
            return NewSession(number)
        case _:
            return Narrate(number, _text(number, entry, "text"))


def _entry(number: int, line: str) -> dict[str, Any]:
    """The line's object, with the fields that its `do` takes and no others."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise ScriptError(f"line {number}: not JSON: {error.msg}") from error
    if not isinstance(entry, dict):
        raise ScriptError(f"line {number}: not an object")
    if entry.get("step") != number:
        raise ScriptError(f"line {number}: step: has to be {number}")
    do = entry.get("do")
    if not isinstance(do, str) or do not in _FIELDS:
        raise ScriptError(f"line {number}: do: has to be one of {', '.join(_FIELDS)}")
    required, optional = _FIELDS[do]
    given = entry.keys() - {"step", "do"}
    if missing := required - given:
        raise ScriptError(f"line {number}: {do}: lacks {', '.join(sorted(missing))}")
    if unknown := given - required - optional:
        raise ScriptError(f"line {number}: {do}: does not take {', '.join(sorted(unknown))}")
    return entry


def _commit(number: int, entry: dict[str, Any]) -> Commit:
    role = _one_of(number, entry, "role", ROLES)
    if (role == "tool") != ("tool_name" in entry):
        raise ScriptError(f"line {number}: tool_name: a tool's turn has one, and no other has")
    corrects = entry.get("corrects")
    if corrects is not None and type(corrects) is not int:
        raise ScriptError(f"line {number}: corrects: has to be a step's number")
    return Commit(
        number,
        role,
        _text(number, entry, "content"),
        _text(number, entry, "tool_name") if role == "tool" else None,
        corrects,
    )


def _text(number: int, entry: dict[str, Any], field: str) -> str:
    value = entry[field]
    if not isinstance(value, str) or not value.strip():
        raise ScriptError(f"line {number}: {field}: has to be a text that is not empty")
    return value


def _texts(number: int, entry: dict[str, Any], field: str) -> tuple[str, ...]:
    values = entry[field]
    if not isinstance(values, list) or not values or not all(isinstance(v, str) for v in values):
        raise ScriptError(f"line {number}: {field}: has to be a list of texts that is not empty")
    return tuple(values)


def _one_of(number: int, entry: dict[str, Any], field: str, allowed: tuple[str, ...]) -> str:
    value = _text(number, entry, field)
    if value not in allowed:
        raise ScriptError(f"line {number}: {field}: has to be one of {', '.join(allowed)}")
    return value
