"""Projects as the store knows them: ids, the roots that calls named, and counts."""

from __future__ import annotations

from bisect import bisect_right

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, NotFoundError, TamperedError
from muniment.kit.ids import made_at_ns
from muniment.kit.store import Reader, Writer
from muniment.memory.limits import ROOTS_LIMIT
from muniment.memory.schema import EPISODES, PIN_SCOPES, PROJECTS, PURGES, SESSIONS, TOMBSTONES
from muniment.v1 import memory_pb2, store_pb2

__all__ = [
    "as_purged",
    "count_change",
    "count_here",
    "find_project",
    "known_project",
    "last_purge",
    "list_projects",
    "purge_that_took",
    "purged_on",
    "purged_through",
    "recount",
    "required_project",
    "was_purged",
]


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
        NotFoundError: Nothing was ever kept for it, or it was purged.
    """
    project = find_project(reader, project_id)
    if project is not None:
        return project
    tombstone = reader.get(TOMBSTONES, project_id)
    if tombstone is not None:
        raise NotFoundError(
            f"project {project_id} was {purged_on(tombstone)}",
            reason="PROJECT_PURGED",
            field="project_id",
            fix="`muniment projects` lists those that this host knows",
        )
    raise NotFoundError(
        f"this host remembers nothing of a project {project_id}",
        reason="PROJECT_UNKNOWN",
        field="project_id",
        fix="`muniment projects` lists those that it knows",
    )


def count_here(reader: Reader, project_id: str) -> memory_pb2.GetStatsResponse:
    """Counts of the store and of the project."""
    stats = memory_pb2.GetStatsResponse(
        episodes=reader.count(EPISODES),
        pins=reader.count(PIN_SCOPES),
        projects=reader.count(PROJECTS),
        doubts=reader.doubts(),
    )
    try:
        project = find_project(reader, project_id)
    except TamperedError as error:
        stats.doubts.append(f"{error.message}: the project's counts cannot be believed")
        return stats
    if project is not None:
        stats.project_episodes, stats.project_pins = project.episodes, project.pins
    return stats


def purged_through(reader: Reader, project_id: str) -> int:
    """The place up to which the project's episodes are being purged; 0 where none are."""
    purge = reader.get(PURGES, project_id)
    return purge.through_seq if purge else 0


def was_purged(reader: Reader, project_id: str, seq: int) -> bool:
    """Whether the project's episode of that place is one of those that a finished purge took."""
    tombstone = reader.get(TOMBSTONES, project_id)
    if tombstone is None or seq <= purged_through(reader, project_id):
        return False
    place = bisect_right(tombstone.seqs, seq, key=lambda run: run.first)
    return place > 0 and seq <= tombstone.seqs[place - 1].last


def purged_on(tombstone: store_pb2.StoredTombstone) -> str:
    """`purged on 2026-01-31 09:30:00 UTC`."""
    return f"purged on {tombstone.purged_at.ToDatetime():%Y-%m-%d %H:%M:%S} UTC"


def last_purge(reader: Reader, project_id: str) -> str | None:
    """`purged on 2026-01-31 09:30:00 UTC`; None where it never was, or was brought back."""
    tombstone = reader.get(TOMBSTONES, project_id)
    if tombstone is None or tombstone.HasField("revived_at"):
        return None
    return purged_on(tombstone)


def purge_that_took(reader: Reader, project_id: str, name: str) -> str | None:
    """What to say of an id that is not there, where a purge of its project explains that."""
    tombstone = reader.get(TOMBSTONES, project_id)
    made = made_at_ns(name)
    if tombstone is None or tombstone.HasField("revived_at") or made is None:
        return None
    purged = tombstone.purged_at.ToNanoseconds()
    return f"what it held then was {purged_on(tombstone)}" if made <= purged else None


def as_purged(tombstone: store_pb2.StoredTombstone) -> memory_pb2.PurgedProject:
    """What a tombstone says to those outside."""
    return memory_pb2.PurgedProject(
        project_id=tombstone.project_id,
        purged_at=tombstone.purged_at,
        episodes=tombstone.episodes,
        pins=tombstone.pins,
        revived_at=tombstone.revived_at if tombstone.HasField("revived_at") else None,
    )


def list_projects(reader: Reader) -> memory_pb2.ListProjectsResponse:
    """All projects and all that were purged, each the oldest first."""
    response = memory_pb2.ListProjectsResponse(doubts=reader.doubts())
    projects, purged = [], []
    for _, stored in reader.survey(PROJECTS):
        if isinstance(stored, TamperedError):
            response.tampered_projects += 1
        else:
            projects.append(stored.project)
    for _, tombstone in reader.survey(TOMBSTONES):
        if isinstance(tombstone, TamperedError):
            response.tampered_projects += 1
        else:
            purged.append(as_purged(tombstone))
    projects.sort(key=lambda one: (one.created_at.ToNanoseconds(), one.project_id))
    purged.sort(key=lambda one: (one.purged_at.ToNanoseconds(), one.project_id))
    response.projects.extend(projects)
    response.purged.extend(purged)
    return response


def count_change(
    writer: Writer,
    clock: Clock,
    context: CallContext,
    *,
    episodes: int = 0,
    pins: int = 0,
    described: memory_pb2.Project | None = None,
) -> None:
    """Change the counts of the call's project, and make the project known where it is new.

    Called after the change, since counts that cannot be believed are made anew. A project that is
    new and comes from elsewhere is `described`.
    """
    try:
        project = find_project(writer, context.project_id)
    except TamperedError:
        # Nobody's turn is refused for a count.
        recount(writer, clock, context.project_id)
        return
    if project is None:
        project = memory_pb2.Project(project_id=context.project_id, created_at=timestamp(clock))
        if described is not None:
            project.CopyFrom(described)
    project.episodes += episodes
    project.pins += pins
    root = context.project_root
    if root and (not project.roots or project.roots[-1] != root):
        roots = [one for one in project.roots if one != root][-(ROOTS_LIMIT - 1) :]
        project.roots[:] = [*roots, root]
    stored = store_pb2.StoredProject(project=project)
    writer.put(PROJECTS, context.project_id, value=stored)


def recount(writer: Writer, clock: Clock, project_id: str) -> None:
    """Count anew what the project has."""
    try:
        project = find_project(writer, project_id)
    except TamperedError:
        project = None
    if project is None:
        project = memory_pb2.Project(project_id=project_id, created_at=timestamp(clock))
    project.episodes = sum(1 for _ in writer.survey(SESSIONS, project_id))
    project.pins = sum(1 for _ in writer.survey(PIN_SCOPES, project_id))
    writer.put(PROJECTS, project_id, value=store_pb2.StoredProject(project=project))
