"""Commands on entities: what is kept under a category and a name, and what was forgotten."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from muniment.cli.output import (
    Json,
    counted,
    print_json,
    print_table,
    print_text,
    print_warning,
)
from muniment.cli.records_common import (
    AsText,
    Body,
    Category,
    Tenant,
    beginning,
    body_json,
    compact,
    confirm,
    print_record,
    records_of,
    second,
)

__all__ = ["archive", "forget", "list_", "purge", "recall", "remember", "restore"]

CategoryArgument = Annotated[str, typer.Argument(metavar="CATEGORY", help="What kind of thing.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Which one.")]
ArchiveId = Annotated[
    str, typer.Argument(metavar="ID", help="As `muniment records archive` lists it.")
]


def remember(
    context: typer.Context,
    category: CategoryArgument,
    name: NameArgument,
    body: Body = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="S", help="Its status; else it stays.")
    ] = None,
    text: AsText = False,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Keep an entity, in place of the one before."""
    records = records_of(context, tenant)
    from muniment.v1 import records_pb2

    request = records_pb2.RememberRequest(
        category=category, name=name, body_json=body_json(body, as_text=text), status=status
    )
    response = asyncio.run(records.ask(lambda to: to.records.Remember, request))
    if json:
        told = {"category": category, "name": name, "id": response.id}
        print_json(told | {"created": response.created})
    else:
        print_text(f"{category}/{name} {'remembered' if response.created else 'updated'}")


def recall(
    context: typer.Context,
    category: CategoryArgument,
    name: NameArgument,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Print an entity."""
    told = asyncio.run(records_of(context, tenant).recall(category, name))
    if json:
        print_json(told)
    else:
        print_record(told)


def list_(
    context: typer.Context,
    category: Category = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="How many, the newest first. 0: all.")
    ] = 50,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """List entities, the newest first."""
    records = records_of(context, tenant)
    page = asyncio.run(records.entities(category, limit))
    for warning in page.warnings:
        print_warning(warning, as_json=json)
    if json:
        print_json(page.told)
        return
    if not page.told:
        print_text(f"no entities of tenant {records.tenant_id}")
        return
    rows = [
        [
            one["category"],
            one["name"],
            one["status"] or "",
            second(one["updated_at"]),
            beginning(one["body"]),
        ]
        for one in page.told
    ]
    print_table(["category", "name", "status", "updated", "body"], rows)
    if page.more:
        print_text(f"{page.more} more; --limit 0 lists all")


def forget(
    context: typer.Context,
    category: CategoryArgument,
    name: NameArgument,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="R", help="Why, for people.")
    ] = None,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Move an entity to the archive.

    Neither lists nor search find it there.
    """
    records = records_of(context, tenant)
    from muniment.cli.records_answers import ENTITIES_LISTED
    from muniment.v1 import records_pb2

    request = records_pb2.ForgetRequest(category=category, name=name, reason=reason)
    response = asyncio.run(
        records.ask(lambda to: to.records.Forget, request, where=ENTITIES_LISTED)
    )
    if json:
        print_json({"category": category, "name": name, "archive_id": response.archive_id})
        return
    print_text(f"{category}/{name} is in the archive as {response.archive_id}")


def archive(
    context: typer.Context,
    category: Category = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="How many, the newest first. 0: all.")
    ] = 50,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """List what was forgotten, the newest first."""
    page = asyncio.run(records_of(context, tenant).archive(category, limit))
    for warning in page.warnings:
        print_warning(warning, as_json=json)
    if json:
        print_json(page.told)
        return
    if not page.told:
        print_text("nothing is in the archive")
        return
    rows = [
        [
            one["id"],
            one["entity"]["category"],
            one["entity"]["name"],
            second(one["archived_at"]),
            one["reason"] or "",
        ]
        for one in page.told
    ]
    print_table(["id", "category", "name", "forgotten", "reason"], rows, whole=("id",))
    if page.more is None:
        print_text("there are more; --limit 0 lists all")


def restore(
    context: typer.Context,
    archive_id: ArchiveId,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Bring a forgotten entity back, with its id and times."""
    records = records_of(context, tenant)
    from muniment.v1 import records_pb2

    request = records_pb2.RestoreArchivedRequest(archive_id=archive_id)
    back = asyncio.run(records.ask(lambda to: to.records.RestoreArchived, request))
    if json:
        print_json({"id": back.id, "category": back.category, "name": back.name})
    else:
        print_text(f"{back.category}/{back.name} is back")


def purge(
    context: typer.Context,
    archive_id: ArchiveId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Delete a forgotten entity for good.

    No file of the store has a value of it then. Backups and exports are not touched.
    """
    records = records_of(context, tenant)
    from muniment.kit.channels import MAINTENANCE_SECONDS
    from muniment.v1 import records_pb2

    confirm(lambda: _what_goes(asyncio.run(records.archived(archive_id))), yes=yes)
    request = records_pb2.PurgeArchivedRequest(archive_id=archive_id)
    gone = asyncio.run(
        records.ask(lambda to: to.records.PurgeArchived, request, MAINTENANCE_SECONDS)
    )
    if json:
        print_json({"id": archive_id, "category": gone.category, "name": gone.name})
    else:
        print_text(f"{gone.category}/{gone.name} is gone for good")


def _what_goes(archived: dict[str, Any]) -> str:
    entity = archived["entity"]
    size = counted(len(compact(entity["body"])), "character")
    at = second(archived["archived_at"])
    return (
        f"{entity['category']}/{entity['name']}, forgotten {at}, would be gone for good"
        f" with a body of {size}"
    )
