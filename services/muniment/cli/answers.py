"""What the memory answers, as plain values that print and turn into JSON.

A key is absent where there is nothing to say, but for `session_id` and `tool_name` of an
episode, which are null.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment.cli.health import wait_until_healthy
from muniment.cli.house import START_SECONDS, UP_SECONDS
from muniment.cli.output import progress
from muniment.cli.services import reason_of_failure
from muniment.cli.slots_told import told_server, told_slot
from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError, PreconditionError
from muniment.kit.identity import ProjectIdentity, resolve_project
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.supervise import ensure_running, supervisor_lives
from muniment.v1 import memory_pb2
from muniment.workflows import episodes, pins, status
from muniment.workflows.clients import CODE, MEMORY, SLOTS, Clients, open_clients
from muniment.workflows.code_values import told_index
from muniment.workflows.recall import recall

__all__ = ["Asker", "Listed", "list_projects", "memory_clients", "project_of", "service_clients"]

Answer = dict[str, Any]


_FAIL = "fail their check and are not shown; run `muniment verify-store`"


@dataclass(frozen=True)
class Listed:
    """What was listed, and why it may not be all."""

    told: list[Answer]
    warnings: list[str]


@dataclass(frozen=True)
class Asker:
    """Asks the memory of a home on behalf of a project."""

    home: Home
    project: ProjectIdentity

    @classmethod
    def of(cls, home: Home, folder: Path) -> Asker:
        """On behalf of the project that the folder belongs to.

        Raises:
            PreconditionError: The folder is gone, or the project's file cannot be read.
        """
        return cls(home, project_of(folder))

    async def commit(
        self,
        content: str,
        *,
        role: str,
        tool_name: str | None,
        session_id: str | None,
        corrects: str | None,
    ) -> Answer:
        """Commit an episode; describe it."""
        request = memory_pb2.CommitEpisodeRequest(
            role=memory_pb2.Role.Value(f"ROLE_{role.upper()}"),
            content=content,
            tool_name=tool_name,
            corrects=corrects,
        )
        async with memory_clients(self.home) as clients:
            return _episode(
                await episodes.commit_episode(clients, self._context(session_id), request)
            )

    async def read(self, episode_id: str) -> tuple[Answer, str]:
        """An episode's description and its content, verbatim."""
        async with memory_clients(self.home) as clients:
            episode, content = await episodes.read_episode(clients, self._context(), episode_id)
        return _episode(episode), content

    async def episodes(self, *, session_id: str | None, limit: int) -> Listed:
        """Descriptions in order of commit; all of them for limit 0."""
        told: list[Answer] = []
        warnings: list[str] = []

        def note(page: memory_pb2.ListEpisodesResponse) -> None:
            told.extend({"seq": seq, "tampered": True} for seq in page.tampered_seqs)
            if page.tampered_entries:
                warnings.append(f"{page.tampered_entries} entries of the listing {_FAIL}")
            warnings.extend(map(_doubt, page.doubts))
            warnings.extend(page.notes)

        async with memory_clients(self.home) as clients:
            listed = episodes.list_episodes(
                clients, self._context(), session_id=session_id, limit=limit, tell=note
            )
            told.extend([_episode(one) async for one in listed])
        return Listed(sorted(told, key=lambda one: int(one["seq"])), warnings)

    async def pin(self, content: str, *, kind: str, session_id: str | None) -> Answer:
        """Pin a rule; describe the pin and say whether it is new."""
        request = memory_pb2.PinRequest(
            content=content,
            kind=memory_pb2.PinKind.Value(f"PIN_KIND_{kind.upper()}"),
            session_id=session_id,
        )
        async with memory_clients(self.home) as clients:
            response = await pins.pin(clients, self._context(session_id), request)
        answer = _pin(response.pin) | {"already_pinned": response.already_pinned}
        if response.HasField("previous_kind"):
            answer["previous_kind"] = _kind(response.previous_kind)
        return answer

    async def unpin(self, pin_id: str) -> Answer:
        """Take a pin away; describe it."""
        async with memory_clients(self.home) as clients:
            return _pin(await pins.unpin(clients, self._context(), pin_id))

    async def pins(self, *, session_id: str | None) -> tuple[Listed, int]:
        """The pins in force, and how many more hold in sessions that were not asked for."""
        async with memory_clients(self.home) as clients:
            response = await pins.list_pins(clients, self._context(), session_id=session_id)
        warnings = [_doubt(one) for one in response.doubts]
        if response.tampered_pins:
            warnings.insert(0, f"{response.tampered_pins} pins {_FAIL}")
        listed = Listed([_pin(one) for one in response.pins], warnings)
        return listed, response.other_sessions_pins

    async def recall(
        self, query: str, *, k: int, session_id: str | None, file_path: str | None
    ) -> Answer:
        """What answers the query, best first."""
        request = memory_pb2.RecallRequest(
            query=query, k=k, session_id=session_id, file_path=file_path
        )
        async with memory_clients(self.home) as clients:
            response = await recall(clients, self._context(), request)
        return {
            "query": query,
            "project_id": response.project_id,
            "results": [_hit(one) for one in response.hits],
            "terms": list(response.terms),
            "retrievers": list(response.retrievers),
            "notes": list(response.notes),
        }

    async def status(self) -> tuple[Answer, MunimentError | None]:
        """Counts of the host and of the project, and its server; why a part is missing."""
        are_up = supervisor_lives(self.home)
        async with memory_clients(self.home) as clients:
            if not are_up:
                with suppress(MunimentError):  # Told below, beside what can be told.
                    await wait_until_healthy(
                        self.home, [SLOTS, CODE], deadline_seconds=START_SECONDS
                    )
            told = await status.host_status(clients, self._context())
        answer: Answer = {
            "home": str(self.home.path),
            "project": {"project_id": self.project.project_id, "root": self.project.root},
        }
        if self.project.name is not None:
            answer["project"]["name"] = self.project.name
        missing = []
        if told.memory is None:
            missing.append(MEMORY)
        else:
            answer["memory"] = _counts(told.memory)
        if told.inference.servers is None:
            missing.append(SLOTS)
        else:
            usual = told.inference.usual
            answer["server"] = None if usual is None else told_server(usual)
        if told.inference.slots is not None:
            answer["server"]["slots"] = [told_slot(one) for one in told.inference.slots]
        if told.inference.failure is not None:
            answer["server_failure"] = str(told.inference.failure)
        if told.code is None:
            missing.append(CODE)
            answer["code_failure"] = str(told.code_failure)
        else:
            answer["code"] = told_index(told.code.state)
        away = told.inference.failure if SLOTS in missing else None
        return answer | {"could_not_tell": missing}, told.failure or away or told.code_failure

    def _context(self, session_id: str | None = None) -> CallContext:
        # One process makes one call, so a key of its own is all that a repetition needs.
        return CallContext(
            project_id=self.project.project_id,
            project_root=self.project.root,
            session_id=session_id or "",
            caller="cli",
            idempotency_key=f"cli-{SystemRandomness().token(16).hex()}",
        )


