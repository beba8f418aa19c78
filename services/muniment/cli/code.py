"""The commands on code: an index of the project's files, and what is asked of it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli.files import PIPE, utf8_argument, writable
from muniment.cli.memory import Project
from muniment.cli.output import (
    Json,
    counted,
    print_json,
    print_table,
    print_text,
    print_warning,
    progress,
)

if TYPE_CHECKING:
    from muniment.cli.code_answers import CodeAsker

__all__ = ["impact", "index", "map_", "symbol"]

_CURRENT = "current"

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="`path::Type::member`, with or without extension, or the end of it."
    ),
]


def index(
    context: typer.Context,
    anew: Annotated[
        bool, typer.Option("--anew", help="Parse every file again, also those that did not change.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Say what the index holds, and change nothing.")
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(
            "--export", metavar="FILE", help="Write it as lines of JSON; `-` is standard output."
        ),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Bring the index of the project's code up to the disk, and wait until it is.

    What did not change is not parsed again. Agents need not wait for it: the index begins with
    their first question, and answers from what is there.
    """
    if sum((anew, status, export is not None)) > 1:
        raise typer.BadParameter("give one of --anew, --status and --export", param_hint="--anew")
    asker = _asker(context, project)
    if export is not None:
        _export(asker, export, as_json=json)
        return
    if status:
        told = asyncio.run(asker.describe())
        _show(told, _print_description, as_json=json)
        return
    with progress("indexing") as report:
        told = asyncio.run(asker.index(report, anew=anew))
    _show(told, _print_run, as_json=json)


def map_(
    context: typer.Context,
    budget: Annotated[
        int, typer.Option("--budget", metavar="TOKENS", min=1, help="Most tokens of it.")
    ] = 2000,
    focus: Annotated[
        list[str] | None,
        typer.Option(
            "--focus", metavar="PATH", help="Rank higher what this file or folder reaches."
        ),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Qualified names in place of signatures.")
    ] = False,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Print an outline of the project's code, what most depends on first."""
    paths = [utf8_argument(path, "--focus") for path in focus or ()]
    asker = _asker(context, project)
    with progress("drawing the map"):
        told = asyncio.run(asker.map(budget, paths, names_only=names))
    _show(told, _print_map, as_json=json)


def symbol(
    context: typer.Context, name: Name, project: Project = Path(), json: Json = False
) -> None:
    """Show where a symbol is defined, with its signature. All that have the name are shown."""
    told = asyncio.run(_asker(context, project).symbol(utf8_argument(name, "name")))
    _show(told, _print_symbol, as_json=json)


def impact(
    context: typer.Context,
    name: Name,
    depth: Annotated[
        int, typer.Option("--depth", metavar="N", min=1, max=16, help="Over how many steps.")
    ] = 4,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """List what depends on a symbol, directly or through others; tests are marked."""
    name = utf8_argument(name, "name")
    told = asyncio.run(_asker(context, project).impact(name, depth))
    _show(told, _print_impact, as_json=json)


def _asker(context: typer.Context, project: Path) -> CodeAsker:
    # gRPC and the contracts take half a second to import, and other commands do without.
    from muniment.cli.code_answers import CodeAsker

    return CodeAsker.of(context.obj, project)


def _show(told: dict[str, Any], printed: Any, *, as_json: bool) -> None:
    if told["index"]["freshness"] != _CURRENT:
        print_warning(told["index"]["note"], as_json=as_json)
    if as_json:
        print_json(told)
    else:
        printed(told)


def _export(asker: CodeAsker, file: str, *, as_json: bool) -> None:
    size_bytes = lines = 0
    with writable(file) as target:

        def write(part: bytes) -> None:
            nonlocal size_bytes, lines
            target.write(part)
            size_bytes += len(part)
            lines += part.count(b"\n")

        with progress("exporting") as report:
            asyncio.run(asker.export(write, report))
    if as_json:
        with redirect_stdout(sys.stderr if file == PIPE else sys.stdout):
            print_json({"file": file, "lines": lines, "size_bytes": size_bytes})
    elif file != PIPE:
        print_text(f"{file} has {counted(lines, 'line')} ({size_bytes} bytes)")


def _print_run(told: dict[str, Any]) -> None:
    print_text(f"{_size(told)}, {counted(told['edges'], 'edge')}")
    kinds = ("parsed", "unchanged", "removed")
    print_text(", ".join(f"{kind} {told[f'{kind}_files']}" for kind in kinds))


def _print_description(told: dict[str, Any]) -> None:
    now = told["index"]
    print_text(f"tree     {told['root']}")
    print_text(f"index    {now['freshness'].replace('_', ' ')}: {now['note']}")
    print_text(f"holds    {_size(told)}")
    edges = f"{told['resolved_edges']} resolved, {told['candidate_edges']} candidates"
    print_text(f"edges    {edges}; {told['unresolved_references']} references lead out of the tree")
    if told["languages"]:
        print_text("")
        rows = [
            [one["language"], str(one["files"]), str(one["symbols"])] for one in told["languages"]
        ]
        print_table(["language", "files", "symbols"], rows)
    if told["conditions"]:
        print_text("")
        rows = [
            [one["condition"].replace("_", " "), str(one["files"]), ", ".join(one["examples"])]
            for one in told["conditions"]
        ]
        print_table(["read", "files", "such as"], rows)


def _size(told: dict[str, Any]) -> str:
    now = told["index"]
    return f"{counted(now['files'], 'file')}, {counted(now['symbols'], 'symbol')}"


def _print_map(told: dict[str, Any]) -> None:
    print_text(told["map"].rstrip("\n"))
    how = "exact" if told["exact"] else "an estimate"
    print_text(f"({told['tokens_used']} tokens; {told['tokenizer']}, {how})")
    for note in told["notes"]:
        print_text(f"note: {note}")


def _print_symbol(told: dict[str, Any]) -> None:
    for number, one in enumerate(told["definitions"]):
        if number:
            print_text("")
        _print_definition(one)


def _print_definition(told: dict[str, Any]) -> None:
    from muniment.workflows.code_values import place_of  # Slow to import, as above.

    print_text(f"{told['qualified_name']} ({told['kind']}, ast {told['ast_hash']})")
    print_text(f"  {place_of(told, ('line', 'end_line'))}")
    print_text(f"  {told['signature']}")
    if "doc" in told:
        print_text(f"  | {told['doc']}")


def _print_impact(told: dict[str, Any]) -> None:
    _print_symbol(told)
    print_text("")
    listed = told["dependents"]
    if not listed:
        print_text(f"nothing depends on it within {counted(told['depth'], 'step')}")
        return
    columns = ["depth", "via", "dependent", "where", "certainty", "test", "stale", "through"]
    print_table(columns, list(map(_dependent_row, listed)))
    total = len(listed) + told["left_out"]
    tests = sum(one["test"] for one in listed)
    print_text(f"\n{total} depend on it; {tests} of those listed are tests")
    if told["left_out"]:
        print_text(
            f"{told['left_out']} more are not listed; a lower --depth leaves the farther out"
        )


def _dependent_row(told: dict[str, Any]) -> list[str]:
    from muniment.workflows.code_values import place_of  # Slow to import, as above.

    return [
        str(told["depth"]),
        told["via"],
        told["qualified_name"],
        place_of(told, ("at_line",)),
        told["certainty"],
        "test" if told["test"] else "",
        "stale" if told["stale"] else "",
        told["through"] if told["depth"] > 1 else "",
    ]
