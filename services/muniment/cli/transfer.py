"""Taking a memory elsewhere, bringing it in, and letting go of a project for good."""

from __future__ import annotations

import asyncio
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from muniment.cli.files import PIPE, readable, writable
from muniment.cli.memory import Project
from muniment.cli.output import (
    Json,
    counted,
    print_json,
    print_text,
    print_warning,
    printable,
    progress,
)
from muniment.kit.errors import InvalidArgumentError, PreconditionError
from muniment.kit.paths import Home

if TYPE_CHECKING:
    from muniment.kit.context import CallContext
    from muniment.v1 import memory_pb2
    from muniment.workflows.purging import Purged

__all__ = ["export", "import_", "purge"]

_SHOWN_REMARKS = 20
"""More are counted; --json has them."""


def export(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to write; `-` is standard output.")
    ] = PIPE,
    project: Project = Path(),
    project_id: Annotated[
        str | None,
        typer.Option("--project-id", metavar="ID", help="The project, by its id."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All projects of the home.")] = False,
    json: Json = False,
) -> None:
    """Write a project, or all of them, as lines of JSON.

    What was written is told on stderr where the lines go to standard output.
    """
    if every and project_id is not None:
        raise typer.BadParameter("give an id, or --all", param_hint="--project-id")
    # gRPC and the contracts take half a second to import, and other commands do without.
    from muniment.kit.context import CallContext
    from muniment.kit.identity import resolve_project

    chosen = "" if every else project_id or resolve_project(project).project_id
    home: Home = context.obj
    with writable(file) as target:
        call = CallContext(project_id=chosen, caller="cli")
        result = asyncio.run(_export(home, call, target, every=every))
    if json:
        with redirect_stdout(sys.stderr if file == PIPE else sys.stdout):
            print_json({"file": file} | _exported(result))
    elif file != PIPE:
        print_text(
            f"{file} has {result.episodes} episodes and {result.pins} pins"
            f" of {result.projects} projects"
        )
    if result.left_out:
        raise PreconditionError(
            f"{result.left_out} episodes and pins fail their check, and are not in the file",
            reason="EXPORT_INCOMPLETE",
            fix="`muniment verify-store` says which, and how to mend the store",
        )


def _exported(result: memory_pb2.ExportResult) -> dict[str, Any]:
    return {
        "projects": result.projects,
        "episodes": result.episodes,
        "pins": result.pins,
        "tombstones": result.tombstones,
        "left_out": result.left_out,
        "size_bytes": result.size_bytes,
        "sha256": result.sha256.hex(),
    }


async def _export(
    home: Home, call: CallContext, target: BinaryIO, *, every: bool
) -> memory_pb2.ExportResult:
    from muniment.cli.answers import memory_clients
    from muniment.workflows.transfer import export_lines

    async with memory_clients(home) as clients:
        with progress("exporting") as report:
            return await export_lines(clients, call, target.write, report, all_projects=every)


def import_(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `export` wrote; `-` is standard input.")
    ],
    revive: Annotated[
        bool, typer.Option("--revive", help="Take also what was purged here.")
    ] = False,
    json: Json = False,
) -> None:
    """Take in what `export` wrote. What is here already is passed over.

    A line that is refused stops no other. The exit code is 1 where one was, or where the file is
    cut or was changed.
    """
    home: Home = context.obj
    remarks: list[memory_pb2.ImportRemark] = []

    def note(remark: memory_pb2.ImportRemark) -> None:
        remarks.append(remark)
        if not json and len(remarks) <= _SHOWN_REMARKS:
            print_warning(_remark_text(remark), as_json=False)

    with readable(file) as (source, size_bytes):
        result = asyncio.run(_import(home, source, size_bytes, note, revive=revive))
    if json:
        print_json(_imported(result) | {"remarks": [_remark(one) for one in remarks]})
    else:
        if len(remarks) > _SHOWN_REMARKS:
            print_warning("there is more to say; --json has it", as_json=False)
        print_text(_imported_text(result))
    if result.refused_lines or not result.whole:
        raise typer.Exit(1)


async def _import(
    home: Home, source: BinaryIO, size_bytes: int, note: Any, *, revive: bool
) -> memory_pb2.ImportResult:
    from muniment.cli.answers import memory_clients
    from muniment.kit.context import CallContext
    from muniment.workflows.transfer import import_lines

    call = CallContext(caller="cli")
    async with memory_clients(home) as clients:
        with progress("importing") as report:
            return await import_lines(
                clients, call, source.read, size_bytes, report, note, revive=revive
            )


