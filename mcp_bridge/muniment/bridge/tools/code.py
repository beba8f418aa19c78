"""The tools of the code index of the context reference: parser output, not memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.bridge.calls import Call
from muniment.bridge.catalogue import Outcome, Tool
from muniment.bridge.lanes import Resource
from muniment.bridge.tools.coded import (
    impact_content,
    map_content,
    rendered_impact,
    rendered_map,
    rendered_symbol,
    symbol_content,
)
from muniment.bridge.tools.schemas import array_of, integer, object_of, string, truth
from muniment.workflows.code import get_impact, get_repo_map, query_symbol

__all__ = ["GET_REPO_MAP", "IMPACT_OF_CHANGE", "QUERY_SYMBOL"]

_DEFAULT_DEPTH = 4
_LEAST_DEPTH, _MOST_DEPTH = 1, 16

# The contract's uint32.
_MOST_TOKENS = 2**32 - 1

_TEXT_OR_NULL = {"type": ["string", "null"]}
_NUMBER_OR_NULL = {"type": ["integer", "null"]}

_FRESHNESS = {"freshness": string(), "freshness_note": string(), "project_id": string()}
"""What all three results have."""

_DEFINITIONS = array_of(
    object_of(
        {
            "qualified_name": string(),
            "kind": string(),
            "signature": string(),
            "file": string(),
            "line": integer(),
            "end_line": integer(),
            "doc": string(),
            "language": string(),
            "ast_hash": string(),
            "symbol_id": string(),
        },
        *("qualified_name", "kind", "signature", "file", "line", "end_line", "language"),
        *("ast_hash", "symbol_id"),
    )
)

_NAME = string("path::Type::member, or its end", minLength=1)


async def _get_repo_map(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context, _ = call.context()
    response = await get_repo_map(
        call.clients,
        context,
        token_budget=min(arguments["token_budget"], _MOST_TOKENS),
        focus_paths=arguments.get("focus_paths", ()),
        names_only=arguments.get("names_only", False),
        deadline_seconds=call.deadline_seconds,
    )
    content = map_content(arguments["token_budget"], response)
    content["project_id"] = context.project_id
    return Outcome(content, rendered_map(content))


GET_REPO_MAP = Tool(
    name="code.get_repo_map",
    title="Outline of the repository",
    description=(
        "Before you open files in full, get an outline of the repository, what most depends on"
        " first; it says how current it is."
    ),
    input_schema=object_of(
        {
            "token_budget": integer("Most tokens of the map", minimum=0),
            "focus_paths": array_of(string()) | {"description": "Rank what these reach higher"},
            "names_only": truth() | {"description": "Qualified names instead of signatures"},
        },
        "token_budget",
    ),
    output_schema=object_of(
        {
            "map": string(),
            "tokens_used": integer(),
            "token_budget": integer(),
            "tokenizer": string(),
            "exact": truth(),
            "shown_symbols": integer(),
            "symbols": integer(),
            "notes": array_of(string()),
            "indexed_at": string(),
            **_FRESHNESS,
        },
        *("map", "tokens_used", "token_budget", "tokenizer", "exact", "shown_symbols", "symbols"),
        *("notes", "freshness", "freshness_note", "project_id"),
    ),
    read_only=True,
    idempotent=True,
    reads=frozenset({Resource.CODE}),
    writes=frozenset(),
    run=_get_repo_map,
)


async def _query_symbol(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context, _ = call.context()
    name = arguments["qualified_name"]
    response = await query_symbol(
        call.clients, context, name, deadline_seconds=call.deadline_seconds
    )
    content = symbol_content(name, response)
    content["project_id"] = context.project_id
    return Outcome(content, rendered_symbol(content))


QUERY_SYMBOL = Tool(
    name="code.query_symbol",
    title="Look up a symbol",
    description=(
        "When you are unsure whether a signature or place that you remember is still true, look it"
        " up: parser output, not memory."
    ),
    input_schema=object_of({"qualified_name": _NAME}, "qualified_name"),
    output_schema=object_of(
        {
            "found": truth(),
            "qualified_name": string(),
            "kind": _TEXT_OR_NULL,
            "signature": _TEXT_OR_NULL,
            "file": _TEXT_OR_NULL,
            "line": _NUMBER_OR_NULL,
            "ast_hash": _TEXT_OR_NULL,
            "source": _TEXT_OR_NULL,
            "definitions": _DEFINITIONS,
            "note": string(),
            **_FRESHNESS,
        },
        *("found", "qualified_name", "kind", "signature", "file", "line", "ast_hash", "source"),
        *("definitions", "note", "freshness", "freshness_note", "project_id"),
    ),
    read_only=True,
    idempotent=True,
    reads=frozenset({Resource.CODE}),
    writes=frozenset(),
    run=_query_symbol,
    profiles=frozenset({"context", "all"}),
)


async def _impact_of_change(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context, _ = call.context()
    name = arguments["qualified_name"]
    # Clamped, as the reference says.
    depth = max(_LEAST_DEPTH, min(arguments.get("depth", _DEFAULT_DEPTH), _MOST_DEPTH))
    response = await get_impact(
        call.clients, context, name, depth=depth, deadline_seconds=call.deadline_seconds
    )
    content = impact_content(name, depth, response)
    content["rendered"] = rendered_impact(content)
    content["project_id"] = context.project_id
    return Outcome(content, content["rendered"])


IMPACT_OF_CHANGE = Tool(
    name="code.impact_of_change",
    title="What a change would break",
    description=(
        "Before you change a signature or remove a symbol, list what depends on it, transitively,"
        " with the tests."
    ),
    input_schema=object_of(
        {"qualified_name": _NAME, "depth": integer("1-16", default=_DEFAULT_DEPTH)},
        "qualified_name",
    ),
    output_schema=object_of(
        {
            "symbol": string(),
            "signature": _TEXT_OR_NULL,
            "ast_hash": _TEXT_OR_NULL,
            "definitions": _DEFINITIONS,
            "depth": integer(),
            "callers": array_of(
                object_of(
                    {
                        "qualified_name": string(),
                        "file": _TEXT_OR_NULL,
                        "line": _NUMBER_OR_NULL,
                        "depth": integer(),
                        "via": string(),
                        "through": string(),
                        "at_line": integer(),
                        "certainty": string(),
                        "stale": truth(),
                        "test": truth(),
                    },
                    *("qualified_name", "file", "line", "depth", "via", "through", "at_line"),
                    *("certainty", "stale", "test"),
                )
            ),
            "left_out": integer(),
            "rendered": string(),
            **_FRESHNESS,
        },
        *("symbol", "signature", "ast_hash", "definitions", "depth", "callers", "left_out"),
        *("rendered", "freshness", "freshness_note", "project_id"),
    ),
    read_only=True,
    idempotent=True,
    reads=frozenset({Resource.CODE}),
    writes=frozenset(),
    run=_impact_of_change,
)
