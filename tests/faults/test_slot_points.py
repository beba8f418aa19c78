"""The slots service dies at its worst moments: no snapshot is lost, and no file is left over."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from muniment.v1 import slots_pb2
from tests.support.crashes import fault_points
from tests.support.homes import a_folder
from tests.support.llama.models import TINY, ModelFiles
from tests.support.llama.process import LlamaServer
from tests.support.llama.turns import Conversation
from tests.support.slots_process import SlotsCaller, SlotsHome, a_slots_home, file_of
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

POINTS = sorted(fault_points("services/muniment/slots"))

SEALING_UP = "slots.before_unlink"
"""Reached only where a home is sealed that has snapshots already."""

PROBING = "slots.before_probe_restore"
"""Reached by probes only."""

TAIL_TOKENS = 40

_sessions = itertools.count(1)


@dataclass(frozen=True)
class Place:
    """A server, and a service that is started again when it dies."""

    home: SlotsHome
    server: LlamaServer
    caller: SlotsCaller


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["plain", "sealed"])
async def place(
    request: pytest.FixtureRequest, model_files: ModelFiles, armoury: Path
) -> AsyncIterator[Place]:
    with ExitStack() as stack:
        home, folder = stack.enter_context(a_slots_home()), stack.enter_context(a_folder())
        if request.param == "sealed":
            home.seal()
        server = stack.enter_context(LlamaServer(model_files.of(TINY), folder))
        async with home.serving(server, armoury=armoury) as caller:
            yield Place(home, server, caller)


@pytest.mark.parametrize("point", sorted(set(POINTS) - {SEALING_UP, PROBING}))
async def test_caller_does_not_notice(place: Place, armoury: Path, point: str) -> None:
    caller = place.caller.of_session(f"session-{next(_sessions)}")
    talk = Conversation(place.server)
    talk.send()
    old = (await caller.save()).snapshot
    armed = armoury / point
    armed.write_text("")
    saved = (await caller.save()).snapshot
    place.server.restart()
    await caller.restore(saved.file_path)
    assert talk.go_on().evaluated_tokens <= TAIL_TOKENS
    await caller.delete(old.snapshot_id)
    assert not armed.exists(), f"nothing here reaches {point}"
    (listed,) = await caller.snapshots()
    assert listed.snapshot_id == saved.snapshot_id
    assert not listed.HasField("damage")
    indexed = {file_of(one) for one in await caller.all_snapshots()}
    assert set(place.home.snapshot_folder.iterdir()) == indexed
    assert not list(place.server.save_folder.iterdir())


async def test_what_a_cut_restore_lent_to_the_server_goes(place: Place, armoury: Path) -> None:
    """Above all where it is the plain content of a sealed file. Its caller does not come back."""
    caller = place.caller.of_session(f"session-{next(_sessions)}")
    Conversation(place.server).send()
    saved = (await caller.save()).snapshot
    (armoury / "slots.before_restore").write_text("")
    request = slots_pb2.RestoreSnapshotRequest(path=saved.file_path)
    with pytest.raises(grpc.aio.AioRpcError):
        await caller.stub.RestoreSnapshot(
            request, timeout=caller.seconds, metadata=caller.context.to_metadata()
        )
    assert await caller.snapshots() == [saved]
    assert not list(place.server.save_folder.iterdir())


async def test_the_file_of_a_cut_probe_goes(place: Place, armoury: Path) -> None:
    place.server.restart()
    (armoury / PROBING).write_text("")
    request = slots_pb2.ProbeServerRequest()
    with pytest.raises(grpc.aio.AioRpcError):
        async for _ in place.caller.stub.ProbeServer(
            request, timeout=place.caller.seconds, metadata=place.caller.context.to_metadata()
        ):
            pass

    async def gone() -> bool:
        return not list(place.server.save_folder.iterdir())

    assert not await gone()
    await eventually(gone, "the file is removed at the next start")


async def test_files_of_a_home_that_is_sealed_later_are_sealed(
    model_files: ModelFiles, armoury: Path
) -> None:
    with (
        a_slots_home() as home,
        a_folder() as folder,
        LlamaServer(model_files.of(TINY), folder) as server,
    ):
        talk = Conversation(server)
        talk.send()
        async with home.serving(server) as caller:
            saved = (await caller.save()).snapshot
        plain = file_of(saved).read_bytes()
        home.run("key", "create")
        armed = armoury / SEALING_UP
        armed.write_text("")
        async with home.serving(server, armoury=armoury) as caller:
            assert not armed.exists()
            (listed,) = await caller.all_snapshots()
            assert listed.is_sealed
            assert list(home.snapshot_folder.iterdir()) == [file_of(listed)]
            assert plain[:64] not in file_of(listed).read_bytes()
            server.restart()
            await caller.restore(saved.snapshot_id)
            assert talk.go_on().evaluated_tokens <= TAIL_TOKENS
