"""One slots service for the tests of a module, each with a llama-server of its own behind it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from tests.support.homes import a_folder
from tests.support.llama.gateway import Gateway
from tests.support.llama.models import TINY, ModelPlan
from tests.support.llama.process import LlamaServer, Shape, StartLlama
from tests.support.slots_process import SlotsCaller, a_slots_home

__all__ = ["Desk", "SharedDesk", "a_shared_desk"]

_sessions = itertools.count(1)


@dataclass(frozen=True)
class Desk:
    """What one test has."""

    caller: SlotsCaller
    """In a session of its own."""
    gateway: Gateway
    """What the service takes for the server."""
    save_folder: Path
    start: StartLlama

    def serve(
        self, model: ModelPlan | Path = TINY, *arguments: str, **shape: Unpack[Shape]
    ) -> LlamaServer:
        """Start a server as `StartLlama` does, and put it behind the gateway."""
        shape["save_folder"] = self.save_folder
        self.gateway.server = self.start(model, *arguments, **shape)
        return self.gateway.server


@dataclass(frozen=True)
class SharedDesk:
    """What the tests of a module share."""

    caller: SlotsCaller
    gateway: Gateway
    save_folder: Path

    @contextmanager
    def used_by(self, start: StartLlama) -> Iterator[Desk]:
        """Give it to one test."""
        caller = self.caller.of_session(f"session-{next(_sessions)}")
        yield Desk(caller, self.gateway, self.save_folder, start)
        self.gateway.forget()


@asynccontextmanager
async def a_shared_desk() -> AsyncIterator[SharedDesk]:
    """A service with a gateway in the place of its inference server."""
    with a_slots_home() as home, a_folder() as folder, Gateway() as gateway:
        async with home.serving(llama_url=gateway.url, llama_save_folder=str(folder)) as caller:
            yield SharedDesk(caller, gateway, folder)
