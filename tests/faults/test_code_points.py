"""The code service is killed at its worst moments: what it kept is right, and it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.kit.errors import MunimentError
from tests.support.code_process import CodeCaller, CodeHome, a_code_home
from tests.support.code_trees import Repository, parser_processes
from tests.support.crashes import fault_points
from tests.waiting import until

pytestmark = pytest.mark.timeout(120)

POINTS = sorted(fault_points("services/muniment/code"))

FORGETTING = "code.trees_forgotten"
"""Reached only where a project is forgotten."""

FILES = 300
"""More than are committed together."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "tree")
    for number in range(FILES):
        repository.write(
            **{f"p{number % 7}__m{number}": f"def f{number}(): return f{number // 2}()\n"}
        )
    return repository


@pytest.fixture
def code_home() -> Iterator[CodeHome]:
    with a_code_home() as home:
        yield home


async def _die(caller: CodeCaller, armoury: Path, point: str) -> None:
    (armoury / point).write_text("")
    work = caller.forget() if point == FORGETTING else caller.index()
    dying = asyncio.ensure_future(work)
    await asyncio.to_thread(
        until, lambda: not (armoury / point).exists(), f"{point} is reached", seconds=60
    )
    until(lambda: not _is_there(caller.pid), "the service is dead")
    dying.cancel()
    with pytest.raises((MunimentError, asyncio.CancelledError)):
        await dying


def _is_there(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("point", POINTS)
async def test_an_index_that_was_cut_short_is_right(
    code_home: CodeHome, repository: Repository, armoury: Path, point: str
) -> None:
    async with code_home.serving(repository.path, dies=True, faults=str(armoury)) as caller:
        if point == FORGETTING:
            await caller.index()
        await _die(caller, armoury, point)
    async with code_home.serving(repository.path) as caller:
        assert not await caller.findings()
        found = await caller.index()
        kept = found.unchanged_files
        assert kept == 0 if point == FORGETTING else kept > 0
        assert kept + found.parsed_files == FILES
        cut_short = await caller.export()
    with a_code_home() as other:
        async with other.serving(repository.path) as caller:
            await caller.index()
            assert await caller.export() == cut_short


async def test_parser_processes_die_with_the_service(
    code_home: CodeHome, repository: Repository, armoury: Path
) -> None:
    async with code_home.serving(repository.path, dies=True, faults=str(armoury)) as caller:
        (armoury / "code.rows_kept").write_text("")
        indexing = asyncio.ensure_future(caller.index())
        processes = await asyncio.to_thread(
            until, lambda: parser_processes(caller.pid), "a parser process is there"
        )
        until(lambda: not _is_there(caller.pid), "the service is dead", seconds=60)
        until(lambda: not any(map(_is_there, processes)), "the parser processes are gone")
        indexing.cancel()
        with pytest.raises((MunimentError, asyncio.CancelledError)):
            await indexing
