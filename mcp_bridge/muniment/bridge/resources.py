"""The resources: pins, the outline of the code, and the host's status, as plain text."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from muniment.bridge.calls import Call
from muniment.bridge.lanes import Resource
from muniment.bridge.tools.coded import map_content, rendered_map
from muniment.bridge.tools.operability import status_content
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.names import check_name
from muniment.kit.printable import printable
from muniment.workflows.code import get_repo_map
from muniment.workflows.pins import list_pins
from muniment.workflows.project_folders import in_project

__all__ = ["ANCHORS", "RESOURCES", "ResourceEntry", "find_resource"]

TEXT = "text/plain"

_MAP_TOKENS = 2_000
_MAP_TTL_MS = 10_000


@dataclass(frozen=True)
class ResourceEntry:
    """One kind of resource, addressed by project."""

    kind: str
    title: str
    description: str
    reads: frozenset[Resource]
    read: Callable[[Call, str], Awaitable[str]]
    """From a call and a project id to the text."""
    ttl_ms: int = 0
    """How long a client may keep the text."""

    @property
    def template(self) -> str:
        """The URI with a place for the project (RFC 6570)."""
        return f"sakur4://{self.kind}/{{project}}"

    def uri(self, project_id: str) -> str:
        """The project's URI."""
        return f"sakur4://{self.kind}/{project_id}"


async def _anchors(call: Call, project_id: str) -> str:
    context, _ = call.context()
    response = await list_pins(
        call.clients,
        replace(context, project_id=project_id),
        session_id=context.session_id,
        deadline_seconds=call.deadline_seconds,
    )
    lines = [
        # Indented behind its first line, so that no rule can pass for another one.
        pin.rendered.replace("\n", "\n    ")
        + (" (this session only)" if pin.HasField("session_id") else "")
        for pin in response.pins
    ]
    if response.tampered_pins:
        lines.insert(
            0,
            f"({response.tampered_pins} pins were changed from outside the memory and are not"
            " shown: tell the user to run `muniment verify-store`)",
        )
    elif response.doubts:
        lines.insert(
            0,
            f"(pins may be missing: {'; '.join(response.doubts)}; tell the user to run"
            " `muniment verify-store`)",
        )
    elif not lines:
        lines.append(f"the Anchor Set of {project_id} is empty")
    if response.other_sessions_pins:
        lines.append(f"({response.other_sessions_pins} pins of other sessions are not shown)")
    return "\n".join(lines)


async def _repo_map(call: Call, project_id: str) -> str:
    context, _ = call.context()
    response = await get_repo_map(
        call.clients,
        await in_project(call.clients, context, project_id),
        token_budget=_MAP_TOKENS,
        deadline_seconds=call.deadline_seconds,
    )
    content = map_content(_MAP_TOKENS, response)
    return f"{rendered_map(content)}\n({content['tokens_used']} tokens)"


async def _status(call: Call, project_id: str) -> str:
    context, _ = call.context()
    if project_id != context.project_id:
        raise InvalidArgumentError(
            f"the status is that of your project, {context.project_id}",
            reason="PROJECT_OTHER",
            field="uri",
            fix="read it under that id",
        )
    content = await status_content(call)
    return "\n".join(f"{name}: {_on_one_line(value)}" for name, value in content.items())


def _on_one_line(value: object) -> str:
    text = (", ".join(value) or "nothing") if isinstance(value, list) else str(value)
    return printable(text)


ANCHORS = ResourceEntry(
    kind="anchors",
    title="Anchor Set",
    description="Every rule pinned in the project, verbatim. Worth reading each turn.",
    reads=frozenset({Resource.PINS}),
    read=_anchors,
)

RESOURCES = (
    ANCHORS,
    ResourceEntry(
        kind="repo-map",
        title="Repository map",
        description="Outline of the repository in 2,000 tokens; it says when the index ran.",
        reads=frozenset({Resource.CODE}),
        read=_repo_map,
        ttl_ms=_MAP_TTL_MS,
    ),
    ResourceEntry(
        kind="status",
        title="Status",
        description="Backend, tokenizer and counts of the memory host.",
        reads=frozenset({Resource.EPISODES, Resource.PINS}),
        read=_status,
    ),
)

_URI = re.compile(r"sakur4://(?P<kind>[a-z-]+)/(?P<project>[^/?#]+)")


def find_resource(uri: str) -> tuple[ResourceEntry, str] | None:
    """The entry and the project that the URI names, or None."""
    match = _URI.fullmatch(uri)
    entry = next((one for one in RESOURCES if match and one.kind == match["kind"]), None)
    return (entry, check_name("uri", match["project"])) if match and entry else None
