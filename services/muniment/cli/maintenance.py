"""Verifying the store, and making its index anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from muniment.cli.output import Json, print_json, print_table, print_text, progress
from muniment.kit.paths import Home

if TYPE_CHECKING:
    from muniment.v1 import maintenance_pb2

__all__ = ["reindex", "verify_store"]

_COLUMNS = ["what", "table", "which", "found"]


def verify_store(context: typer.Context, json: Json = False) -> None:
    """Prove that the store is what was written to it, and say what is not.

    Every row is held against its check, the feed against its chain, the tables against the feed
    and each other, the index against the tables. The exit code is 1 where something is wrong.
    """
    # gRPC and the contracts take half a second to import, and other commands do without.
    from muniment.cli.answers import memory_clients
    from muniment.kit.context import CallContext
    from muniment.workflows import maintenance

    home: Home = context.obj
    findings: list[maintenance_pb2.Finding] = []

    async def verify() -> maintenance_pb2.VerifyResult:
        async with memory_clients(home) as clients:
            with progress("verifying the store") as report:
                return await maintenance.verify_store(
                    clients, CallContext(caller="cli"), report, findings.append
                )

    result = asyncio.run(verify())
    told = [_as_told(one) for one in findings]
    if json:
        print_json(
            {
                "findings": told,
                "not_listed": result.findings - len(findings),
                "rows": result.rows,
                "changes": result.changes,
                "position": result.position,
                "incarnation": result.incarnation,
            }
        )
    else:
        _print_findings(told, result)
    if result.findings:
        raise typer.Exit(1)


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


def _print_findings(told: list[dict[str, str]], result: maintenance_pb2.VerifyResult) -> None:
    looked = f"{result.rows} rows and {result.changes} changes were looked at"
    if not result.findings:
        print_text(f"all is as it was written; {looked}")
        return
    rows = [[one["kind"], one["table"], one["key"] or "-", one["found"]] for one in told]
    print_table(_COLUMNS, rows)
    left = result.findings - len(told)
    print_text(f"\n{result.findings} findings; {looked}")
    if left:
        print_text(f"{left} findings more of the same kinds are not listed")
    print_text("\nto mend it:")
    ways: dict[str, set[str]] = {}
    for one in told:
        ways.setdefault(one["mend"], set()).add(one["table"] or "store")
    for way, tables in ways.items():
        print_text(f"  {', '.join(sorted(tables))}: {way}")


def reindex(context: typer.Context, json: Json = False) -> None:
    """Make the search index anew from the store.

    Meanwhile recall finds what is indexed already, the newest first.
    """
    from muniment.cli.answers import memory_clients
    from muniment.kit.context import CallContext
    from muniment.workflows import maintenance

    home: Home = context.obj

    async def rebuild() -> int:
        async with memory_clients(home) as clients:
            with progress("making the index anew") as report:
                result = await maintenance.rebuild_index(clients, CallContext(caller="cli"), report)
        return result.documents

    documents = asyncio.run(rebuild())
    if json:
        print_json({"documents": documents})
    else:
        print_text(f"{documents} documents can be found")
