"""A home whose code service runs in a process of its own, and somebody who calls it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from muniment.kit.channels import Caller, open_channel
from muniment.kit.context import CallContext
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store.protection import KEY_BYTES
from muniment.v1 import code_pb2, code_pb2_grpc, maintenance_pb2, maintenance_pb2_grpc
from tests.support.code_trees import PROJECT
from tests.support.homes import a_home, clean_environment
from tests.waiting import eventually

__all__ = ["CodeCaller", "CodeHome", "a_code_home"]

_SECONDS = 60.0
_SHOWN_CHARACTERS = 4000

# The asynchronous stubs are types only.
Stub: TypeAlias = "code_pb2_grpc.CodeServiceAsyncStub"
Maintenance: TypeAlias = "maintenance_pb2_grpc.MaintenanceServiceAsyncStub"


@dataclass(frozen=True)
class CodeCaller:
    """Calls the service for one tree."""

    stub: Stub
    maintenance: Maintenance
    context: CallContext
    pid: int
    """The service's process."""
    caller: Caller = field(default_factory=lambda: Caller("code"))

    async def index(self, *, anew: bool = False) -> code_pb2.IndexResult:
        """Index the tree, and wait for it."""
        request = code_pb2.IndexProjectRequest(anew=anew)
        stream = self.caller.server_stream(self.stub.IndexProject, request, self.context, _SECONDS)
        *_, last = [part async for part in stream]
        assert last.HasField("result")
        return last.result

    async def describe(self) -> code_pb2.DescribeIndexResponse:
        """What is indexed."""
        request = code_pb2.DescribeIndexRequest()
        return await self.caller.unary(self.stub.DescribeIndex, request, self.context, _SECONDS)

    async def map(
        self, budget: int, *focus: str, names_only: bool = False
    ) -> code_pb2.GetRepoMapResponse:
        """A map."""
        request = code_pb2.GetRepoMapRequest(
            token_budget=budget, focus_paths=focus, names_only=names_only
        )
        return await self.caller.unary(self.stub.GetRepoMap, request, self.context, _SECONDS)

    async def symbol(self, name: str) -> code_pb2.QuerySymbolResponse:
        """Definitions of the name."""
        request = code_pb2.QuerySymbolRequest(qualified_name=name)
        return await self.caller.unary(self.stub.QuerySymbol, request, self.context, _SECONDS)

    async def impact(self, name: str, depth: int = 4) -> code_pb2.GetImpactResponse:
        """Who depends on the name."""
        request = code_pb2.GetImpactRequest(qualified_name=name, depth=depth)
        return await self.caller.unary(self.stub.GetImpact, request, self.context, _SECONDS)

    async def export(self) -> bytes:
        """The index as lines."""
        request = code_pb2.ExportIndexRequest()
        stream = self.caller.server_stream(self.stub.ExportIndex, request, self.context, _SECONDS)
        return b"".join([part.lines async for part in stream])

    async def forget(self) -> int:
        """Forget the project; how many files it had."""
        request = code_pb2.ForgetProjectRequest()
        found = await self.caller.unary(self.stub.ForgetProject, request, self.context, _SECONDS)
        return found.removed_files

    async def findings(self) -> list[maintenance_pb2.Finding]:
        """What verification finds amiss with the store."""
        stream = self.caller.server_stream(
            self.maintenance.VerifyStore,
            maintenance_pb2.VerifyStoreRequest(),
            CallContext(caller="test"),
            _SECONDS,
        )
        return [part.finding async for part in stream if part.HasField("finding")]

    async def watched(self) -> None:
        """Wait until the tree is watched."""

        async def is_watched() -> bool:
            return (await self.describe()).state.is_watched

        await eventually(is_watched, "the tree is watched")


@dataclass(frozen=True)
class CodeHome:
    """A home with its key beside it."""

    home: Home

    def seal(self) -> None:
        """Let the home, which is new, have a key that its store is sealed with."""
        randomness = SystemRandomness()
        key = HomeKey(randomness.token(KEY_BYTES), sealed=True)
        KeyShelf(self.home, "file", str(self._keys)).keep(key, randomness)

    @property
    def _keys(self) -> Path:
        return self.home.path.with_name("keys")

    @property
    def _log(self) -> Path:
        return self.home.path.with_name("code.log")

    @asynccontextmanager
    async def serving(
        self, root: Path, *, dies: bool = False, **settings: str
    ) -> AsyncIterator[CodeCaller]:
        """The service, for as long as the block lasts, called for the tree of that root.

        Args:
            root: Of the tree.
            dies: The process is killed in the block.
            settings: By name; `faults` is the folder where fault points are armed.
        """
        process = self._start(settings)
        context = CallContext(project_id=PROJECT, project_root=str(root), caller="test")
        try:
            async with open_channel(self.home, "code") as channel:
                caller = CodeCaller(
                    code_pb2_grpc.CodeServiceStub(channel),
                    maintenance_pb2_grpc.MaintenanceServiceStub(channel),
                    context,
                    process.pid,
                )
                await caller.describe()
                yield caller
        except BaseException as error:
            error.add_note(f"the service said: {self._log.read_text()[-_SHOWN_CHARACTERS:]}")
            raise
        finally:
            if not dies:
                process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(_SECONDS)
            finally:
                process.kill()
        assert code == (-signal.SIGKILL if dies else 0), self._log.read_text()

    def _start(self, settings: dict[str, str]) -> subprocess.Popen[bytes]:
        chosen = {f"MUNIMENT_{name.upper()}": value for name, value in settings.items()}
        environment = clean_environment() | {
            "MUNIMENT_HOME": str(self.home.path),
            "MUNIMENT_KEY_FOLDER": str(self._keys),
        }
        with self._log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "muniment.code"],
                env=environment | chosen,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )


@contextmanager
def a_code_home() -> Iterator[CodeHome]:
    """A new home, which is gone after the block."""
    with a_home() as home:
        yield CodeHome(home)
