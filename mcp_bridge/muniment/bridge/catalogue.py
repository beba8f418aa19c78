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

__all__ = [
    "CONTEXT_FAMILY",
    "NAMES",
    "PROFILES",
    "VAULT_FAMILY",
    "Catalogue",
    "Outcome",
    "Tool",
]

PROFILES = ("context", "vault", "core", "all")
"""`context` and `vault` list the two references; `core` a small set; `all` everything there is."""

NAMES = ("reference", "safe")
"""Spellings of a list. `core` and `all` are always safe, and so are the vault reference's names."""

CONTEXT_FAMILY, VAULT_FAMILY = "context", "vault"
"""How a tool tells of failures: as the context reference has it, or the vault reference."""

_CONTEXT_PROFILES = frozenset({"context", "core", "all"})


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
    profiles: frozenset[str] = _CONTEXT_PROFILES
    """The profiles that list it."""
    family: str = CONTEXT_FAMILY
    """How it tells of failures."""


@dataclass(frozen=True)
class Catalogue:
    """All tools, in the order in which they are listed."""

    tools: tuple[Tool, ...]

    def listed(self, profile: str) -> tuple[Tool, ...]:
        """The tools that the profile lists."""
        return tuple(tool for tool in self.tools if profile in tool.profiles)

    def find(
        self, name: str, profile: str = PROFILES[0], arguments: Mapping[str, Any] | None = None
    ) -> Tool | None:
        """The tool of that name, in whatever spelling.

        Where two tools differ by a dot alone, a name with a dot is the one's. Any other spelling
        is that of the tool whose arguments are given, else of the one that the profile lists.
        """
        wanted = safe_name(name)
        found = [tool for tool in self.tools if safe_name(tool.name) == wanted]
        if not found:
            return None
        found.sort(key=lambda tool: profile not in tool.profiles)
        dotted = [tool for tool in found if "." in name and "." in tool.name]
        fitting = [tool for tool in found if _fits(tool, arguments or {})]
        return [*dotted, *fitting, *found][0]

    def spelled(self, tool: Tool, profile: str, names: str) -> str:
        """The tool's name as that list shows it."""
        return safe_name(tool.name) if names == "safe" or profile != "context" else tool.name


def _fits(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments are those that the tool cannot do without."""
    required = tool.input_schema.get("required", ())
    return bool(required) and all(name in arguments for name in required)
