"""What the slots service answers to the commands on slots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muniment.cli.answers import project_of, service_clients
from muniment.cli.slots_told import told_server, told_slot, told_snapshot
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, MunimentError
from muniment.kit.paths import Home
from muniment.kit.progress import Report
from muniment.kit.randomness import SystemRandomness
from muniment.v1 import slots_pb2
from muniment.workflows import slots
from muniment.workflows.clients import SLOTS, Clients

__all__ = ["Keeper", "Slots"]

Told = dict[str, Any]


@dataclass(frozen=True)
class Keeper:
    """Whose a snapshot is: a slot of a session in the project of a folder."""

    folder: Path
    session_id: str | None = None
    slot_id: int = 0

    def context(self) -> CallContext:
        """The context of a call on its behalf."""
        project = project_of(self.folder)
        return CallContext(
            project_id=project.project_id,
            project_root=project.root,
            session_id=self.session_id or "",
            slot_id=self.slot_id,
            caller="cli",
            idempotency_key=_key(),
        )


@dataclass(frozen=True)
class Slots:
    """Asks the slots service of a home."""

    home: Home

    async def show(self, server: str | None) -> list[Told]:
        """Every server as it is found now, or one; with its slots, where it tells them."""
        async with self._clients() as clients:
            servers = await slots.list_servers(clients, _NOBODY, server=server)
            return [told_server(one) | await _slots_of(clients, one) for one in servers]

    async def probe(self, server: str | None, report: Report) -> Told:
        """What a probe found out."""
        async with self._clients() as clients:
            return told_server(await slots.probe_server(clients, _NOBODY, report, server=server))

    async def snapshot(self, keeper: Keeper, server: str | None) -> Told:
        """Save a slot."""
        async with self._clients() as clients:
            response = await slots.save_snapshot(clients, keeper.context(), server=server)
        return told_snapshot(response.snapshot) | {
            "elapsed_ms": response.elapsed_ms,
            "server_ms": response.server_ms,
            "removed_snapshot_ids": list(response.removed_snapshot_ids),
            "notes": list(response.notes),
        }

    async def restore(self, path: str, keeper: Keeper, server: str | None) -> Told:
        """Load a snapshot into a slot."""
        async with self._clients() as clients:
            response = await slots.restore_snapshot(clients, keeper.context(), path, server=server)
        return {
            "restored": True,
            "restored_tokens": response.restored_tokens,
            "slot_id": keeper.slot_id,
            "elapsed_ms": response.elapsed_ms,
            "server_ms": response.server_ms,
            "notes": list(response.notes),
            "snapshot": told_snapshot(response.snapshot),
        }

    async def snapshots(
        self, *, session_id: str | None, folder: Path | None
    ) -> tuple[list[Told], list[str]]:
        """Those that are indexed, of the session and the project if given; and why not all."""
        context = CallContext(session_id=session_id or "", caller="cli")
        if folder is not None:
            context = Keeper(folder, session_id).context()
        async with self._clients() as clients:
            response = await slots.list_snapshots(
                clients, context, of_session=session_id is not None, of_project=folder is not None
            )
        verify = "run `muniment verify-store`"
        warnings = [f"{doubt}, so something may be missing; {verify}" for doubt in response.doubts]
        if response.tampered_snapshots:
            failing = f"{response.tampered_snapshots} snapshots fail their check and are not shown"
            warnings.insert(0, f"{failing}; {verify}")
        return [told_snapshot(one) for one in response.snapshots], warnings

    async def delete(self, snapshot_id: str) -> Told:
        """Forget a snapshot."""
        async with self._clients() as clients:
            context = replace(_NOBODY, idempotency_key=_key())
            response = await slots.delete_snapshot(clients, context, snapshot_id)
        return {
            "snapshot_id": snapshot_id,
            "file_removed": response.file_removed,
            "note": response.note if response.HasField("note") else None,
        }

    async def count(
        self, texts: Sequence[str], *, server: str | None, exact: bool
    ) -> slots.TokenCounts:
        """The tokens of each text."""
        async with self._clients() as clients:
            return await slots.count_tokens(clients, _NOBODY, texts, server=server, exact=exact)

    async def count_conversation(self, text: str, *, server: str | None) -> Told:
        """The tokens of a conversation in JSON, as the server's chat template writes it.

        It is an array of messages, or an object that has one as `messages`, and maybe `tools`.

        Raises:
            InvalidArgumentError: It is neither.
        """
        messages, tools = _conversation(text)
        async with self._clients() as clients:
            response = await slots.apply_template(
                clients, _NOBODY, messages, tools_json=tools, server=server
            )
        return {
            "tokens": response.count,
            "tokenizer": response.tokenizer,
            "exact": True,
            "prompt": response.prompt,
        }

    def _clients(self) -> AbstractAsyncContextManager[Clients]:
        return service_clients(self.home, SLOTS)


_NOBODY = CallContext(caller="cli")
"""The context of who only looks."""


def _key() -> str:
    # One process makes one call, so a key of its own is all that a repetition needs.
    return f"cli-{SystemRandomness().token(16).hex()}"


async def _slots_of(clients: Clients, server: slots_pb2.Server) -> Told:
    """The server's slots, or why it does not tell them."""
    if server.condition != slots_pb2.SERVER_CONDITION_READY:
        return {}
    try:
        listed = await slots.list_slots(clients, _NOBODY, server=server.name)
    except MunimentError as error:
        return {"slots_failure": str(error)}
    return {"slots": [told_slot(one) for one in listed]}


def _conversation(text: str) -> tuple[str, str | None]:
    """The messages and the tools, each in JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(
            "is no JSON",
            reason="MESSAGES_INVALID",
            field="messages",
            fix='write it as [{"role": "user", "content": "..."}]',
        ) from error
    if not isinstance(value, dict):
        return text, None
    tools = value.get("tools")
    return json.dumps(value.get("messages")), None if tools is None else json.dumps(tools)
