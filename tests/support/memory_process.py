"""A home whose memory service runs in a process of its own, and a stranger at its files."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from muniment.kit import faults
from muniment.kit.channels import READ_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError, TamperedError
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.settings import Settings
from muniment.kit.store.protection import KEY_BYTES
from muniment.memory.__main__ import memory_service
from muniment.v1 import maintenance_pb2, memory_pb2
from muniment.workflows import episodes, maintenance, pins, recall, status
from muniment.workflows.clients import Clients, open_clients
from tests.support.homes import a_home, clean_environment
from tests.support.tamper import Operation, Rows

__all__ = ["Caller", "MemoryHome", "Seen", "a_memory_home"]

_START_SECONDS = 60.0

_keys = itertools.count(1)


@dataclass(frozen=True)
class MemoryHome:
    """A home with its key beside it."""

    home: Home

    @property
    def keys(self) -> Path:
        """Folder of the home's key."""
        return self.home.path.with_name("keys")

    @property
    def store(self) -> Path:
        """Folder of the store."""
        return self.home.data("memory") / "store"

    @property
    def index(self) -> Path:
        """File of the index."""
        return self.home.data("memory") / "lexical.sqlite3"

    def seal(self) -> None:
        """Let the home, which is new, have a key that its store is sealed with."""
        randomness = SystemRandomness()
        key = HomeKey(randomness.token(KEY_BYTES), sealed=True)
        KeyShelf(self.home, "file", str(self.keys)).keep(key, randomness)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Caller]:
        """The service, for as long as the block lasts."""
        process = self.start()
        try:
            async with open_clients(self.home) as clients:
                caller = Caller(clients)
                await pins.list_pins(clients, caller.context, deadline_seconds=_START_SECONDS)
                yield caller
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.home.path.with_name("memory.log")

    def start(self, armoury: Path | None = None) -> subprocess.Popen[bytes]:
        """The service's process; `armoury` is the folder where its fault points are armed."""
        environment = clean_environment() | {
            "MUNIMENT_HOME": str(self.home.path),
            "MUNIMENT_KEY_FOLDER": str(self.keys),
        }
        if armoury is not None:
            environment[faults.VARIABLE] = str(armoury)
        with self._log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "muniment.memory"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @asynccontextmanager
    async def open_here(self) -> AsyncIterator[Caller]:
        """The service in this process, which starts in no time. One at a time."""
        settings = Settings(key_folder=str(self.keys))
        serving = asyncio.create_task(memory_service(self.home, settings))
        try:
            async with open_clients(self.home) as clients:
                caller = Caller(clients)
                await caller.rules()
                yield caller
        finally:
            if not serving.done():
                # As the supervisor stops it: the service has taken the signal over.
                signal.raise_signal(signal.SIGTERM)
            await serving
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)

    def rows(self) -> Rows:
        """All rows as a process without the key reads them."""
        found: Rows = json.loads(self._stranger("dump", b""))
        return found

    def tamper(self, operations: Sequence[Operation]) -> None:
        """Change rows from a process without the key."""
        self._stranger("apply", json.dumps(operations).encode())

    def _stranger(self, verb: str, given: bytes) -> bytes:
        script = Path(__file__).with_name("tamper.py")
        return subprocess.run(
            [sys.executable, str(script), verb, str(self.store)],
            input=given,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"]},
            check=True,
        ).stdout

    @contextmanager
    def copied(self) -> Iterator[MemoryHome]:
        """The same home in another place, with the same key. Nobody may use it meanwhile."""
        with a_home(with_runtime=False) as home:
            shutil.copytree(self.home.path, home.path, ignore=_no_sockets)
            shutil.copytree(self.keys, home.path.with_name("keys"))
            home.runtime.mkdir(mode=0o700, exist_ok=True)
            yield MemoryHome(home)


def _no_sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_socket()]


@contextmanager
def a_memory_home() -> Iterator[MemoryHome]:
    """A new home, which is gone after the block."""
    with a_home() as home:
        yield MemoryHome(home)


