"""Every argument of every tool, given wrongly in every way; and the ways that are forgiven."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from muniment.bridge.arguments import checked_arguments
from muniment.bridge.catalogue import VAULT_FAMILY, Tool
from muniment.bridge.tools.schemas import integer, object_of, string, truth
from muniment.bridge.worker import CATALOGUE
from muniment.kit.errors import InvalidArgumentError

SECRET = "s3cr3t-value-of-the-user"

FITTING: dict[str, Any] = {
    "string": SECRET,
    "integer": 3,
    "boolean": True,
    "object": {SECRET: SECRET},
    "array": [SECRET],
    "any": SECRET,
}

# Values of every kind that JSON has, each with what it is.
VALUES: list[tuple[str, Any]] = [
    ("string", SECRET),
    ("boolean", True),
    ("boolean", False),
    ("fraction", 8.25),
    ("integer", 7),
    ("array", [SECRET]),
    ("object", {SECRET: SECRET}),
]


def kinds_of(schema: Mapping[str, Any]) -> list[str]:
    """The kinds of values that the argument takes, the one that is meant first."""
    kinds = schema.get("type", "any")
    return list(kinds) if isinstance(kinds, list) else [kinds]


def fitting(schema: Mapping[str, Any]) -> Any:
    """A value that the argument takes."""
    return schema["enum"][0] if "enum" in schema else FITTING[kinds_of(schema)[0]]


def checked(tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments as a call of the tool has them."""
    keeps = tool.family == VAULT_FAMILY
    return checked_arguments(tool.input_schema, arguments, keep_empty=keeps)


def complete(tool: Tool) -> dict[str, Any]:
    """All arguments of a tool, with values that it takes."""
    properties = tool.input_schema["properties"]
    return {name: fitting(schema) for name, schema in properties.items()}


def arguments_of_all_tools() -> Iterator[Any]:
    for tool in CATALOGUE.tools:
        for name in tool.input_schema["properties"]:
            yield pytest.param(tool, name, id=f"{tool.name}:{name}")


every_argument = pytest.mark.parametrize(("tool", "name"), list(arguments_of_all_tools()))
every_tool = pytest.mark.parametrize("tool", CATALOGUE.tools, ids=lambda tool: tool.name)


def refused(tool: Tool, arguments: Mapping[str, Any]) -> InvalidArgumentError:
    """The refusal of these arguments, which tells no value."""
    with pytest.raises(InvalidArgumentError) as raised:
        checked(tool, arguments)
    assert SECRET not in str(raised.value)
    return raised.value


def takes(schema: Mapping[str, Any]) -> str:
    """A word that has to be in the refusal of a wrong value."""
    if "enum" in schema:
        return ", ".join(schema["enum"])
    words = {
        "string": "text",
        "integer": "whole number",
        "boolean": "true or false",
        "object": "an object",
        "array": "a list of texts",
        "any": "any JSON value",
    }
    return words[kinds_of(schema)[0]]


@every_tool
def test_all_arguments_and_only_the_required_ones_pass(tool: Tool) -> None:
    arguments = complete(tool)
    assert checked(tool, arguments) == arguments
    required = {name: arguments[name] for name in tool.input_schema.get("required", ())}
    assert checked(tool, required) == required


@every_argument
def test_missing(tool: Tool, name: str) -> None:
    arguments = complete(tool)
    del arguments[name]
    if name not in tool.input_schema.get("required", ()):
        assert checked(tool, arguments) == arguments
        return
    error = refused(tool, arguments)
    assert (error.field, error.reason) == (name, "ARGUMENT_MISSING")
    assert str(error).startswith(f"{name}: is missing; it takes ")
    assert takes(tool.input_schema["properties"][name]) in str(error)


@every_argument
def test_null_and_empty(tool: Tool, name: str) -> None:
    """They stand for absent, where absent is allowed; an empty text only in the context's tools."""
    arguments = complete(tool)
    required = name in tool.input_schema.get("required", ())
    schema = tool.input_schema["properties"][name]
    if not required:
        del arguments[name]
        assert checked(tool, arguments | {name: None}) == arguments
        if tool.family != VAULT_FAMILY:
            assert checked(tool, arguments | {name: ""}) == arguments
        elif "string" in kinds_of(schema):
            assert checked(tool, arguments | {name: ""}) == arguments | {name: ""}
        else:
            assert refused(tool, arguments | {name: ""}).field == name
        return
    if kinds_of(schema) == ["any"]:
        for value in (None, ""):
            assert checked(tool, arguments | {name: value})[name] == value
        return
    error = refused(tool, arguments | {name: None})
    assert (error.field, error.reason) == (name, "ARGUMENT_WRONG")
    if schema.keys() & {"minLength", "enum"} or "string" not in kinds_of(schema):
        assert str(refused(tool, arguments | {name: ""})) == str(error)
    else:
        assert checked(tool, arguments | {name: ""})[name] == ""


