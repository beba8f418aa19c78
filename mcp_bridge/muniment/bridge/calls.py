"""A call as a tool sees it: who calls, with which key, and which services to ask."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from muniment.bridge.callers import project_of, turn_metadata
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.names import check_name
from muniment.kit.settings import Settings
from muniment.workflows.clients import Clients

if TYPE_CHECKING:
    # It needs the resources, which need calls.
    from muniment.bridge.subscriptions import Subscriptions

__all__ = ["Call", "Greeting"]

_SESSION_VARIABLES = ("MUNIMENT_SESSION", "SAKUR4_SESSION")

_TENANT_VARIABLES = ("MUNIMENT_TENANT", "KINT_TENANT")

# Local models number their calls from 0 in every session; only a longer id is one of a kind.
_LEAST_CALL_ID_LENGTH = 16

# The contract's uint32.
_LARGEST_SLOT = 2**32 - 1


@dataclass(frozen=True)
class Greeting:
    """What a front says of itself when it connects."""

    connection: str
    """Made once by each front process; it outlives a broken socket."""
    profile: str
    names: str
    cwd: str
    environment: Mapping[str, str] = field(default_factory=dict)
    subscribed: tuple[str, ...] = ()
    """URIs of resources that it subscribed to, in the older era."""
    lasts: bool = True
    """Whether more requests come from it; over stateless HTTP none do."""


@dataclass(frozen=True)
class Call:
    """One MCP request on its way through a tool, resource or prompt."""

    greeting: Greeting
    arrival: int
    """Number of the request among those of its connection."""
    client_name: str
    meta: Mapping[str, Any]
    clients: Clients
    settings: Settings
    subscriptions: Subscriptions
    """Of its connection, in the older era."""

    @property
    def deadline_seconds(self) -> float:
        """How long the call may wait for a service."""
        return self.settings.call_deadline_seconds

    def context(self, session_id: str | None = None, slot_id: int = 0) -> tuple[CallContext, str]:
        """The context of the RPCs that this call makes, and where its session is from.

        Raises:
            MunimentError: The project's file, the session's name or the slot cannot be used.
        """
        if slot_id > _LARGEST_SLOT:
            raise InvalidArgumentError(
                f"must be at most {_LARGEST_SLOT}", reason="ARGUMENT_WRONG", field="slot_id"
            )
        project = project_of(self.greeting.environment, self.greeting.cwd, self.meta)
        session, source = self._session(project.project_id, session_id)
        context = CallContext(
            project_id=project.project_id,
            project_root=project.root,
            session_id=check_name("session_id", session),
            slot_id=slot_id,
            caller="bridge",
            traceparent=str(self.meta.get("traceparent", "")),
        )
        return context, source

    def tenant_context(self) -> CallContext:
        """The context of the RPCs on records: a tenant, whatever the project.

        Raises:
            InvalidArgumentError: The tenant is no name.
        """
        environment = self.greeting.environment
        named = (environment[name] for name in _TENANT_VARIABLES if environment.get(name))
        return CallContext(
            tenant_id=check_name("tenant", next(named, self.settings.tenant)),
            caller="bridge",
            traceparent=str(self.meta.get("traceparent", "")),
        )

    def writing(self, context: CallContext, tool: str, arguments: Mapping[str, Any]) -> CallContext:
        """The context for a write: with an idempotency key.

        The key is of the harness's own call id where it has one, else of the request's place in
        its connection. It is also of what is asked: a harness that gives two requests one id
        gets two outcomes, not an error.
        """
        asked = json.dumps(arguments, sort_keys=True)
        parts = (tool, context.session_id, *self._request_id(), asked)
        digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=24).hexdigest()
        return replace(context, idempotency_key=digest)

    def _session(self, project_id: str, argument: str | None) -> tuple[str, str]:
        """The session and its source: argument, environment, harness, derived or none."""
        if argument:
            return argument, "argument"
        environment = self.greeting.environment
        for name in _SESSION_VARIABLES:
            if environment.get(name):
                return environment[name], "environment"
        for value in (
            self.meta.get("sessionId"),
            turn_metadata(self.meta).get("session_id"),
            self.meta.get("threadId"),
            environment.get("CLAUDE_CODE_SESSION_ID"),
        ):
            if isinstance(value, str) and value:
                return value, "harness"
        if not self.greeting.lasts:
            return "", "none"
        derived = f"{project_id}\0{self.client_name}\0{self.greeting.connection}"
        digest = hashlib.blake2b(derived.encode(), digest_size=12).hexdigest()
        return f"ses_{digest}", "derived"

    def _request_id(self) -> tuple[str, ...]:
        for name in ("claudecode/toolUseId", "callId"):
            call_id = self.meta.get(name)
            if isinstance(call_id, str) and len(call_id) >= _LEAST_CALL_ID_LENGTH:
                return (call_id,)
        return (self.greeting.connection, str(self.arrival))
