"""The catalogue's house rules: spellings, profiles, schemas that every host takes, their price."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
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

every_tool = pytest.mark.parametrize("tool", CATALOGUE.tools, ids=lambda tool: tool.name)
every_list = pytest.mark.parametrize(("profile", "names"), LISTS)


def objects_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and every schema in it."""
    yield schema
    for part in schema.get("properties", {}).values():
        yield from objects_in(part)
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
        f" {name} ",
        name.title(),
    }


# --- Names


@every_tool
def test_every_spelling_calls(tool: Tool) -> None:
    for spelling in spellings(tool.name):
        assert CATALOGUE.find(spelling) is tool, spelling


@pytest.mark.parametrize(
    "name", ["", ".", "memory", "memory.recal", "recall", "memoryrecall", "記憶"]
)
def test_what_no_tool_is_called_finds_none(name: str) -> None:
    assert CATALOGUE.find(name) is None


def test_no_two_tools_have_the_same_safe_name() -> None:
    safe = [safe_name(tool.name) for tool in CATALOGUE.tools]
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
    assert [CATALOGUE.find(name) for name in listed] == list(CATALOGUE.listed(profile))


def test_names_are_those_of_the_reference() -> None:
    assert [tool.name for tool in CATALOGUE.tools] == [
        "memory.commit_episode",
        "memory.pin",
        "memory.recall",
        "sakur4.status",
    ]


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
    assert near_names(wrong, [tool.name for tool in CATALOGUE.tools])[0] == meant


def test_nothing_is_near_to_nonsense() -> None:
    assert near_names("zzzzzzzzzz", [tool.name for tool in CATALOGUE.tools]) == []
    assert near_names("", ["memory.recall"]) == []


# --- Profiles


def test_profiles_and_what_they_list() -> None:
    tools = CATALOGUE.tools
    smaller = Catalogue((tools[0], Tool(**{**vars(tools[1]), "core": False})))
    assert [len(smaller.listed(profile)) for profile in PROFILES] == [2, 1, 2]
    assert CATALOGUE.listed("context") == CATALOGUE.listed("all") == tools


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
        for part in objects_in(schema):
            assert not {"$ref", "$defs", "oneOf", "anyOf", "allOf", "not", "if"} & part.keys()
            assert "type" in part
            if part["type"] == "object":
                assert part["additionalProperties"] is False
                assert set(part.get("required", ())) <= part["properties"].keys()


@every_tool
def test_arguments_are_few_flat_and_named_plainly(tool: Tool) -> None:
    properties = tool.input_schema["properties"]
    assert len(properties) <= 6
    for name, schema in properties.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert schema["type"] in ("string", "integer", "boolean")
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
    (listed,) = (one for one in listed_tools(CATALOGUE, "all", "safe") if one.title == tool.title)
    assert listed.annotations is not None
    assert listed.annotations.read_only_hint == tool.read_only
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
