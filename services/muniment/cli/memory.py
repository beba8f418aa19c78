"""The data commands: what is committed, pinned and recalled, for the project of a folder."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from muniment.cli.files import not_utf8, utf8_argument
from muniment.cli.output import (
    Json,
    counted,
    print_json,
    print_table,
    print_text,
    print_warning,
    to_the_second,
)
from muniment.kit.paths import Home

if TYPE_CHECKING:
    from muniment.cli.answers import Asker, Listed

__all__ = [
    "OwnSession",
    "Project",
    "commit",
    "episodes",
    "pin",
    "pins",
    "projects",
    "recall",
    "show",
    "status",
    "unpin",
]

Project = Annotated[
    Path,
    typer.Option(
        "--project",
        metavar="ROOT",
        envvar=["MUNIMENT_PROJECT_ROOT", "SAKUR4_PROJECT_ROOT"],
        exists=True,
        file_okay=False,
        help="A folder of the project.",
    ),
]
OwnSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        envvar=["MUNIMENT_SESSION", "SAKUR4_SESSION"],
        help="The session that it belongs to.",
    ),
]
Session = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Only what belongs to this session.")
]


def commit(
    context: typer.Context,
    role: Annotated[
        Literal["system", "user", "assistant", "tool", "internal"],
        typer.Option("--role", help="Who said it."),
    ],
    text: Annotated[
        str | None, typer.Argument(help="The content; without it, standard input is read.")
    ] = None,
    tool_name: Annotated[
        str | None, typer.Option("--tool-name", metavar="NAME", help="Which tool's result it is.")
    ] = None,
    session: OwnSession = None,
    corrects: Annotated[
        str | None,
        typer.Option("--corrects", metavar="EPISODE_ID", help="The episode that it corrects."),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Commit an episode: a turn, whole and verbatim."""
    content = _standard_input() if text is None else utf8_argument(text, "content")
    told = asyncio.run(
        _asker(context, project).commit(
            content, role=role, tool_name=tool_name, session_id=session, corrects=corrects
        )
    )
    if json:
        print_json(told)
    else:
        tokens = counted(told["token_count"], "token")
        print_text(f"{told['episode_id']} (number {told['seq']}, {tokens})")


def show(
    context: typer.Context,
    episode_id: Annotated[str, typer.Argument(metavar="EPISODE_ID")],
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Print an episode's content to the byte; with --json, its description too."""
    told, content = asyncio.run(_asker(context, project).read(episode_id))
    if json:
        print_json(told | {"content": content})
        return
    sys.stdout.buffer.write(content.encode())
    sys.stdout.buffer.flush()


def episodes(
    context: typer.Context,
    session: Session = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="How many, the oldest first. 0: all.")
    ] = 0,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """List the project's episodes in the order in which they were committed."""
    listed = asyncio.run(_asker(context, project).episodes(session_id=session, limit=limit))
    _warn(listed, as_json=json)
    if json:
        print_json(listed.told)
        return
    rows = [
        ["", str(one["seq"]), *[""] * 6, "fails its check, and is not shown"]
        if "tampered" in one
        else [
            one["episode_id"],
            str(one["seq"]),
            one["session_id"] or "",
            one["role"],
            one["tool_name"] or "",
            str(one["token_count"]),
            to_the_second(one["created_at"]),
            one.get("superseded_by", ""),
            "",
        ]
        for one in listed.told
    ]
    columns = ["episode", "number", "session", "role", "tool", "tokens", "committed"]
    if rows:
        columns += ["superseded by", "note"]
        print_table(columns, rows, whole=("episode", "superseded by"))
    else:
        print_text("no episodes")


def pin(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="The rule.")],
    kind: Annotated[
        Literal["safety_constraint", "user_correction", "task_contract"],
        typer.Option("--kind", help="What sort of rule it is."),
    ] = "task_contract",
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Let it hold in this session only."),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Pin a rule, which no compaction loses."""
    told = asyncio.run(
        _asker(context, project).pin(utf8_argument(text, "content"), kind=kind, session_id=session)
    )
    if json:
        print_json(told)
        return
    news = "was pinned already" if told["already_pinned"] else "pinned"
    before = f", {told['previous_kind']} before" if "previous_kind" in told else ""
    cost = f"{counted(told['token_cost'], 'token')} in every prompt"
    print_text(f"{told['pin_id']} {news} ({told['kind']}{before}; {cost})")


