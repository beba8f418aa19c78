"""What `muniment doctor` finds out about inference servers."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.cli.findings import Finding
from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError
from muniment.v1 import slots_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.server_words import cache_coherence, condition_in_words, word_of
from muniment.workflows.slots import list_servers

__all__ = ["check_servers"]

_WELL = frozenset({slots_pb2.SERVER_CONDITION_READY, slots_pb2.SERVER_CONDITION_SLEEPING})


async def check_servers(clients: Clients, *, are_configured: bool) -> list[Finding]:
    """How each inference server fares.

    One that answers at llama-server's own address, and that nobody named, may be anything.
    """
    try:
        servers = await list_servers(clients, CallContext(caller="cli"))
    except MunimentError as error:
        return [Finding("servers", "problem", error.message, error.fix)]
    if not servers:
        told = "no inference server is used; token counts are estimates"
        return [Finding("servers", "ok", told)]
    return [found for one in servers for found in _check(one, are_configured=are_configured)]


def _check(server: slots_pb2.Server, *, are_configured: bool) -> Iterator[Finding]:
    check = f"server {server.name}"
    condition = f"{server.url} {condition_in_words(server)}"
    if server.condition in _WELL:
        told = f"{condition}; serves {server.model.name}" if server.model.name else condition
        yield Finding(check, "ok", f"{told}; {cache_coherence(server)}")
        yield from _lacks(check, server)
        return
    cause = server.detail or condition
    fix = server.fix or "see the log of llama-server"
    if server.condition == slots_pb2.SERVER_CONDITION_LOADING or not are_configured:
        yield Finding(check, "warning", cause, fix)
    else:
        yield Finding(check, "problem", cause, fix)


def _lacks(check: str, server: slots_pb2.Server) -> Iterator[Finding]:
    """What we would use and the server does not do, one finding for each way to mend it."""
    ways: dict[str, list[str]] = {}
    for one in server.capabilities:
        is_used = one.kind != slots_pb2.CAPABILITY_KIND_METRICS
        if is_used and one.standing == slots_pb2.STANDING_NO and one.HasField("fix"):
            name = word_of(slots_pb2.CapabilityKind, one.kind)
            ways.setdefault(one.fix, []).append(name.replace("_", " "))
    for fix, names in ways.items():
        yield Finding(check, "warning", f"it does without {', '.join(names)}", fix)
