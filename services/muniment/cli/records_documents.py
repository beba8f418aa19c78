"""Commands on documents: states, one value a key, and references, texts with metadata."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from muniment.cli.files import PIPE, unusable
from muniment.cli.output import Json, print_json, print_table, print_text, print_warning
from muniment.cli.records_common import (
    AsText,
    Body,
    Tenant,
    body_json,
    compact,
    print_record,
    records_of,
    second,
    standard_input,
    utf8_text,
)

__all__ = [
    "delete_reference",
    "delete_state",
    "put_reference",
    "reference",
    "references",
    "set_state",
    "state",
    "states",
]

Key = Annotated[str, typer.Argument(metavar="KEY", help="Its key.")]


def state(context: typer.Context, key: Key, tenant: Tenant = None, json: Json = False) -> None:
    """Print a state document."""
    told = asyncio.run(records_of(context, tenant).state(key))
    if json:
        print_json(told)
    else:
        print_record(told)


def set_state(
    context: typer.Context,
    key: Key,
    body: Body = None,
    text: AsText = False,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Keep a state, in place of the one before."""
    records = records_of(context, tenant)
    from muniment.v1 import records_pb2

    request = records_pb2.SetStateRequest(key=key, body_json=body_json(body, as_text=text))
    response = asyncio.run(records.ask(lambda to: to.records.SetState, request))
    if json:
        print_json({"key": key, "created": response.created})
    else:
        print_text(f"state {key} {'set' if response.created else 'updated'}")


def states(context: typer.Context, tenant: Tenant = None, json: Json = False) -> None:
    """List the states, by key."""
    page = asyncio.run(records_of(context, tenant).states())
    for warning in page.warnings:
        print_warning(warning, as_json=json)
    if json:
        print_json(page.told)
    elif page.told:
        print_table(
            ["key", "updated"], [[one["key"], second(one["updated_at"])] for one in page.told]
        )
    else:
        print_text("no state documents")


def delete_state(
    context: typer.Context, key: Key, tenant: Tenant = None, json: Json = False
) -> None:
    """Delete a state document.

    `muniment records as-of` still reads what it was.
    """
    records = records_of(context, tenant)
    from muniment.cli.records_answers import STATES_LISTED
    from muniment.v1 import records_pb2

    request = records_pb2.DeleteStateRequest(key=key)
    asyncio.run(records.ask(lambda to: to.records.DeleteState, request, where=STATES_LISTED))
    if json:
        print_json({"key": key})
    else:
        print_text(f"state {key} is deleted")


def reference(context: typer.Context, key: Key, tenant: Tenant = None, json: Json = False) -> None:
    """Print a reference document."""
    told = asyncio.run(records_of(context, tenant).reference(key))
    if json:
        print_json(told)
    else:
        print_record(told)


def put_reference(
    context: typer.Context,
    key: Key,
    file: Annotated[
        str, typer.Option("--file", metavar="F", help="The text; `-` is standard input.")
    ] = PIPE,
    metadata: Annotated[
        str, typer.Option("--metadata", metavar="JSON", help="An object of what is to be said.")
    ] = "{}",
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Keep a reference, in place of the one before."""
    records = records_of(context, tenant)
    from muniment.v1 import records_pb2

    request = records_pb2.PutReferenceRequest(key=key, body=_text(file), metadata_json=metadata)
    response = asyncio.run(records.ask(lambda to: to.records.PutReference, request))
    if json:
        print_json({"key": key, "created": response.created})
    else:
        print_text(f"reference {key} {'put' if response.created else 'updated'}")


def _text(file: str) -> str:
    if file == PIPE:
        return standard_input()
    try:
        return utf8_text(Path(file).read_bytes())
    except OSError as error:
        raise unusable(file, error) from error


def references(context: typer.Context, tenant: Tenant = None, json: Json = False) -> None:
    """List the references, without their texts."""
    page = asyncio.run(records_of(context, tenant).references())
    for warning in page.warnings:
        print_warning(warning, as_json=json)
    if json:
        print_json(page.told)
    elif page.told:
        rows = [
            [one["key"], second(one["updated_at"]), compact(one["metadata"])] for one in page.told
        ]
        print_table(["key", "updated", "metadata"], rows)
    else:
        print_text("no reference documents")


def delete_reference(
    context: typer.Context, key: Key, tenant: Tenant = None, json: Json = False
) -> None:
    """Delete a reference document.

    `muniment records as-of` still reads what it was.
    """
    records = records_of(context, tenant)
    from muniment.v1 import records_pb2

    request = records_pb2.DeleteReferenceRequest(key=key)
    asyncio.run(records.ask(lambda to: to.records.DeleteReference, request))
    if json:
        print_json({"key": key})
    else:
        print_text(f"reference {key} is deleted")
