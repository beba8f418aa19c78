"""What is searched for in a record: its names, its values and their keys, as one text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muniment.memory.records.words import folded

__all__ = ["ASKS", "RecordText", "joined", "read_text", "record_text", "text_parts"]

_WRAPPED = "value"
_OF_THE_JOURNAL = frozenset({"evaluated", "acted", "forward", "extra", "kind", "body"})

_VALUE_LIMIT_CHARACTERS = 60
"""Longer values are prose; nobody asks for them whole."""

_VALUES_LIMIT = 64

ASKS = "?"
"""Among the whole values of a record of which a value is a question."""


@dataclass(frozen=True)
class RecordText:
    """What is indexed of a record."""

    text: str
    values: frozenset[str]
    """Whole values and names, each joined to one term."""


def read_text(text: str) -> Any:
    """The JSON value of a body; the text itself where it is none, as of a reference."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def record_text(
    names: tuple[str, ...], body: Any, *, more: Any = None, is_event: bool = False
) -> RecordText:
    """The text of a record with these names and that body, as a JSON value.

    `more` is a reference's metadata. The name comes last among `names`, after a category.
    """
    if isinstance(body, dict) and list(body) == [_WRAPPED]:
        body = body[_WRAPPED]
    hidden = _OF_THE_JOURNAL if is_event else frozenset()
    parts = [*names, *text_parts(body, hidden), *text_parts(more, hidden)]
    whole = [names[-1]] if names else []
    whole += [*_values(body), *_values(more)]
    values = dict.fromkeys(filter(None, map(joined, whole[:_VALUES_LIMIT])))
    asks = [ASKS] if any(one.rstrip().endswith(("?", "？")) for one in parts) else []
    return RecordText("\n".join(parts), frozenset([*values, *asks]))


def joined(value: str) -> str:
    """A short value as one term; empty where it is too long, or has no words."""
    if len(value) > _VALUE_LIMIT_CHARACTERS:
        return ""
    folded_value = folded(value)
    words = "".join(one if one.isalnum() else " " for one in folded_value).split()
    return "_".join(words) if 0 < len(words) <= 4 else ""


def text_parts(value: Any, hidden: frozenset[str] = frozenset()) -> Iterator[str]:
    """The keys and values, in order; of hidden keys the values alone."""
    if isinstance(value, dict):
        for key, inner in value.items():
            inside = " ".join(text_parts(inner, hidden))
            yield inside if key in hidden else f"{key}: {inside}"
    elif isinstance(value, list):
        for inner in value:
            yield from text_parts(inner, hidden)
    elif isinstance(value, str):
        yield value
    elif value is not None:
        yield json.dumps(value)


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _values(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)