def project_of(folder: Path) -> ProjectIdentity:
    """The project that the folder belongs to.

    Raises:
        PreconditionError: The folder is gone, or the project's file cannot be read.
    """
    try:
        return resolve_project(folder)
    except FileNotFoundError as error:
        raise PreconditionError(
            "the current folder was deleted",
            reason="CURRENT_FOLDER_GONE",
            fix="change to another one, or name the project's with --project",
        ) from error


async def list_projects(home: Home) -> Listed:
    """The projects that the host remembers and those that were purged, oldest first."""
    async with memory_clients(home) as clients:
        response = await status.list_projects(clients)
    warnings = [_doubt(one) for one in response.doubts]
    if response.tampered_projects:
        warnings.insert(0, f"{response.tampered_projects} projects {_FAIL}")
    told = {one.project_id: _project(one) for one in response.projects}
    for purged in response.purged:
        if not purged.HasField("revived_at"):
            empty = {"roots": [], "episodes": 0, "pins": 0, "created_at": None}
            one = told.setdefault(purged.project_id, {"project_id": purged.project_id} | empty)
            one["purged_at"] = purged.purged_at.ToJsonString()
    return Listed(list(told.values()), warnings)


@asynccontextmanager
async def memory_clients(home: Home) -> AsyncIterator[Clients]:
    """The home's services, started if they do not run."""
    async with service_clients(home, MEMORY) as clients:
        yield clients


