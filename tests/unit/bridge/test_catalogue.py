"""The catalogue's house rules: spellings, profiles, schemas that every host takes, their price."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from muniment.bridge.catalogue import NAMES, PROFILES, Catalogue, Tool
from muniment.bridge.names import near_names, safe_name
from muniment.bridge.protocol import listed_prompts, listed_templates, listed_tools
from muniment.bridge.worker import CATALOGUE

# Of what a model gets to see of a tool: name, description, input schema. Such JSON has 4.5
# characters a token, and the budget is 110 tokens on average and 180 at most; where Node is,
# tests/integration/test_tokens.py counts them.
AVERAGE_CHARACTERS = 500
MOST_CHARACTERS = 720

DESCRIPTION_WORDS = 25
OPENINGS = ("After", "Before", "Once", "When", "While")

LISTS = [(profile, names) for profile in PROFILES for names in NAMES]

CONTEXT_TOOLS = (
    "memory.commit_episode",
    "memory.pin",
    "memory.recall",
    "code.get_repo_map",
    "code.query_symbol",
    "code.impact_of_change",
    "session.snapshot",
    "session.restore",
    "sakur4.status",
)
CORE_TOOLS = tuple(
    name
    for name in CONTEXT_TOOLS
    if name not in ("code.query_symbol", "session.snapshot", "session.restore")
)
VAULT_TOOLS = (
    "memory_remember",
    "memory_recall",
    "memory_search",
    "memory_list",
    "memory_forget",
    "memory_set_state",
    "memory_get_state",
    "memory_record_event",
)

ANY_VALUE = "body"
"""What takes, and gives back, any JSON value: the one place without a type."""

MERGED = next(tool for tool in CATALOGUE.tools if tool.profiles == {"all"})
"""Listed where the names of two tools would differ by a dot alone."""


def _title(tool: Tool) -> str:
    return f"{tool.name}:{'+'.join(sorted(tool.profiles))}"


every_tool = pytest.mark.parametrize("tool", CATALOGUE.tools, ids=_title)
every_list = pytest.mark.parametrize(("profile", "names"), LISTS)


def objects_in(schema: Any, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema and every schema in it, each with the name of its property."""
    yield name, schema
    for inner, part in schema.get("properties", {}).items():
        yield from objects_in(part, inner)
    if "items" in schema:
        yield from objects_in(schema["items"])


def spellings(name: str) -> set[str]:
    """Ways in which models and hosts write a name."""
    safe = safe_name(name)
    return {
        name,
        safe,
        name.upper(),
        safe.upper(),
        name.replace(".", "-"),
        name.replace(".", "/"),
        name.replace(".", "__"),
        name.replace("_", "-"),
        f" {name} ",
        name.title(),
    }


def tool_named(name: str, profile: str) -> Tool:
    """The tool of exactly this name that the profile lists."""
    (found,) = (tool for tool in CATALOGUE.listed(profile) if tool.name == name)
    return found


# --- Names


@every_tool
def test_every_spelling_calls(tool: Tool) -> None:
    for profile in tool.profiles:
        for spelling in spellings(tool.name):
            assert CATALOGUE.find(spelling, profile) is tool, (spelling, profile)


@pytest.mark.parametrize(
    "tool",
    # Three tools have that name; they have tests of their own.
    [tool for tool in CATALOGUE.tools if safe_name(tool.name) != "memory_recall"],
    ids=_title,
)
def test_every_spelling_calls_from_everywhere(tool: Tool) -> None:
    for profile in PROFILES:
        for spelling in spellings(tool.name):
            assert CATALOGUE.find(spelling, profile, {"zz": 1}) is tool, (spelling, profile)


