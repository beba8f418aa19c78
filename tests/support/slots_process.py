"""A home whose slots service runs in a process of its own, and somebody who calls it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import grpc

from muniment.kit.channels import Caller, open_channel
from muniment.kit.context import CallContext
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store.protection import KEY_BYTES
from muniment.v1 import slots_pb2, slots_pb2_grpc
from tests.support.homes import a_home, clean_environment

if TYPE_CHECKING:
    from tests.support.llama.process import LlamaServer

__all__ = ["SlotsCaller", "SlotsHome", "a_slots_home", "file_of"]

_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_CALL_SECONDS = 60.0
_SHOWN_CHARACTERS = 4000

# The asynchronous stub is a type only.
Stub: TypeAlias = "slots_pb2_grpc.SlotsServiceAsyncStub"
Request = TypeVar("Request")
Response = TypeVar("Response")

_keys = itertools.count(1)


@dataclass(frozen=True)
class SlotsCaller:
    """Calls the service for one session in one project. Every write has a key of its own."""

    stub: Stub
    context: CallContext = field(
        default_factory=lambda: CallContext(
            project_id="proj_0000000000000001", session_id="s-1", caller="test"
        )
    )
    seconds: float = _CALL_SECONDS
    caller: Caller = field(default_factory=lambda: Caller("slots"))

    def on(self, slot: int) -> SlotsCaller:
        """The same, for another slot."""
        return replace(self, context=replace(self.context, slot_id=slot))

    def of_session(self, session_id: str) -> SlotsCaller:
        """The same in another session."""
        return replace(self, context=replace(self.context, session_id=session_id))

    async def server(self) -> slots_pb2.Server:
        """The usual server, as it is found now."""
        return (await self.servers())[0]

    async def servers(self) -> Sequence[slots_pb2.Server]:
        """Every server, as it is found now."""
        request = slots_pb2.ListServersRequest()
        return (await self._call(self.stub.ListServers, request)).servers

    async def slots(self) -> Sequence[slots_pb2.Slot]:
        """The usual server's slots."""
        return (await self._call(self.stub.ListSlots, slots_pb2.ListSlotsRequest())).slots

    async def probe(self) -> slots_pb2.Server:
        """What probing the usual server found."""
        stream = self.caller.server_stream(
            self.stub.ProbeServer, slots_pb2.ProbeServerRequest(), self._writing(), self.seconds
        )
        *_, last = [part async for part in stream]
        assert last.HasField("result")
        return last.result

    async def count(
        self, texts: Sequence[str], *, exact: bool = True
    ) -> slots_pb2.CountTokensResponse:
        """Counts of the texts."""
        request = slots_pb2.CountTokensRequest(texts=texts, exact=exact)
        return await self._call(self.stub.CountTokens, request)

    async def template(self, messages_json: str) -> slots_pb2.ApplyTemplateResponse:
        """The conversation as the server's template writes it."""
        request = slots_pb2.ApplyTemplateRequest(messages_json=messages_json)
        return await self._call(self.stub.ApplyTemplate, request)

    async def save(self, *, key: str | None = None) -> slots_pb2.SaveSnapshotResponse:
        """Save the slot."""
        return await self._call(
            self.stub.SaveSnapshot, slots_pb2.SaveSnapshotRequest(), self._writing(key)
        )

    async def restore(
        self, path: str, *, server: str | None = None
    ) -> slots_pb2.RestoreSnapshotResponse:
        """Restore a snapshot into the slot."""
        request = slots_pb2.RestoreSnapshotRequest(path=path, server=server)
        return await self._call(self.stub.RestoreSnapshot, request)

    async def snapshots(self) -> Sequence[slots_pb2.Snapshot]:
        """The session's snapshots."""
        request = slots_pb2.ListSnapshotsRequest(of_session=True)
        return (await self._call(self.stub.ListSnapshots, request)).snapshots

    async def all_snapshots(self) -> Sequence[slots_pb2.Snapshot]:
        """Everybody's snapshots."""
        request = slots_pb2.ListSnapshotsRequest()
        return (await self._call(self.stub.ListSnapshots, request)).snapshots

    async def delete(self, snapshot_id: str) -> slots_pb2.DeleteSnapshotResponse:
        """Forget a snapshot."""
        request = slots_pb2.DeleteSnapshotRequest(snapshot_id=snapshot_id)
        return await self._call(self.stub.DeleteSnapshot, request, self._writing())

    async def _call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        context: CallContext | None = None,
    ) -> Response:
        return await self.caller.unary(method, request, context or self.context, self.seconds)

    def _writing(self, key: str | None = None) -> CallContext:
        return replace(self.context, idempotency_key=key or f"key-{os.getpid()}-{next(_keys)}")


