"""The service is killed in the middle of an import: the same file, sent again, finishes it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError
from muniment.v1 import memory_pb2
from muniment.workflows import transfer
from muniment.workflows.clients import Clients
from tests.support.bare_memory import a_bare_memory
from tests.support.killable import Killable
from tests.support.memory_process import Caller, a_memory_home

pytestmark = pytest.mark.timeout(180)

_EPISODES = 450
"""More than two batches."""

_POINTS = (
    ("store.before_commit", 1),
    ("store.before_commit", 3),
    ("store.after_commit", 2),
    ("store.after_follow", 1),
)


def quiet(step: str, done: int, total: int) -> None:
    """Nobody listens."""


def exported(folder: Path) -> bytes:
    with a_bare_memory(folder) as memory:
        first = memory.commit("proj_one", "the port is 8080", session_id="s-1")
        for number in range(_EPISODES):
            memory.commit(f"proj_{number % 3}", f"turn {number}", session_id="s-1")
        memory.commit("proj_one", "no: 9090", session_id="s-1", corrects=first.episode_id)
        memory.pin("proj_0", "keep it short")
        return memory.export()


async def take(clients: Clients, lines: bytes) -> memory_pb2.ImportResult:
    remarks: list[memory_pb2.ImportRemark] = []
    result = await transfer.import_lines(
        clients,
        CallContext(caller="test"),
        io.BytesIO(lines).read,
        len(lines),
        quiet,
        remarks.append,
        revive=False,
    )
    assert not remarks
    return result


@pytest.mark.parametrize(("point", "visit"), _POINTS)
async def test_a_killed_import_is_finished_by_the_same_file(
    tmp_path: Path, point: str, visit: int
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    lines = exported(tmp_path / "source")
    with a_memory_home() as home:
        service = Killable(home, faults)
        async with service.running(dies=True) as clients:
            service.arm(point, visit)
            with pytest.raises(MunimentError):
                await take(clients, lines)
        service.demand_visited()
        async with service.running() as clients:
            result = await take(clients, lines)
            assert result.whole
            counted = result.episodes
            assert counted.imported + counted.present == _EPISODES + 2
            assert (counted.present > 0) == ((point, visit) != ("store.before_commit", 1))
            chunks: list[bytes] = []
            await transfer.export_lines(
                clients, CallContext(caller="test"), chunks.append, quiet, all_projects=True
            )
            again = b"".join(chunks)
            assert again.splitlines()[1:-1] == lines.splitlines()[1:-1]
            assert await Caller(clients).verify() == []