def unpin(
    context: typer.Context,
    pin_id: Annotated[str, typer.Argument(metavar="ID")],
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Take a pin away."""
    told = asyncio.run(_asker(context, project).unpin(pin_id))
    if json:
        print_json(told)
    else:
        print_text(f"{told['pin_id']} holds no longer: {told['content']}")


def pins(
    context: typer.Context,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Add the pins of this session."),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """List the pins in force in the project."""
    listed, others = asyncio.run(_asker(context, project).pins(session_id=session))
    _warn(listed, as_json=json)
    if json:
        print_json(listed.told)
        return
    rows = [
        [one["pin_id"], one["kind"], one.get("session_id", ""), one["content"]]
        for one in listed.told
    ]
    if rows:
        print_table(["pin", "kind", "session", "rule"], rows, whole=("pin",))
    else:
        print_text("nothing is pinned")
    if others:
        print_text(f"{others} more in other sessions; --session lists one's")


def recall(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="Words to look for.")],
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="How many hits, at most.")] = 8,
    session: Session = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="FILE", help="Only episodes that show this file."),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Find episodes and pins by their words."""
    told = asyncio.run(
        _asker(context, project).recall(
            utf8_argument(query, "content"), k=k, session_id=session, file_path=path
        )
    )
    if json:
        print_json(told)
        return
    print_text("\n\n".join(_describe_hit(one) for one in told["results"]) or "nothing found")
    for note in told["notes"]:
        print_text(f"\nnote: {note}")


def status(context: typer.Context, project: Project = Path(), json: Json = False) -> None:
    """Count what the host remembers and what of it is the project's; look at its server."""
    told, failure = asyncio.run(_asker(context, project).status())
    if json:
        print_json(told)
    else:
        _print_status(told)
    if failure is not None:
        raise failure


def _print_status(told: dict[str, Any]) -> None:
    here = told["project"]
    print_text(f"home     {told['home']}")
    print_text(f"project  {here['project_id']} at {here['root']}")
    if "memory" in told:
        counts = told["memory"]
        print_text(f"         {_totals(counts['episodes'], counts['pins'])}")
        host = _totals(counts["host_episodes"], counts["host_pins"])
        print_text(f"host     {host}, {counted(counts['host_projects'], 'project')}")
        for doubt in counts.get("doubts", ()):
            print_text(f"doubt    {doubt}; run `muniment verify-store`")
    if "server" in told:
        print_text(f"server   {_server_in_short(told['server'])}")
    if "server_failure" in told:
        print_text(f"server   could not tell: {told['server_failure']}")
    if "code" in told:
        found = told["code"]
        size = f"{counted(found['files'], 'file')}, {counted(found['symbols'], 'symbol')}"
        print_text(f"code     {size}; {found['note']}")
    else:
        print_text(f"code     could not tell: {told['code_failure']}")


def _server_in_short(server: dict[str, Any] | None) -> str:
    if server is None:
        return "none"
    text = f"{server['name']} at {server['url']}: {server['condition'].replace('_', ' ')}"
    if "slots" in server:
        busy = sum(one["is_busy"] for one in server["slots"])
        text += f", {busy} of {counted(len(server['slots']), 'slot')} busy"
    return text


def projects(context: typer.Context, json: Json = False) -> None:
    """List the projects that the host remembers, and those that were purged."""
    # gRPC and the contracts take half a second to import, and other commands do without.
    from muniment.cli.answers import list_projects

    home: Home = context.obj
    listed = asyncio.run(list_projects(home))
    _warn(listed, as_json=json)
    if json:
        print_json(listed.told)
        return
    rows = [
        [
            one["project_id"],
            str(one["episodes"]),
            str(one["pins"]),
            to_the_second(one["created_at"]) if one["created_at"] else "",
            to_the_second(one["purged_at"]) if "purged_at" in one else "",
            one["roots"][-1] if one["roots"] else "",
        ]
        for one in listed.told
    ]
    if rows:
        columns = ["project", "episodes", "pins", "since", "purged", "root"]
        print_table(columns, rows, whole=("project",))
    else:
        print_text("no projects")


def _asker(context: typer.Context, project: Path) -> Asker:
    from muniment.cli.answers import Asker  # Slow to import, as above.

    home: Home = context.obj
    return Asker.of(home, project)


def _totals(episodes: int, pins: int) -> str:
    return f"{counted(episodes, 'episode')}, {counted(pins, 'pin')}"


def _warn(listed: Listed, *, as_json: bool) -> None:
    for warning in listed.warnings:
        print_warning(warning, as_json=as_json)


def _describe_hit(hit: dict[str, Any]) -> str:
    lines = [f"{hit['kind']} {hit['id']}  ({'; '.join(hit['reasons'])})"]
    if "tampered" in hit:
        return "\n".join([*lines, "[tampered: not shown]"])
    if hit["truncated"]:
        lines.append(f"[cut; from byte {hit['text_offset_bytes']}]")
    lines.append(hit["text"])
    if "current_value" in hit:
        lines.append(f"[corrected by] {hit['current_value']}")
    return "\n".join(lines)


def _standard_input() -> str:
    if sys.stdin.isatty():
        raise typer.BadParameter("give a text, or pipe one in", param_hint="TEXT")
    raw = sys.stdin.buffer.read()
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(error.start, "content") from error
