"""Commands on what happened: the journal, the feed of changes, and a record as it was."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import typer

from muniment.cli.output import Json, print_json, print_table, print_text, print_warning
from muniment.cli.records_common import (
    Body,
    Category,
    Tenant,
    beginning,
    body_json,
    print_record,
    records_of,
    second,
)

__all__ = ["as_of", "changes", "event", "journal"]

Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="The entity's name, in its category.")
]


def event(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What happened, in a word.")],
    body: Body = None,
    category: Annotated[
        str | None,
        typer.Option("--category", metavar="C", help="The category of what it is about."),
    ] = None,
    name: Name = None,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Append an event to the journal.

    Its body is a JSON object.
    """
    records = records_of(context, tenant)
    from muniment.v1 import records_pb2

    request = records_pb2.RecordEventRequest(
        kind=kind, body_json=body_json(body, as_text=False), category=category, name=name
    )
    response = asyncio.run(records.ask(lambda to: to.records.RecordEvent, request))
    if json:
        print_json({"event_id": response.event_id, "kind": kind})
    else:
        print_text(f"event {response.event_id} recorded")


def journal(
    context: typer.Context,
    category: Category = None,
    name: Name = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Only events of this kind.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="How many, the newest first. 0: all.")
    ] = 50,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """List events, the newest first."""
    page = asyncio.run(records_of(context, tenant).journal(category, name, kind, limit))
    for warning in page.warnings:
        print_warning(warning, as_json=json)
    if json:
        print_json(page.told)
        return
    if not page.told:
        print_text("no events")
        return
    rows = [[one["id"], second(one["ts"]), *_event_cells(one)] for one in page.told]
    print_table(["event", "time", "kind", "about", "body"], rows, whole=("event",))
    if page.more is None:
        print_text("there are more; --limit 0 lists all")


def _event_cells(event: dict[str, Any]) -> list[str]:
    """Kind, what it is about, and the body; of one from elsewhere all that it has."""
    acted, about = event.get("acted"), event.get("extra")
    ours = isinstance(acted, dict) and set(acted) == {"kind", "body"}
    if ours and isinstance(acted, dict):
        kind, body = str(acted["kind"]), acted["body"]
    else:
        values = ("evaluated", "acted", "forward")
        kind, body = "", {part: event[part] for part in values if part in event}
    named = about if isinstance(about, dict) else {}
    place = "/".join(str(named[part]) for part in ("category", "name") if part in named)
    return [kind, place, beginning(body)]


def changes(
    context: typer.Context,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="Only what is behind this position.")
    ] = 0,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="How many, the oldest first. 0: all.")
    ] = 100,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """List what changed, the oldest first.

    With --json the values before are told, too.
    """
    told, position = asyncio.run(records_of(context, tenant).changes(after, limit))
    if json:
        print_json({"changes": told, "position": position})
        return
    if not told:
        print_text(f"nothing changed behind {after}")
        return
    rows = [
        [
            str(one["position"]),
            second(one["at"]),
            one["what"],
            one["kind"],
            "/".join(one[part] for part in ("category", "key") if part in one) or "(purged)",
        ]
        for one in told
    ]
    print_table(["position", "time", "what", "kind", "record"], rows)
    print_text(f"--after {position} goes on from here")


def as_of(
    context: typer.Context,
    kind: Annotated[
        Literal["entity", "state", "reference", "journal", "archive"],
        typer.Argument(metavar="KIND", help="entity, state, reference, journal or archive."),
    ],
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its name, key or id.")],
    position: Annotated[
        int,
        typer.Option(
            "--position", metavar="N", min=0, help="As `muniment records changes` tells them."
        ),
    ],
    category: Annotated[
        str | None, typer.Option("--category", metavar="C", help="Of an entity: its category.")
    ] = None,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Print a record as it was at a position."""
    if (kind == "entity") != (category is not None):
        told = "give the entity's category" if kind == "entity" else "only entities have one"
        raise typer.BadParameter(told, param_hint="--category")
    records = records_of(context, tenant)
    from muniment.cli.records_answers import KINDS
    from muniment.v1 import records_pb2

    name = records_pb2.RecordName(kind=KINDS[kind], category=category or "", key=key)
    found = asyncio.run(records.record_at(name, position))
    if json:
        print_json(found)
    elif found is None:
        print_text(f"there was none at position {position}")
    else:
        print_record(found)
