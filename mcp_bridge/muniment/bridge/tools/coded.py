"""Answers of the code index as the tools give them: fields, and lines of text for the model.

The text begins with counts, and says of a dependent only what is not as usual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muniment.kit.printable import printable
from muniment.v1 import code_pb2
from muniment.workflows.code_values import (
    one_meant,
    place_of,
    told_definition,
    told_dependent,
    told_index,
    told_map,
)

__all__ = [
    "impact_content",
    "map_content",
    "rendered_impact",
    "rendered_map",
    "rendered_symbol",
    "symbol_content",
]

SHOWN_DEFINITIONS = 20
SHOWN_CALLERS = 200
"""More are counted: an answer is read by a model."""

_SHOWN_CHARACTERS = 200

_PARSER = "tree_sitter"

_HOW_NAMES_ARE_FOUND = "code.get_repo_map with names_only shows the names in use"

Content = dict[str, Any]


def map_content(token_budget: int, response: code_pb2.GetRepoMapResponse) -> Content:
    """A map with what was spent on it, and when the index ran."""
    told = told_map(response)
    state = response.state
    return {
        "map": told.pop("map"),
        "tokens_used": told.pop("tokens_used"),
        "token_budget": token_budget,
        **told,
        **_freshness(state),
        **({"indexed_at": state.indexed_at.ToJsonString()} if state.HasField("indexed_at") else {}),
    }


def rendered_map(content: Mapping[str, Any]) -> str:
    """The map alone where nothing has to be said of it."""
    lines = [content["map"].rstrip("\n"), *(f"note: {note}" for note in content["notes"])]
    if content["freshness_note"] != content["map"]:
        lines += _unless_current(content)
    return "\n".join(lines)


def symbol_content(asked: str, response: code_pb2.QuerySymbolResponse) -> Content:
    """What the name means. Where it ends several names, none of them is put first."""
    definitions = [told_definition(one) for one in response.definitions]
    meant = one_meant(definitions) or {}
    return {
        "found": bool(definitions),
        "qualified_name": meant.get("qualified_name", _echoed(asked)),
        **{name: meant.get(name) for name in ("kind", "signature", "file", "line", "ast_hash")},
        "source": _PARSER if definitions else None,
        "definitions": definitions[:SHOWN_DEFINITIONS],
        "note": "; ".join(_notes(asked, response, definitions)),
        **_freshness(response.state),
    }


def _notes(
    asked: str, response: code_pb2.QuerySymbolResponse, definitions: Sequence[Content]
) -> Iterator[str]:
    if not definitions:
        yield f"no symbol is called {_echoed(asked)}"
        if response.near_names:
            yield f"near: {', '.join(map(printable, response.near_names))}"
        yield _HOW_NAMES_ARE_FOUND
        return
    names = {one["qualified_name"] for one in definitions}
    if len(names) > 1:
        yield f"{len(names)} symbols have a name that ends so: say which is meant"
    elif not response.is_exact:
        yield "found by the end of its name"
    if len(names) == 1 < len(definitions):
        yield f"it has {len(definitions)} definitions; the first is on top"
    if len(definitions) > SHOWN_DEFINITIONS:
        yield f"{len(definitions) - SHOWN_DEFINITIONS} definitions more are not listed"


def rendered_symbol(content: Mapping[str, Any]) -> str:
    """The definitions, two lines each, and what there is to say."""
    lines = [line for one in content["definitions"] for line in _definition(one)]
    if content["note"]:
        lines.append(content["note"])
    return "\n".join([*lines, *_unless_current(content)])


def impact_content(asked: str, depth: int, response: code_pb2.GetImpactResponse) -> Content:
    """Who depends on the symbol, the nearest first."""
    definitions = [told_definition(one) for one in response.targets]
    meant = one_meant(definitions) or {}
    callers = [told_dependent(one) for one in response.dependents]
    listed = callers[:SHOWN_CALLERS]
    return {
        "symbol": meant.get("qualified_name", _echoed(asked)),
        "signature": meant.get("signature"),
        "ast_hash": meant.get("ast_hash"),
        "definitions": definitions[:SHOWN_DEFINITIONS],
        "depth": depth,
        "callers": listed,
        "left_out": response.left_out + len(callers) - len(listed),
        **_freshness(response.state),
    }


def rendered_impact(content: Mapping[str, Any]) -> str:
    """The symbol, counts, and a line for each dependent: where it is, and how sure that is."""
    callers, left = content["callers"], content["left_out"]
    lines = [line for one in content["definitions"] for line in _definition(one)]
    tests = sum(one["test"] for one in callers)
    counts = f"{len(callers) + left} depend on it within depth {content['depth']}"
    if callers and not left:
        counts += f", {tests} of them {'a test' if tests == 1 else 'tests'}"
    lines.append(counts if callers else f"nothing depends on it within depth {content['depth']}")
    depth = 0
    for one in callers:
        if one["depth"] != depth:
            depth = one["depth"]
            lines.append(f"depth {depth}")
        lines.append(f"  {_caller(one)}")
    if left:
        lines.append(f"{left} more are not listed: ask with a lower depth for the nearest")
    return "\n".join([*lines, *_unless_current(content)])


def _definition(told: Mapping[str, Any]) -> Iterator[str]:
    place = place_of(told, ("line", "end_line"))
    yield f"{told['qualified_name']} ({told['kind']}, {place}, ast {told['ast_hash']})"
    yield f"  {told['signature']}"
    if "doc" in told:
        yield f"  | {told['doc']}"


def _caller(told: Mapping[str, Any]) -> str:
    remarks = [name for name in ("test", "stale") if told[name]]
    if told["certainty"] != "resolved":
        remarks.append(told["certainty"])
    if told["depth"] > 1:
        remarks.append(f"through {told['through']}")
    remark = f" [{', '.join(remarks)}]" if remarks else ""
    return f"{told['via']} {told['qualified_name']} {place_of(told, ('at_line',))}{remark}"


def _freshness(state: code_pb2.IndexState) -> Content:
    told = told_index(state)
    return {"freshness": told["freshness"], "freshness_note": told["note"]}


def _unless_current(content: Mapping[str, Any]) -> list[str]:
    if content["freshness"] == "current":
        return []
    return [f"not current: {content['freshness_note']}"]


def _echoed(asked: str) -> str:
    return printable(asked[:_SHOWN_CHARACTERS])