@dataclass(frozen=True)
class SlotsHome:
    """A home with its key beside it."""

    home: Home

    @property
    def keys(self) -> Path:
        """Folder of the home's key."""
        return self.home.path.with_name("keys")

    def seal(self) -> None:
        """Let the home, which is new, have a key that its store is sealed with."""
        randomness = SystemRandomness()
        key = HomeKey(randomness.token(KEY_BYTES), sealed=True)
        KeyShelf(self.home, "file", str(self.keys)).keep(key, randomness)

    def run(self, *words: str) -> None:
        """Run a command on the home."""
        command = [sys.executable, "-P", "-m", "muniment.cli", *words]
        subprocess.run(command, env=self._environment, check=True, capture_output=True)

    @property
    def _environment(self) -> dict[str, str]:
        return clean_environment() | {
            "MUNIMENT_HOME": str(self.home.path),
            "MUNIMENT_KEY_FOLDER": str(self.keys),
        }

    @property
    def snapshot_folder(self) -> Path:
        """Where snapshots are kept, unless a setting says otherwise."""
        return self.home.data("slots") / "snapshots"

    @asynccontextmanager
    async def serving(
        self, server: LlamaServer | None = None, *, armoury: Path | None = None, **settings: str
    ) -> AsyncIterator[SlotsCaller]:
        """The service, for as long as the block lasts.

        Args:
            server: The usual inference server; its save folder is known.
            armoury: Folder where fault points are armed. A service that dies is started again.
            settings: More settings, by name. The server is not probed unless they say so.
        """
        chosen = {"slots_probe": "off"}
        if server is not None:
            chosen |= {"llama_url": server.url, "llama_save_folder": str(server.save_folder)}
        if armoury is not None:
            chosen["faults"] = str(armoury)
        keeper = _Keeper(lambda: self._start(chosen | settings))
        keeping = asyncio.create_task(keeper.keep()) if armoury else None
        try:
            async with open_channel(self.home, "slots") as channel:
                caller = SlotsCaller(slots_pb2_grpc.SlotsServiceStub(channel))
                await replace(caller, seconds=_START_SECONDS).snapshots()
                yield caller
        except BaseException as error:
            error.add_note(f"the service said: {self._log.read_text()[-_SHOWN_CHARACTERS:]}")
            raise
        finally:
            if keeping is not None:
                keeping.cancel()
            code = keeper.stop()
        assert code == 0, self._log.read_text()

    def log_text(self) -> str:
        """What all its services have written."""
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.home.path.with_name("slots.log")

    def _start(self, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
        chosen = {f"MUNIMENT_{name.upper()}": value for name, value in settings.items()}
        environment = self._environment | chosen
        with self._log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "muniment.slots"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )


class _Keeper:
    """Starts a process, and starts it again when it was killed."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._process = start()

    async def keep(self) -> None:
        while await asyncio.to_thread(self._process.wait) == -signal.SIGKILL:
            self._process = self._start()

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(_STOP_SECONDS)
        finally:
            self._process.kill()


@contextmanager
def a_slots_home() -> Iterator[SlotsHome]:
    """A new home, which is gone after the block."""
    with a_home() as home:
        yield SlotsHome(home)


def file_of(snapshot: slots_pb2.Snapshot) -> Path:
    """The snapshot's file."""
    assert snapshot.HasField("file_path")
    return Path(snapshot.file_path)
