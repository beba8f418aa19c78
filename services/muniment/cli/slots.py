"""`muniment slots`: inference servers, their slots, and snapshots of these."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli.files import PIPE, readable
from muniment.cli.groups import command_group
from muniment.cli.memory import OwnSession, Project
from muniment.cli.output import (
    Json,
    counted,
    print_json,
    print_table,
    print_text,
    print_warning,
    progress,
    to_the_second,
)
from muniment.cli.records_common import utf8_text

if TYPE_CHECKING:
    from muniment.cli.slots_answers import Keeper, Slots

__all__ = ["app"]

_MIB = 1024**2

app = command_group("Inference servers: what they can do, their slots, and snapshots of these.")

Server = Annotated[
    str | None,
    typer.Option("--server", metavar="NAME", help="Which server [default: the usual one]."),
]
SlotId = Annotated[int, typer.Option("--slot", metavar="N", min=0, help="The server's slot.")]


@app.command()
def show(
    context: typer.Context,
    server: Annotated[
        str | None, typer.Option("--server", metavar="NAME", help="Only this server.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the servers as they are found now: how they fare, what they can do, their slots."""
    told = asyncio.run(_ask(context).show(server))
    if json:
        print_json(told)
        return
    if not told:
        print_text(
            "no inference server: none is configured, and none answers at llama-server's own"
            " address"
        )
    for number, one in enumerate(told):
        if number:
            print_text("")
        _print_server(one)


@app.command()
def probe(context: typer.Context, server: Server = None, json: Json = False) -> None:
    """Find out what a server can do, on a slot that nobody has used since it started.

    A prompt is evaluated there, left in its middle, saved, erased and restored; the slot is empty
    afterwards.
    """
    with progress("probing") as report:
        told = asyncio.run(_ask(context).probe(server, report))
    if json:
        print_json(told)
    else:
        _print_server(told)


@app.command()
def snapshot(
    context: typer.Context,
    session: OwnSession = None,
    slot: SlotId = 0,
    server: Server = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Save a slot's state into a file, from which it can be restored."""
    with progress("saving the slot"):
        told = asyncio.run(_ask(context).snapshot(_keeper(project, session, slot), server))
    if json:
        print_json(told)
        return
    tokens = counted(told["tokens"], "token")
    print_text(f"{told['snapshot_id']} has {tokens} of slot {slot} ({told['elapsed_ms']} ms)")
    if told["file_path"] is None:
        print_text("its file lies where the server writes, out of reach: restore it by its id")
    else:
        print_text(f"{told['file_path']} ({_size(told['size_bytes'])})")
    for removed in told["removed_snapshot_ids"]:
        print_text(f"{removed} had to go")
    _print_notes(told["notes"])


@app.command()
def restore(
    context: typer.Context,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A snapshot's file, its bare name, or its id.")
    ],
    session: OwnSession = None,
    slot: SlotId = 0,
    server: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="NAME", help="Which server [default: that of the snapshot]."
        ),
    ] = None,
    project: Project = Path(),
    json: Json = False,
) -> None:
    """Load a snapshot into a slot, which loses what it held."""
    keeper = _keeper(project, session, slot)
    with progress("restoring the slot"):
        told = asyncio.run(_ask(context).restore(path, keeper, server))
    if json:
        print_json(told)
        return
    saved = told["snapshot"]
    tokens = counted(told["restored_tokens"], "token")
    where = f"slot {slot} of {saved['server']}"
    print_text(f"{where} holds {tokens} of {saved['snapshot_id']} ({told['elapsed_ms']} ms)")
    _print_notes(told["notes"])