@every_argument
def test_wrong_kind(tool: Tool, name: str) -> None:
    schema = tool.input_schema["properties"][name]
    for kind, value in VALUES:
        if "enum" not in schema and {kind, "any"} & set(kinds_of(schema)):
            assert checked(tool, complete(tool) | {name: value})[name] == value
            continue
        error = refused(tool, complete(tool) | {name: value})
        assert (error.field, error.reason) == (name, "ARGUMENT_WRONG")
        assert str(error).startswith(f"{name}: must be ")
        assert takes(schema) in str(error)


@every_tool
def test_unknown(tool: Tool) -> None:
    for value in (SECRET, None, 1):
        error = refused(tool, complete(tool) | {"colour": value})
        assert (error.field, error.reason) == ("colour", "ARGUMENT_UNKNOWN")
        for name in tool.input_schema["properties"] or ("no arguments",):
            assert name in str(error)


@every_tool
def test_unknown_is_told_before_missing(tool: Tool) -> None:
    """A misspelt name is both; the spelling is what helps."""
    assert refused(tool, {"contents": SECRET}).reason == "ARGUMENT_UNKNOWN"


@every_tool
def test_an_unknown_name_is_told_in_short(tool: Tool) -> None:
    error = refused(tool, {"x" * 100_000: 1})
    assert error.field == "x" * 100
    assert len(str(error)) < 500


@every_argument
def test_an_integer_may_come_as_text_or_with_a_fraction_of_zero(tool: Tool, name: str) -> None:
    schema = tool.input_schema["properties"][name]
    if kinds_of(schema) != ["integer"]:
        for value in ("8", 8.0) if "any" in kinds_of(schema) else ():
            assert type(checked(tool, complete(tool) | {name: value})[name]) is type(value)
        return
    for given, meant in [("8", 8), (" 8 ", 8), ("+8", 8), (8.0, 8), (0, 0), ("007", 7)]:
        read = checked(tool, complete(tool) | {name: given})
        assert read[name] == meant
        assert type(read[name]) is int
    for given in ("eight", "8.0", "0x8", "８", "1e3", "9" * 101, "9" * 5000, 8.5, 1e999):
        error = refused(tool, complete(tool) | {name: given})
        assert (error.field, error.reason) == (name, "ARGUMENT_WRONG")


def below(schema: Mapping[str, Any], value: Any) -> bool:
    return "minimum" in schema and int(value) < schema["minimum"]


HUGE: dict[str, list[Any]] = {
    "string": ["x" * 20_000_000],
    "integer": [2**64, -(2**64), 10**400, 1e300, "1" + "0" * 60],
    "boolean": [10**400],
    "object": [{"x" * 20_000_000: 10**400}],
    "array": [["x" * 20_000_000], ["x"] * 100_000],
    "any": ["x" * 20_000_000, 10**400, {"x": [1e300]}],
}


@every_argument
def test_a_huge_value_is_taken_whole_or_refused_in_short(tool: Tool, name: str) -> None:
    schema = tool.input_schema["properties"][name]
    kind = kinds_of(schema)[0]
    for value in HUGE[kind]:
        arguments = complete(tool) | {name: value}
        if "enum" not in schema and kind != "boolean" and not below(schema, value):
            meant = int(value) if kind == "integer" else value
            assert checked(tool, arguments)[name] == meant
        else:
            error = refused(tool, arguments)
            assert error.field == name
            assert len(str(error)) < 500


def test_limits_are_told() -> None:
    commit = next(tool for tool in CATALOGUE.tools if tool.name == "memory.commit_episode")
    below = refused(commit, complete(commit) | {"slot_id": -1})
    assert str(below) == "slot_id: must be a whole number of at least 0"
    empty = refused(commit, complete(commit) | {"content": ""})
    assert str(empty) == "content: must be text that is not empty"


def test_the_refusal_is_the_same_whatever_the_order() -> None:
    schema = object_of({"a": integer(), "b": string(), "c": truth()}, "a")
    wrong = {"b": 1, "c": "x", "a": "y"}
    messages = set()
    for names in (("a", "b", "c"), ("c", "b", "a"), ("b", "a", "c")):
        with pytest.raises(InvalidArgumentError) as raised:
            checked_arguments(schema, {name: wrong[name] for name in names})
        messages.add(str(raised.value))
    assert len(messages) == 1


def test_the_caller_s_arguments_are_left_as_they_are() -> None:
    arguments = {"query": "x", "k": "8", "session_id": None}
    before = json.dumps(arguments)
    recall = next(tool for tool in CATALOGUE.tools if tool.name == "memory.recall")
    assert checked(recall, arguments) == {"query": "x", "k": 8}
    assert json.dumps(arguments) == before