def purge(
    context: typer.Context,
    project_id: Annotated[
        str, typer.Argument(metavar="PROJECT_ID", help="As `muniment projects` lists it.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Take away all of a project, for good: no file of the home has a word of it then.

    Backups and exports are not touched. It is finished even if this command is ended.
    """
    home: Home = context.obj
    with progress("purging"):
        lost = asyncio.run(_what_goes(home, project_id))
    if lost and not yes:
        _confirm(f"{project_id} would be purged for good, with {lost}")
    told = _purged(project_id, asyncio.run(_purge(home, project_id)))
    if json:
        print_json(told)
        return
    counts = f"{told['episodes']} episodes and {told['pins']} pins"
    if told["indexed_files"]:
        counts += f", and the code index of {counted(told['indexed_files'], 'file')}"
    if told["already_purged"]:
        print_text(f"{project_id} was purged on {told['purged_at']}: {counts}")
    else:
        print_text(f"{project_id} is purged: {counts}")


def _purged(project_id: str, result: Purged) -> dict[str, Any]:
    told: dict[str, Any] = {
        "project_id": project_id,
        "purged_at": None,
        "episodes": 0,
        "pins": 0,
        "already_purged": False,
        "indexed_files": result.indexed_files,
    }
    if result.memory is None:
        return told
    purged = result.memory.purged
    return told | {
        "purged_at": purged.purged_at.ToJsonString(),
        "episodes": purged.episodes,
        "pins": purged.pins,
        "already_purged": result.memory.already_purged,
    }


async def _what_goes(home: Home, project_id: str) -> str:
    """What would be lost, for people; nothing, where there is nothing to ask about."""
    from muniment.cli.answers import memory_clients
    from muniment.kit.store.folders import set_aside
    from muniment.kit.stores import MEMORY_STORE
    from muniment.workflows.status import list_projects

    async with memory_clients(home) as clients:
        answer = await list_projects(clients)
    known = next((one for one in answer.projects if one.project_id == project_id), None)
    if known is None and not answer.tampered_projects:
        return ""
    lost = [f"{known.episodes} episodes and {known.pins} pins" if known else "all that it holds"]
    if known and known.roots:
        lost.append(f"of {known.roots[-1]}")
    copies = [str(copy) for copy in set_aside(MEMORY_STORE.folder(home))]
    if copies:
        lost.append(f"and these copies of the store that were set aside: {', '.join(copies)}")
    return " ".join(lost)


async def _purge(home: Home, project_id: str) -> Purged:
    from muniment.cli.answers import memory_clients
    from muniment.kit.context import CallContext
    from muniment.kit.randomness import SystemRandomness
    from muniment.workflows.purging import purge_everywhere

    key = f"cli-{SystemRandomness().token(16).hex()}"
    call = CallContext(caller="cli", idempotency_key=key)
    async with memory_clients(home) as clients:
        with progress("purging") as report:
            return await purge_everywhere(clients, call, project_id, report)


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidArgumentError(
            question,
            reason="PURGE_UNCONFIRMED",
            field="--yes",
            fix="give it to say that you mean it",
        )
    # On stderr, since stdout is for the result.
    print(f"{printable(question)}; go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print_text("nothing was purged")
        raise typer.Exit(1)


def _remark(remark: memory_pb2.ImportRemark) -> dict[str, Any]:
    return {
        "line": remark.line or None,
        "field": remark.field or None,
        "text": remark.text,
        "refused": remark.refused,
    }


def _remark_text(remark: memory_pb2.ImportRemark) -> str:
    where = f"line {remark.line}: " if remark.line else ""
    field = f"{remark.field}: " if remark.field else ""
    return f"{where}{field}{remark.text}"


def _imported(result: memory_pb2.ImportResult) -> dict[str, Any]:
    counts = {
        "projects": result.projects,
        "episodes": result.episodes,
        "pins": result.pins,
        "tombstones": result.tombstones,
    }
    told: dict[str, Any] = {
        name: {"imported": count.imported, "present": count.present}
        for name, count in counts.items()
    }
    return told | {"refused_lines": result.refused_lines, "whole": result.whole}


def _imported_text(result: memory_pb2.ImportResult) -> str:
    told = f"imported {result.episodes.imported} episodes and {result.pins.imported} pins"
    present = result.episodes.present + result.pins.present
    if present:
        told += f"; {present} were here already"
    if result.refused_lines:
        told += f"; {result.refused_lines} lines were refused"
    return told