TURNS = tool_named("memory.recall", "context")
RECORD = tool_named("memory_recall", "vault")
RECALL_OF = {"context": TURNS, "core": TURNS, "vault": RECORD, "all": MERGED}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "name", ["memory.recall", "Memory.Recall", "MEMORY.RECALL", " memory.recall "]
)
def test_memory_recall_with_a_dot_is_of_turns(profile: str, name: str) -> None:
    for arguments in ({}, {"query": "x"}, {"category": "a", "name": "b"}, {"zz": 1}):
        assert CATALOGUE.find(name, profile, arguments) is TURNS


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "name", ["memory_recall", "MEMORY_RECALL", "memory-recall", "memory/recall"]
)
def test_memory_recall_without_a_dot_goes_by_arguments_then_by_profile(
    profile: str, name: str
) -> None:
    def found(**arguments: object) -> Tool | None:
        return CATALOGUE.find(name, profile, arguments)

    assert found(query="x") is TURNS
    assert found(query="x", k=3) is TURNS
    assert found(query="x", category="a") is TURNS
    assert found(category="a", name="b") is RECORD
    assert found(category="a", name="b", zz=1) is RECORD
    listed = RECALL_OF[profile]
    assert found() is listed
    assert found(category="a") is listed
    assert found(name="b") is listed
    assert found(zz=1) is listed
    both = found(query="x", category="a", name="b")
    assert both is (TURNS if profile == "all" else listed)


def test_the_merged_tool_takes_and_gives_what_the_two_do() -> None:
    for one in (TURNS, RECORD):
        for name in ("input_schema", "output_schema"):
            merged = getattr(MERGED, name)["properties"]
            for field, schema in getattr(one, name)["properties"].items():
                assert merged[field] == schema
        assert one.reads <= MERGED.reads
    assert "required" not in MERGED.input_schema


@pytest.mark.parametrize(
    "name", ["", ".", "memory", "memory.recal", "recall", "memoryrecall", "記憶"]
)
def test_what_no_tool_is_called_finds_none(name: str) -> None:
    assert CATALOGUE.find(name) is None


@pytest.mark.parametrize("profile", PROFILES)
def test_no_two_tools_have_the_same_safe_name(profile: str) -> None:
    safe = [safe_name(tool.name) for tool in CATALOGUE.listed(profile)]
    assert len(set(safe)) == len(safe)
    assert all(re.fullmatch(r"[a-z0-9_]{1,64}", name) for name in safe)


@every_list
def test_a_tool_is_listed_once_and_by_one_spelling(profile: str, names: str) -> None:
    listed = [tool.name for tool in listed_tools(CATALOGUE, profile, names)]
    assert len({safe_name(name) for name in listed}) == len(listed)
    if profile == "context" and names == "reference":
        assert listed == [tool.name for tool in CATALOGUE.listed(profile)]
    else:
        assert all(re.fullmatch(r"[a-z0-9_]{1,64}", name) for name in listed)
    assert [CATALOGUE.find(name, profile) for name in listed] == list(CATALOGUE.listed(profile))


def test_names_are_those_of_the_references() -> None:
    assert tuple(tool.name for tool in CATALOGUE.listed("context")) == CONTEXT_TOOLS
    assert tuple(tool.name for tool in CATALOGUE.listed("core")) == CORE_TOOLS
    assert tuple(tool.name for tool in CATALOGUE.listed("vault")) == VAULT_TOOLS


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("memory.recal", "memory.recall"),
        ("recall", "memory.recall"),
        ("memory_commit", "memory.commit_episode"),
        ("Memory.Pins", "memory.pin"),
        ("status", "sakur4.status"),
    ],
)
def test_near_names(wrong: str, meant: str) -> None:
    assert near_names(wrong, [tool.name for tool in CATALOGUE.listed("context")])[0] == meant


def test_of_two_names_that_differ_by_a_dot_the_earlier_is_told() -> None:
    assert near_names("recal", ["memory_recall", "memory.recall"]) == ["memory_recall"]
    assert near_names("recal", ["memory.recall", "memory_recall"]) == ["memory.recall"]


def test_nothing_is_near_to_nonsense() -> None:
    assert near_names("zzzzzzzzzz", [tool.name for tool in CATALOGUE.tools]) == []
    assert near_names("", ["memory.recall"]) == []


# --- Profiles


