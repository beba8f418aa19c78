"""What the tools answer, as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = [
    "AnswerError",
    "Committed",
    "Dependent",
    "Hit",
    "Pinned",
    "committed",
    "dependents",
    "field",
    "pinned",
    "recalled",
]

_Value = TypeVar("_Value")


class AnswerError(Exception):
    """A tool answered in another form than the one that it promises."""


@dataclass(frozen=True)
class Committed:
    """An acknowledged turn."""

    episode_id: str
    seq: int
    token_count: int
    supersedes: str | None


@dataclass(frozen=True)
class Pinned:
    """A rule in the Anchor Set."""

    kind: str
    token_cost: int


@dataclass(frozen=True)
class Hit:
    """One thing that recall found."""

    kind: str
    hit_id: str
    text: str
    reasons: tuple[str, ...]
    role: str | None
    """Absent for what is no episode, as is `seq`."""
    tool_name: str | None
    seq: int | None
    superseded_by: str | None
    current_value: str | None


@dataclass(frozen=True)
class Dependent:
    """Something that a change would reach."""

    name: str
    file: str
    line: int
    via: str
    is_test: bool


def committed(answer: Mapping[str, Any]) -> Committed:
    """Read the answer of `memory.commit_episode`."""
    return Committed(
        field(answer, "episode_id", str),
        field(answer, "seq", int),
        field(answer, "token_count", int),
        _optional(answer, "supersedes", str),
    )


def pinned(answer: Mapping[str, Any]) -> Pinned:
    """Read the answer of `memory.pin`."""
    return Pinned(
        field(answer, "kind", str),
        field(answer, "token_cost", int),
    )


def recalled(answer: Mapping[str, Any]) -> list[Hit]:
    """Read the answer of `memory.recall`, best hit first."""
    return [_hit(entry) for entry in field(answer, "results", list)]


def dependents(answer: Mapping[str, Any]) -> list[Dependent]:
    """Read the answer of `code.impact_of_change`, the nearest first."""
    return [
        Dependent(
            name=field(entry, "qualified_name", str),
            file=field(entry, "file", str),
            line=field(entry, "at_line", int),
            via=field(entry, "via", str),
            is_test=field(entry, "test", bool),
        )
        for entry in field(answer, "callers", list)
    ]


def field(answer: Mapping[str, Any], name: str, kind: type[_Value]) -> _Value:
    """Return a field of an answer.

    Raises:
        AnswerError: It is missing, or of another type.
    """
    value = answer.get(name)
    if not isinstance(value, kind):
        raise AnswerError(f"the answer has no {name} of type {kind.__name__}")
    return value


def _optional(answer: Mapping[str, Any], name: str, kind: type[_Value]) -> _Value | None:
    return None if answer.get(name) is None else field(answer, name, kind)


def _hit(entry: Mapping[str, Any]) -> Hit:
    return Hit(
        kind=field(entry, "kind", str),
        hit_id=field(entry, "id", str),
        text=field(entry, "text", str),
        reasons=tuple(field(entry, "reasons", list)),
        role=_optional(entry, "role", str),
        tool_name=_optional(entry, "tool_name", str),
        seq=_optional(entry, "seq", int),
        superseded_by=_optional(entry, "superseded_by", str),
        current_value=_optional(entry, "current_value", str),
    )
