"""Where another project is on this host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, MunimentError
from muniment.kit.identity import resolve_project
from muniment.workflows.clients import Clients
from muniment.workflows.status import list_projects

__all__ = ["in_project"]


async def in_project(clients: Clients, context: CallContext, project_id: str) -> CallContext:
    """The context moved to that project: to the folder in which it was seen last.

    Raises:
        InvalidArgumentError: This host knows no folder that is the project's now.
    """
    if project_id == context.project_id:
        return context
    known = (await list_projects(clients)).projects
    roots = next((one.roots for one in known if one.project_id == project_id), ())
    for root in reversed(roots):
        if _is_of(root, project_id):
            return replace(context, project_id=project_id, project_root=root)
    raise InvalidArgumentError(
        f"{project_id} has no folder that this host knows",
        reason="PROJECT_OTHER",
        field="uri",
        fix=f"read it under your own project's id, {context.project_id}",
    )


def _is_of(root: str, project_id: str) -> bool:
    """Whether the folder is there and is that project's: another may stand in its place."""
    try:
        return Path(root).is_dir() and resolve_project(Path(root)).project_id == project_id
    except (OSError, MunimentError):
        return False
