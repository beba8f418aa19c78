"""Another project is found in the folder in which it was seen last, if that is still its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.identity import PROJECT_FILE, resolve_project
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.pins import pin
from muniment.workflows.project_folders import in_project

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def seen(clients: Clients, folder: Path) -> CallContext:
    """A project that the host remembers, in that folder."""
    project = resolve_project(folder)
    context = CallContext(
        project_id=project.project_id, project_root=project.root, idempotency_key=str(folder)
    )
    await pin(clients, context, memory_pb2.PinRequest(content=f"Use {folder.name}."))
    return context


async def test_a_project_s_own_context_stays(clients: Clients, context: CallContext) -> None:
    assert await in_project(clients, context, context.project_id) is context


async def test_another_project_is_found_where_it_was_seen(
    clients: Clients, context: CallContext, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = await seen(clients, tmp_path / "other")
    moved = await in_project(clients, context, other.project_id)
    assert moved.project_id == other.project_id
    assert moved.project_root == str(tmp_path / "other")
    assert moved == replace(context, project_id=moved.project_id, project_root=moved.project_root)


async def test_of_several_folders_the_newest_that_is_there(
    clients: Clients, context: CallContext, tmp_path: Path
) -> None:
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
        (tmp_path / name / PROJECT_FILE).write_text('project = "in three places"')
        other = await seen(clients, tmp_path / name)
    (tmp_path / "third" / PROJECT_FILE).unlink()
    moved = await in_project(clients, context, other.project_id)
    assert moved.project_root == str(tmp_path / "second")


async def test_a_project_that_is_nowhere_is_refused(
    clients: Clients, context: CallContext, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    other = await seen(clients, tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for project_id in (other.project_id, "proj_0"):
        with pytest.raises(InvalidArgumentError) as raised:
            await in_project(clients, context, project_id)
        assert (raised.value.reason, raised.value.field) == ("PROJECT_OTHER", "uri")
        assert context.project_id in str(raised.value)
