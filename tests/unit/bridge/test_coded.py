"""Answers of the code index as fields and as text: whatever a file says, a line stays a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from muniment.bridge.catalogue import Tool
from muniment.bridge.tools.code import GET_REPO_MAP, IMPACT_OF_CHANGE, QUERY_SYMBOL
from muniment.bridge.tools.coded import (
    SHOWN_CALLERS,
    SHOWN_DEFINITIONS,
    impact_content,
    map_content,
    rendered_impact,
    rendered_map,
    rendered_symbol,
    symbol_content,
)
from muniment.v1 import code_pb2

NAME = "app::models::Basket::total"
TEST_NAME = "tests::test_basket::test_total"

CURRENT = code_pb2.IndexState(
    freshness=code_pb2.FRESHNESS_CURRENT,
    note="indexed 2026-01-02 03:04:05 UTC",
    indexed_at=Timestamp(seconds=1_750_000_000),
)
INDEXING = code_pb2.IndexState(
    freshness=code_pb2.FRESHNESS_INDEXING, note="7 files are still to be read"
)
NOT_INDEXED = code_pb2.IndexState(
    freshness=code_pb2.FRESHNESS_NOT_INDEXED, note="that has begun: ask again"
)


def a_definition(name: str = NAME, **more: Any) -> code_pb2.Definition:
    return code_pb2.Definition(
        **{
            "symbol_id": "sym_0123456789abcdef",
            "qualified_name": name,
            "kind": code_pb2.SYMBOL_KIND_METHOD,
            "signature": "def total(self) -> int",
            "file": "app/models.py",
            "line": 12,
            "end_line": 15,
            "ast_hash": "00112233445566aa",
            "language": "python",
            **more,
        }
    )


def a_dependent(name: str, depth: int = 1, **more: Any) -> code_pb2.Dependent:
    return code_pb2.Dependent(
        **{
            "definition": a_definition(name, file="app/till.py", line=3, end_line=9),
            "depth": depth,
            "via": code_pb2.EDGE_KIND_CALLS,
            "certainty": code_pb2.EDGE_CERTAINTY_RESOLVED,
            "at_line": 5,
            "through": NAME,
            **more,
        }
    )


def checked(tool: Tool, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content, which is what the tool says that it gives."""
    whole = {**content, "project_id": "proj_1"}
    jsonschema.validate(whole, dict(tool.output_schema))
    return content


def symbol(asked: str, response: code_pb2.QuerySymbolResponse) -> Mapping[str, Any]:
    return checked(QUERY_SYMBOL, symbol_content(asked, response))


def impact(
    response: code_pb2.GetImpactResponse, asked: str = NAME
) -> tuple[Mapping[str, Any], str]:
    content = impact_content(asked, 4, response)
    content["rendered"] = rendered_impact(content)
    return checked(IMPACT_OF_CHANGE, content), content["rendered"]


# --- A symbol


def test_one_definition_is_told_in_the_reference_s_fields() -> None:
    response = code_pb2.QuerySymbolResponse(
        definitions=[a_definition(doc="What it costs.")], is_exact=True, state=CURRENT
    )
    content = symbol(NAME, response)
    assert content["found"] is True
    assert content["qualified_name"] == NAME
    assert (content["kind"], content["signature"]) == ("method", "def total(self) -> int")
    assert (content["file"], content["line"]) == ("app/models.py", 12)
    assert (content["ast_hash"], content["source"]) == ("00112233445566aa", "tree_sitter")
    assert (content["freshness"], content["note"]) == ("current", "")
    assert rendered_symbol(content).splitlines() == [
        f"{NAME} (method, app/models.py:12-15, ast 00112233445566aa)",
        "  def total(self) -> int",
        "  | What it costs.",
    ]


def test_all_definitions_of_a_name_are_told_the_first_on_top() -> None:
    both = [a_definition(), a_definition(line=20, end_line=20, signature="def total(self)")]
    response = code_pb2.QuerySymbolResponse(definitions=both, is_exact=True, state=CURRENT)
    content = symbol(NAME, response)
    assert [one["line"] for one in content["definitions"]] == [12, 20]
    assert content["line"] == 12
    assert content["note"] == "it has 2 definitions; the first is on top"
    assert "app/models.py:20," in rendered_symbol(content)


def test_of_several_names_none_is_taken_for_the_one_that_is_meant() -> None:
    both = [a_definition(), a_definition("web::cart::Basket::total", file="web/cart.py")]
    content = symbol("Basket::total", code_pb2.QuerySymbolResponse(definitions=both, state=CURRENT))
    assert content["found"] is True
    assert content["qualified_name"] == "Basket::total"
    assert content["file"] is content["line"] is content["signature"] is None
    assert content["note"] == "2 symbols have a name that ends so: say which is meant"
    assert len(content["definitions"]) == 2


def test_a_name_by_its_end_says_so() -> None:
    response = code_pb2.QuerySymbolResponse(definitions=[a_definition()], state=CURRENT)
    content = symbol("total", response)
    assert (content["qualified_name"], content["line"]) == (NAME, 12)
    assert content["note"] == "found by the end of its name"


def test_an_unknown_name_is_no_error_and_says_where_names_are() -> None:
    response = code_pb2.QuerySymbolResponse(near_names=[NAME], state=CURRENT)
    content = symbol("Basket::totl\n", response)
    assert content["found"] is False
    assert content["source"] is content["kind"] is None
    assert content["note"] == (
        f"no symbol is called Basket::totl\\x0a; near: {NAME};"
        " code.get_repo_map with names_only shows the names in use"
    )
    assert rendered_symbol(content) == content["note"]


