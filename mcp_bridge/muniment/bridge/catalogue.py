"""The catalogue: every tool, resource and prompt that the bridge knows, and the profiles.

A profile fixes what is listed; a list depends on profile and names alone, never on a connection.
At call time every spelling of every tool is accepted, listed or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muniment.bridge.calls import Call
from muniment.bridge.lanes import Resource
from muniment.bridge.names import safe_name

__all__ = ["NAMES", "PROFILES", "Catalogue", "Outcome", "Tool"]

PROFILES = ("context", "core", "all")
"""`context` lists the context reference; `core` a small set; `all` everything there is."""

NAMES = ("reference", "safe")
"""Spellings of a list. `core` and `all` are always safe."""


@dataclass(frozen=True)
class Outcome:
    """A tool's answer: an object and the same facts as compact text."""

    content: Mapping[str, Any]
    text: str


@dataclass(frozen=True)
class Tool:
    """One tool, with all that is known of it."""

    name: str
    """In the reference's spelling."""
    title: str
    description: str
    """The first sentence says when to reach for it."""
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    read_only: bool
    idempotent: bool
    reads: frozenset[Resource]
    writes: frozenset[Resource]
    run: Callable[[Call, Mapping[str, Any]], Awaitable[Outcome]]
    core: bool = True
    """Whether the profile `core` lists it."""


@dataclass(frozen=True)
class Catalogue:
    """All tools, in the order in which they are listed."""

    tools: tuple[Tool, ...]

    def listed(self, profile: str) -> tuple[Tool, ...]:
        """The tools that the profile lists."""
        return tuple(tool for tool in self.tools if profile != "core" or tool.core)

    def find(self, name: str) -> Tool | None:
        """The tool of that name, in whatever spelling."""
        exact = next((tool for tool in self.tools if tool.name == name), None)
        wanted = safe_name(name)
        return exact or next((one for one in self.tools if safe_name(one.name) == wanted), None)

    def spelled(self, tool: Tool, profile: str, names: str) -> str:
        """The tool's name as that list shows it."""
        return safe_name(tool.name) if names == "safe" or profile != "context" else tool.name
