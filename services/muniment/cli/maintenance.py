"""Verifying the stores, and making their indexes anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import typer

from muniment.cli.output import Json, print_json, print_table, print_text, progress
from muniment.kit.paths import Home

if TYPE_CHECKING:
    from muniment.kit.context import CallContext
    from muniment.v1 import maintenance_pb2, records_pb2
    from muniment.workflows.clients import Clients

__all__ = ["reindex", "verify_store"]

_COLUMNS = ["what", "table", "which", "found"]


def verify_store(context: typer.Context, json: Json = False) -> None:
    """Prove that the stores are what was written to them, and say what is not.

    Every row is held against its check, the feed against its chain, the tables against the feed
    and each other, the index against the tables. The exit code is 1 where something is wrong.
    """
    home: Home = context.obj
    told, others = asyncio.run(_verify(home))
    if json:
        first, *records = told
        print_json(first | {"records": records} | {one["service"]: one for one in others})
    else:
        for one in (*told, *others):
            _print_findings(one)
    if any(one["findings"] for one in (*told, *others)):
        raise typer.Exit(1)


async def _verify(home: Home) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was found in the memory's store, then in each tenant's records; and in other stores."""
    # gRPC and the contracts take half a second to import, and other commands do without.
    from muniment.cli.answers import service_clients
    from muniment.cli.health import KEEPERS
    from muniment.kit.context import CallContext
    from muniment.workflows.clients import CODE, MEMORY, SLOTS
    from muniment.workflows.records import every_store, unopened_records

    told = []
    async with service_clients(home, *KEEPERS) as clients:
        for context in await every_store(clients, "cli"):
            tenant = context.tenant_id
            what = f"the records of {tenant}" if tenant else "the store"
            found = await _verify_one(clients, context, MEMORY, what)
            told.append(found | ({"tenant": tenant} if tenant else {}))
        told += [_told_unopened(one) for one in await unopened_records(clients, "cli")]
        own, others = CallContext(caller="cli"), []
        for service in (SLOTS, CODE):
            found = await _verify_one(clients, own, service, f"the store of {service}")
            others.append(found | {"service": service})
    return told, others


async def _verify_one(
    clients: Clients, context: CallContext, service: str, what: str
) -> dict[str, Any]:
    from muniment.workflows import maintenance

    findings: list[maintenance_pb2.Finding] = []
    with progress(f"verifying {what}") as report:
        result = await maintenance.verify_store(
            clients, context, report, findings.append, service=service
        )
    return {
        "findings": [_as_told(one) for one in findings],
        "not_listed": result.findings - len(findings),
        "rows": result.rows,
        "changes": result.changes,
        "position": result.position,
        "incarnation": result.incarnation,
    }


def _told_unopened(one: records_pb2.UnopenedRecords) -> dict[str, Any]:
    found = {
        "kind": "store_unreadable",
        "table": "",
        "key": "",
        "found": f"the records in {one.path} cannot be opened: {one.trouble}",
        "mend": "bring back a backup with `muniment restore`",
    }
    return {"findings": [found], "not_listed": 0, "rows": 0, "changes": 0, "folder": one.path}


def _as_told(finding: maintenance_pb2.Finding) -> dict[str, str]:
    from muniment.v1 import maintenance_pb2

    kind = maintenance_pb2.FindingKind.Name(finding.kind).removeprefix("FINDING_KIND_").lower()
    return {
        "kind": kind,
        "table": finding.table,
        "key": finding.key,
        "found": finding.found,
        "mend": finding.mend,
    }


def _print_findings(one: dict[str, Any]) -> None:
    looked = f"{one['rows']} rows and {one['changes']} changes were looked at"
    where = f" in the records of {one['tenant']}" if "tenant" in one else ""
    where = f" in {one['folder']}" if "folder" in one else where
    where = f" in the store of {one['service']}" if "service" in one else where
    told, left = one["findings"], one["not_listed"]
    if not told:
        print_text(f"all is as it was written{where}; {looked}")
        return
    rows = [[found["kind"], found["table"], found["key"] or "-", found["found"]] for found in told]
    print_table(_COLUMNS, rows)
    print_text(f"\n{len(told) + left} findings{where}; {looked}")
    if left:
        print_text(f"{left} findings more of the same kinds are not listed")
    print_text("\nto mend it:")
    ways: dict[str, set[str]] = {}
    for found in told:
        ways.setdefault(found["mend"], set()).add(found["table"] or "store")
    for way, tables in ways.items():
        print_text(f"  {', '.join(sorted(tables))}: {way}")


def reindex(context: typer.Context, json: Json = False) -> None:
    """Make the search indexes anew from the stores.

    Meanwhile recall and search find what is indexed already, the newest first.
    """
    from muniment.cli.answers import memory_clients
    from muniment.workflows import maintenance
    from muniment.workflows.records import every_store

    home: Home = context.obj

    async def rebuild() -> int:
        documents = 0
        async with memory_clients(home) as clients:
            for one in await every_store(clients, "cli"):
                with progress("making the index anew") as report:
                    result = await maintenance.rebuild_index(clients, one, report)
                documents += result.documents
        return documents

    documents = asyncio.run(rebuild())
    if json:
        print_json({"documents": documents})
    else:
        print_text(f"{documents} documents can be found")