def test_more_definitions_than_are_listed_are_counted() -> None:
    many = [a_definition(line=line, end_line=line) for line in range(SHOWN_DEFINITIONS + 3)]
    response = code_pb2.QuerySymbolResponse(definitions=many, is_exact=True, state=CURRENT)
    content = symbol(NAME, response)
    assert len(content["definitions"]) == SHOWN_DEFINITIONS
    assert "3 definitions more are not listed" in content["note"]


# --- Impact


def test_dependents_stand_by_depth_with_what_is_not_as_usual() -> None:
    response = code_pb2.GetImpactResponse(
        targets=[a_definition()],
        dependents=[
            a_dependent("app::till::ring_up"),
            a_dependent(TEST_NAME, is_test=True, is_stale=True),
            a_dependent(
                "app::shop::open",
                depth=2,
                via=code_pb2.EDGE_KIND_REFERENCES,
                certainty=code_pb2.EDGE_CERTAINTY_CANDIDATES,
                through="app::till::ring_up",
            ),
        ],
        state=CURRENT,
    )
    content, text = impact(response)
    assert (content["symbol"], content["signature"]) == (NAME, "def total(self) -> int")
    assert [one["via"] for one in content["callers"]] == ["calls", "calls", "references"]
    assert [one["stale"] for one in content["callers"]] == [False, True, False]
    assert [one["test"] for one in content["callers"]] == [False, True, False]
    assert text.splitlines()[2:] == [
        "3 depend on it within depth 4, 1 of them a test",
        "depth 1",
        "  calls app::till::ring_up app/till.py:5",
        f"  calls {TEST_NAME} app/till.py:5 [test, stale]",
        "depth 2",
        "  references app::shop::open app/till.py:5 [candidates, through app::till::ring_up]",
    ]


def test_nothing_that_depends_is_said() -> None:
    response = code_pb2.GetImpactResponse(targets=[a_definition()], state=CURRENT)
    content, text = impact(response)
    assert content["callers"] == []
    assert text.splitlines()[-1] == "nothing depends on it within depth 4"


def test_dependents_beyond_those_that_are_listed_are_counted() -> None:
    many = [a_dependent(f"app::m::f{number}") for number in range(SHOWN_CALLERS + 1)]
    response = code_pb2.GetImpactResponse(
        targets=[a_definition()], dependents=many, left_out=40, state=CURRENT
    )
    content, text = impact(response)
    assert (len(content["callers"]), content["left_out"]) == (SHOWN_CALLERS, 41)
    assert f"{SHOWN_CALLERS + 41} depend on it within depth 4\n" in text
    assert text.endswith("41 more are not listed: ask with a lower depth for the nearest")


def test_an_ambiguous_name_has_no_signature_of_its_own() -> None:
    targets = [a_definition(), a_definition("web::cart::Basket::total")]
    content, _ = impact(code_pb2.GetImpactResponse(targets=targets, state=CURRENT), "total")
    assert (content["symbol"], content["signature"], content["ast_hash"]) == ("total", None, None)


# --- The map


def a_map(text: str, state: code_pb2.IndexState, *notes: str) -> Mapping[str, Any]:
    response = code_pb2.GetRepoMapResponse(
        map=text, tokens_used=90, tokenizer="t", state=state, notes=notes
    )
    return checked(GET_REPO_MAP, map_content(100, response))


def test_the_text_of_a_map_is_the_map() -> None:
    content = a_map("app/models.py\n class Basket", CURRENT)
    assert rendered_map(content) == content["map"] == "app/models.py\n class Basket"
    assert (content["tokens_used"], content["token_budget"]) == (90, 100)
    assert content["indexed_at"] == "2025-06-15T15:06:40Z"


def test_what_is_to_be_said_of_a_map_stands_behind_it() -> None:
    text = rendered_map(a_map("app/models.py", INDEXING, "docs has no symbols"))
    assert text.splitlines() == [
        "app/models.py",
        "note: docs has no symbols",
        "not current: 7 files are still to be read",
    ]


def test_in_place_of_a_map_that_is_not_there_yet_is_why() -> None:
    content = a_map("", NOT_INDEXED)
    assert "indexed_at" not in content
    assert rendered_map(content) == content["map"] == "that has begun: ask again"


# --- For all of them


@pytest.mark.parametrize("state", [INDEXING, NOT_INDEXED])
def test_an_answer_that_may_be_older_than_the_disk_says_so(state: code_pb2.IndexState) -> None:
    found = code_pb2.QuerySymbolResponse(definitions=[a_definition()], is_exact=True, state=state)
    _, text = impact(code_pb2.GetImpactResponse(targets=[a_definition()], state=state))
    for last in (text.splitlines()[-1], rendered_symbol(symbol(NAME, found)).splitlines()[-1]):
        assert last == f"not current: {state.note}"


@given(st.text(max_size=30))
def test_a_line_of_a_file_stays_one_line(hostile: str) -> None:
    definition = a_definition(hostile, signature=hostile, file=hostile, doc="x" + hostile)
    content = symbol(
        hostile,
        code_pb2.QuerySymbolResponse(definitions=[definition], is_exact=True, state=CURRENT),
    )
    lines = rendered_symbol(content).splitlines()
    assert len(lines) == 3
    assert [line[:2] for line in lines[1:]] == ["  ", "  "]
    dependent = a_dependent(NAME, depth=2, through=hostile, definition=definition)
    response = code_pb2.GetImpactResponse(
        targets=[a_definition()], dependents=[dependent], state=CURRENT
    )
    _, text = impact(response)
    assert len(text.splitlines()) == 5
    for shown in (*lines, text):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
