"""Projects as the store knows them: ids, the roots that calls named, and counts."""

from __future__ import annotations

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, NotFoundError
from muniment.kit.store import Reader, Writer
from muniment.memory.limits import ROOTS_LIMIT
from muniment.memory.schema import PROJECTS
from muniment.v1 import memory_pb2, store_pb2

__all__ = ["count_change", "find_project", "list_projects", "required_project"]


def required_project(context: CallContext) -> str:
    """The project that the call names.

    Raises:
        InvalidArgumentError: It names none.
    """
    if not context.project_id:
        raise InvalidArgumentError(
            "the call names no project",
            reason="PROJECT_MISSING",
            field="project_id",
            fix="send it in the call's context",
        )
    return context.project_id


def find_project(reader: Reader, project_id: str) -> memory_pb2.Project | None:
    """The project, or None where nothing was ever kept for it."""
    stored = reader.get(PROJECTS, project_id)
    return stored.project if stored else None


def known_project(reader: Reader, project_id: str) -> memory_pb2.Project:
    """The project.

    Raises:
        NotFoundError: Nothing was ever kept for it.
    """
    project = find_project(reader, project_id)
    if project is None:
        raise NotFoundError(
            f"this host remembers nothing of a project {project_id}",
            reason="PROJECT_UNKNOWN",
            field="project_id",
            fix="`muniment projects` lists those that it knows",
        )
    return project


def list_projects(reader: Reader) -> list[memory_pb2.Project]:
    """All projects, oldest first."""
    found = [stored.project for _, stored in reader.scan(PROJECTS)]
    return sorted(found, key=lambda one: (one.created_at.ToNanoseconds(), one.project_id))


def count_change(
    writer: Writer, clock: Clock, context: CallContext, *, episodes: int = 0, pins: int = 0
) -> None:
    """Change the counts of the call's project, and make the project known where it is new."""
    project = find_project(writer, context.project_id) or memory_pb2.Project(
        project_id=context.project_id, created_at=timestamp(clock)
    )
    project.episodes += episodes
    project.pins += pins
    root = context.project_root
    if root and (not project.roots or project.roots[-1] != root):
        roots = [one for one in project.roots if one != root][-(ROOTS_LIMIT - 1) :]
        project.roots[:] = [*roots, root]
    stored = store_pb2.StoredProject(project=project)
    writer.put(PROJECTS, context.project_id, value=stored)