def test_profiles_and_what_they_list() -> None:
    first, second = CATALOGUE.tools[:2]
    smaller = Catalogue((first, replace(second, profiles=frozenset({"context", "all"}))))
    assert [len(smaller.listed(profile)) for profile in PROFILES] == [2, 0, 1, 2]


def test_the_profile_all_has_every_name_once() -> None:
    listed = [safe_name(tool.name) for tool in CATALOGUE.listed("all")]
    assert sorted(listed) == sorted({safe_name(name) for name in CONTEXT_TOOLS + VAULT_TOOLS})
    assert MERGED in CATALOGUE.listed("all")
    assert all(tool not in CATALOGUE.listed("all") for tool in (TURNS, RECORD))


@every_tool
def test_every_tool_is_listed_somewhere(tool: Tool) -> None:
    assert tool.profiles
    assert tool.profiles <= set(PROFILES)


@every_list
def test_a_list_is_the_same_whenever_it_is_made(profile: str, names: str) -> None:
    def text() -> str:
        models = (*listed_tools(CATALOGUE, profile, names), *listed_prompts(), *listed_templates())
        return "\n".join(model.model_dump_json() for model in models)

    assert text() == text()


# --- Schemas


@every_tool
def test_schemas_are_plain_objects(tool: Tool) -> None:
    for schema in (tool.input_schema, tool.output_schema):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        for name, part in objects_in(schema):
            assert not {"$ref", "$defs", "oneOf", "anyOf", "allOf", "not", "if"} & part.keys()
            if name == ANY_VALUE and tool.profiles & {"vault", "all"} and tool.name in VAULT_TOOLS:
                continue
            assert "type" in part
            if isinstance(part["type"], list):
                # What the vault reference says is null where there is none.
                assert part["type"][1:] == ["null"]
                assert schema is tool.output_schema
            elif part["type"] == "object":
                assert part["additionalProperties"] is False
                assert set(part.get("required", ())) <= part["properties"].keys()


@every_tool
def test_arguments_are_few_flat_and_named_plainly(tool: Tool) -> None:
    properties = tool.input_schema["properties"]
    assert len(properties) <= (8 if tool is MERGED else 6)
    for name, schema in properties.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        if name == ANY_VALUE:
            assert schema.get("type") in (None, ["object", "string"])
            assert schema["description"]
            continue
        assert schema["type"] in ("string", "integer", "boolean", "array")
        assert schema.get("items", {"type": "string"}) == {"type": "string"}
        assert len(schema.get("enum", ())) <= 8


@every_tool
def test_a_default_is_what_the_argument_takes(tool: Tool) -> None:
    for schema in tool.input_schema["properties"].values():
        if "default" in schema:
            Draft202012Validator(schema).validate(schema["default"])


# --- Words


@every_tool
def test_a_description_is_short_and_says_first_when_to_call(tool: Tool) -> None:
    assert len(tool.description.split()) <= DESCRIPTION_WORDS
    assert tool.description.split()[0] in OPENINGS
    assert tool.description.endswith(".")
    assert tool.description.isascii()
    assert 0 < len(tool.title) <= 40


@every_tool
def test_annotations_agree_with_what_is_written(tool: Tool) -> None:
    assert tool.read_only == (not tool.writes)
    for profile in tool.profiles:
        lists = listed_tools(CATALOGUE, profile, "safe")
        (listed,) = (one for one in lists if one.title == tool.title)
        assert listed.annotations is not None
        assert listed.annotations.read_only_hint == tool.read_only
        assert listed.annotations.idempotent_hint == tool.idempotent
        assert listed.annotations.destructive_hint is False
        assert listed.annotations.open_world_hint is False


@every_list
def test_what_a_list_costs_in_a_prompt(profile: str, names: str) -> None:
    lengths = [
        len(json.dumps([tool.name, tool.description, tool.input_schema], separators=(",", ":")))
        for tool in listed_tools(CATALOGUE, profile, names)
    ]
    assert max(lengths) <= MOST_CHARACTERS
    assert sum(lengths) / len(lengths) <= AVERAGE_CHARACTERS