@app.command()
def snapshots(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only those of this session.")
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project",
            metavar="ROOT",
            exists=True,
            file_okay=False,
            help="Only those of the project of this folder.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the snapshots that there are, the newest first."""
    told, warnings = asyncio.run(_ask(context).snapshots(session_id=session, folder=project))
    for warning in warnings:
        print_warning(warning, as_json=json)
    if json:
        print_json(told)
    elif told:
        columns = ["snapshot", "server", "slot", "session", "tokens", "size", "saved", "note"]
        print_table(columns, [_snapshot_row(one) for one in told], whole=("snapshot",))
    else:
        print_text("no snapshots")


@app.command()
def delete(
    context: typer.Context,
    snapshot_id: Annotated[str, typer.Argument(metavar="ID")],
    json: Json = False,
) -> None:
    """Forget a snapshot and remove its file."""
    told = asyncio.run(_ask(context).delete(snapshot_id))
    if json:
        print_json(told)
        return
    if told["note"] is None:
        print_text(f"{snapshot_id} is gone")
    else:
        print_text(f"{snapshot_id} is listed no more; {told['note']}")


@app.command()
def count(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Texts; without any, or for -, standard input."),
    ] = None,
    messages: Annotated[
        bool,
        typer.Option(
            "--messages",
            help="The file is a conversation in JSON: count it as the chat template writes it.",
        ),
    ] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Fail rather than estimate.")] = False,
    server: Server = None,
    json: Json = False,
) -> None:
    """Count tokens, as the serving model does; without a server they are estimated."""
    names = files or [PIPE]
    if len(names) > 1 and (messages or PIPE in names):
        raise typer.BadParameter("give one file at a time here", param_hint="FILE")
    texts = [_text(name) for name in names]
    if messages:
        _count_conversation(context, texts[0], server, as_json=json)
        return
    found = asyncio.run(_ask(context).count(texts, server=server, exact=exact))
    total = sum(found.counts)
    told = {
        "counts": [
            {"file": name, "tokens": tokens}
            for name, tokens in zip(names, found.counts, strict=True)
        ],
        "total": total,
        "tokenizers": list(found.tokenizers),
        "exact": found.exact,
        **({"note": found.note} if found.note else {}),
    }
    if json:
        print_json(told)
        return
    if len(names) > 1:
        rows = [[str(tokens), name] for name, tokens in zip(names, found.counts, strict=True)]
        print_table(["tokens", "file"], rows)
    how = "exact" if found.exact else "an estimate" + (f": {found.note}" if found.note else "")
    print_text(f"{counted(total, 'token')} ({', '.join(found.tokenizers)}; {how})")


def _count_conversation(
    context: typer.Context, text: str, server: str | None, *, as_json: bool
) -> None:
    told = asyncio.run(_ask(context).count_conversation(text, server=server))
    if as_json:
        print_json(told)
    else:
        print_text(f"{counted(told['tokens'], 'token')} ({told['tokenizer']}; exact)")


def _ask(context: typer.Context) -> Slots:
    # gRPC and the contracts take half a second to import, and other commands do without.
    from muniment.cli.slots_answers import Slots

    return Slots(context.obj)


def _keeper(project: Path, session: str | None, slot: int) -> Keeper:
    from muniment.cli.slots_answers import Keeper  # Slow to import, as above.

    return Keeper(project, session, slot)


def _text(name: str) -> str:
    with readable(name) as (source, _):
        return utf8_text(source.read(), field="text")


def _print_server(told: dict[str, Any]) -> None:
    usual = ", the usual one" if told["is_usual"] else ""
    print_text(f"server   {told['name']} at {told['url']}{usual}")
    print_text(f"is       {told['condition'].replace('_', ' ')}")
    if "detail" in told:
        print_text(f"         {told['detail']}")
    if "fix" in told:
        print_text(f"to do    {told['fix']}")
    if "model" in told:
        model = told["model"]
        room = f"{counted(model['slots'], 'slot')} of {model['slot_context_tokens']} tokens"
        print_text(f"serves   {model['name']}, {room} (build {model['build']})")
        print_text(f"counts   {model['tokenizer']}")
    print_text(f"cache    {told['cache_coherence']}")
    if told["capabilities"]:
        print_text("")
        print_table(
            ["can", "what", "seen", "to do"], list(map(_capability_row, told["capabilities"]))
        )
    if told.get("slots"):
        print_text("")
        columns = ["slot", "is", "session", "tokens", "room", "holds"]
        print_table(columns, [_slot_row(one) for one in told["slots"]])
    if "slots_failure" in told:
        print_text(f"\nits slots are not known: {told['slots_failure']}")


def _capability_row(told: dict[str, Any]) -> list[str]:
    standing = told["standing"].replace("_", " ")
    return [standing, told["kind"].replace("_", " "), told["detail"], told.get("fix", "")]


def _slot_row(told: dict[str, Any]) -> list[str]:
    content = told["content"]
    holds = ""
    if "tokens" in content:
        of = f" of {content['snapshot_id']}" if "snapshot_id" in content else ""
        holds = f"{content['tokens']} tokens{of} ({content['basis']})"
    tokens = told.get("prompt_tokens")
    return [
        str(told["slot_id"]),
        "busy" if told["is_busy"] else "idle",
        told.get("session_id", ""),
        "" if tokens is None else str(tokens),
        str(told["context_tokens"]),
        holds,
    ]


def _snapshot_row(told: dict[str, Any]) -> list[str]:
    note = told.get("damage", "")
    if told["file_path"] is None:
        note = note or "where the server writes"
    elif not note and told["restore_worth"]:
        worth = told["restore_worth"][-1]
        note = f"last restore: {worth['reused_tokens']} of {worth['prompt_tokens']} reused"
    return [
        told["snapshot_id"],
        told["server"],
        str(told["slot_id"]),
        told["session_id"] or "",
        str(told["tokens"]),
        "" if told["size_bytes"] is None else _size(told["size_bytes"]),
        to_the_second(told["created_at"]),
        note,
    ]


def _size(size_bytes: int) -> str:
    return f"{size_bytes / _MIB:.1f} MiB"


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print_text(f"note: {note}")