@dataclass
class Seen:
    """All that reading told, and which ways of reading it marked as not to be trusted."""

    text: str = ""
    marked: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Caller:
    """Calls the service for one session in one project."""

    clients: Clients
    context: CallContext = field(
        default_factory=lambda: CallContext(
            project_id="proj_0000000000000001", session_id="s-1", caller="test"
        )
    )

    def in_project(self, project_id: str) -> Caller:
        """The same in another project."""
        return replace(self, context=replace(self.context, project_id=project_id))

    def _writing(self, key: str | None = None) -> CallContext:
        return replace(self.context, idempotency_key=key or f"key-{os.getpid()}-{next(_keys)}")

    async def commit(
        self, content: str, corrects: str | None = None, *, key: str | None = None
    ) -> str:
        """Append a turn; its id."""
        request = memory_pb2.CommitEpisodeRequest(
            role=memory_pb2.ROLE_USER, content=content, corrects=corrects
        )
        episode = await episodes.commit_episode(self.clients, self._writing(key), request)
        return episode.episode_id

    async def pin(
        self,
        content: str,
        kind: memory_pb2.PinKind.ValueType = memory_pb2.PIN_KIND_TASK_CONTRACT,
    ) -> str:
        """Pin a rule; the pin's id."""
        request = memory_pb2.PinRequest(content=content, kind=kind)
        return (await pins.pin(self.clients, self._writing(), request)).pin.pin_id

    async def unpin(self, pin_id: str) -> None:
        """Take a pin away."""
        await pins.unpin(self.clients, self._writing(), pin_id)

    async def pins(self) -> memory_pb2.ListPinsResponse:
        """The pins in force."""
        return await pins.list_pins(self.clients, self.context)

    async def rules(self) -> list[str]:
        """The pins in force, as prompts show them."""
        return [pin.rendered for pin in (await self.pins()).pins]

    async def purge(self) -> None:
        """Purge the project."""
        request = memory_pb2.PurgeProjectRequest(project_id=self.context.project_id)
        async for _ in self.clients.to_memory.server_stream(
            self.clients.memory.PurgeProject, request, self._writing(), 60
        ):
            pass

    async def stats(self) -> memory_pb2.GetStatsResponse:
        """The counts."""
        request = memory_pb2.GetStatsRequest()
        return await self.clients.to_memory.unary(
            self.clients.memory.GetStats, request, self.context, READ_SECONDS
        )

    async def tokens(self) -> list[tuple[int, str, bool]]:
        """Of each episode and then each pin: its count, who counted, and whether it is exact."""
        listed = [one.tokens async for one in episodes.list_episodes(self.clients, self.context)]
        listed += [pin.token_cost for pin in (await self.pins()).pins]
        return [(one.count_tokens, one.tokenizer, one.exact) for one in listed]

    async def verify(self) -> list[maintenance_pb2.Finding]:
        """What a verification finds."""
        findings: list[maintenance_pb2.Finding] = []
        result = await maintenance.verify_store(
            self.clients, self.context, lambda step, done, total: None, findings.append
        )
        assert result.findings == len(findings)
        return findings

    async def reindex(self) -> int:
        """Make the index anew; how many documents it has."""
        result = await maintenance.rebuild_index(
            self.clients, self.context, lambda step, done, total: None
        )
        return result.documents

    async def see(self, queries: Sequence[str], episode_ids: Sequence[str]) -> Seen:
        """Read in every way there is."""
        seen = Seen()
        for query in (*queries, " ".join(episode_ids)):
            recalled = await recall.recall(
                self.clients, self.context, memory_pb2.RecallRequest(query=query, k=100)
            )
            seen.text += str(recalled)
            assert not any(hit.text for hit in recalled.hits if hit.tampered)
            if any(hit.tampered for hit in recalled.hits) or "verify-store" in str(recalled.notes):
                seen.marked.add("recall")
        for episode_id in episode_ids:
            await self._show(seen, episode_id)
        await self._list(seen)
        return seen

    async def _show(self, seen: Seen, episode_id: str) -> None:
        try:
            seen.text += str(await episodes.read_episode(self.clients, self.context, episode_id))
        except TamperedError:
            seen.marked.add("show")
        except MunimentError as error:
            seen.text += str(error)

    async def _list(self, seen: Seen) -> None:
        def note(page: memory_pb2.ListEpisodesResponse) -> None:
            if page.tampered_seqs or page.tampered_entries or page.doubts:
                seen.marked.add("episodes")

        listed = episodes.list_episodes(self.clients, self.context, tell=note)
        seen.text += str([one async for one in listed])
        anchors = await self.pins()
        if anchors.tampered_pins or anchors.doubts:
            seen.marked.add("pins")
        counts = await self.stats()
        if counts.doubts:
            seen.marked.add("stats")
        projects = await status.list_projects(self.clients)
        if projects.tampered_projects or projects.doubts:
            seen.marked.add("projects")
        seen.text += f"{anchors}{counts}{projects}"