@asynccontextmanager
async def service_clients(home: Home, *names: str) -> AsyncIterator[Clients]:
    """The home's services, started if they do not run; these are needed.

    Raises:
        MunimentError: One of them cannot start.
    """
    with nullcontext() if supervisor_lives(home) else progress("starting the services"):
        started = ensure_running(home, deadline_seconds=START_SECONDS)
        if started or any(reason_of_failure(home, name) for name in names):
            # A call would wait long for a service that knows why it cannot start.
            await wait_until_healthy(home, names, deadline_seconds=UP_SECONDS)
    async with open_clients(home) as clients:
        yield clients


def _counts(stats: memory_pb2.GetStatsResponse) -> Answer:
    counts: Answer = {
        "episodes": stats.project_episodes,
        "pins": stats.project_pins,
        "tokenizer": stats.tokenizer,
        "host_episodes": stats.episodes,
        "host_pins": stats.pins,
        "host_projects": stats.projects,
    }
    return counts | {"doubts": list(stats.doubts)} if stats.doubts else counts


def _episode(episode: memory_pb2.Episode) -> Answer:
    answer: Answer = {
        "episode_id": episode.episode_id,
        "seq": episode.seq,
        "session_id": episode.session_id or None,
        "role": memory_pb2.Role.Name(episode.role).removeprefix("ROLE_").lower(),
        "tool_name": episode.tool_name if episode.HasField("tool_name") else None,
        "token_count": episode.tokens.count_tokens,
        "tokenizer": episode.tokens.tokenizer,
        "content_bytes": episode.content_bytes,
        "content_sha256": episode.content_sha256.hex(),
        "created_at": episode.created_at.ToJsonString(),
    }
    if episode.HasField("corrects"):
        answer["corrects"] = episode.corrects
    if episode.HasField("superseded_by"):
        answer["superseded_by"] = episode.superseded_by
    return answer


def _pin(pin: memory_pb2.PinnedRule) -> Answer:
    answer: Answer = {
        "pin_id": pin.pin_id,
        "kind": _kind(pin.kind),
        "content": pin.content,
        "token_cost": pin.token_cost.count_tokens,
        "tokenizer": pin.token_cost.tokenizer,
        "created_at": pin.created_at.ToJsonString(),
    }
    if pin.HasField("session_id"):
        answer["session_id"] = pin.session_id
    return answer


def _kind(kind: memory_pb2.PinKind.ValueType) -> str:
    return memory_pb2.PinKind.Name(kind).removeprefix("PIN_KIND_").lower()


def _doubt(doubt: str) -> str:
    return f"{doubt}, so something may be missing; run `muniment verify-store`"


def _hit(hit: memory_pb2.RecallHit) -> Answer:
    if hit.tampered:
        return _tampered_hit(hit)
    answer: Answer = {
        "score": hit.score,
        "retrievers": list(hit.retrievers),
        "reasons": list(hit.reasons),
        "text": hit.text,
        "text_offset_bytes": hit.text_offset_bytes,
        "truncated": hit.truncated,
    }
    if hit.HasField("current_value"):
        answer["current_value"] = hit.current_value
    if hit.HasField("pin"):
        return {"kind": "pin", "id": hit.pin.pin_id, **answer, "pin": _pin(hit.pin)}
    described = _episode(hit.episode)
    return {"kind": "episode", "id": hit.episode.episode_id, **answer, "episode": described}


def _tampered_hit(hit: memory_pb2.RecallHit) -> Answer:
    """What can be said of a hit that cannot be believed: where it is."""
    is_pin = hit.HasField("pin")
    answer: Answer = {
        "kind": "pin" if is_pin else "episode",
        "id": hit.pin.pin_id or hit.episode.episode_id or f"number {hit.episode.seq}",
        "score": hit.score,
        "retrievers": list(hit.retrievers),
        "reasons": list(hit.reasons),
        "tampered": True,
    }
    return answer if is_pin else answer | {"seq": hit.episode.seq}


def _project(project: memory_pb2.Project) -> Answer:
    return {
        "project_id": project.project_id,
        "roots": list(project.roots),
        "episodes": project.episodes,
        "pins": project.pins,
        "created_at": project.created_at.ToJsonString(),
    }
