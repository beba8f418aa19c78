"""Search over records with its verdict, and what there is of them."""

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
    printable,
)
from muniment.cli.records_common import Tenant, beginning, records_of, second
from muniment.kit.paths import Home

__all__ = ["search", "stats", "tenants"]

_TIERS = ("entity", "state", "reference", "journal")
_COUNTS = ("entities", "states", "references", "events", "archived")


def search(
    context: typer.Context,
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="Words, or a question.")],
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=50, help="How many, the best first.")
    ] = 10,
    tiers: Annotated[
        str | None,
        typer.Option(
            "--tiers",
            metavar="T,T",
            help="Only these, ungated: entity, state, reference, journal.",
        ),
    ] = None,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Find records, or say why there are none.

    The verdict says what would help.
    """
    wanted = _tiers(tiers)
    words = " ".join(query)
    told, tampered = asyncio.run(records_of(context, tenant).search(words, limit, wanted))
    if tampered:
        fails = "records fail their check and are not shown; run `muniment verify-store`"
        print_warning(f"{tampered} {fails}", as_json=json)
    if json:
        print_json(told)
        return
    verdict = told["verdict"]
    print_text(f"verdict   {verdict['code']}: {verdict['explain']}")
    print_text(f"recovery  {verdict['recovery']}")
    for form in verdict["forms"]:
        print_text(f"note      {form['asked']} was found as {form['found']} ({form['how']})")
    for note in verdict["notes"]:
        print_text(f"note      {note}")
    for hit in told["results"]:
        print_text(f"\n{_headline(hit)}\n  {printable(hit['snippet'] or beginning(hit['body']))}")


def _tiers(given: str | None) -> list[str]:
    names = [part.strip() for part in (given or "").split(",") if part.strip()]
    unknown = [name for name in names if name not in _TIERS]
    if unknown or (given is not None and not names):
        raise typer.BadParameter(f"choose from {', '.join(_TIERS)}", param_hint="--tiers")
    return names


def _headline(hit: dict[str, Any]) -> str:
    place = f"{hit['category']}/{hit['key']}" if "category" in hit else hit["key"]
    matched = f"  (has {', '.join(hit['matched'])})" if hit["matched"] else ""
    return printable(f"{hit['tier']} {place}  {second(hit['ts'])}{matched}")


def stats(context: typer.Context, tenant: Tenant = None, json: Json = False) -> None:
    """Count records, and show the state of the store."""
    told = asyncio.run(records_of(context, tenant).stats())
    if json:
        print_json(told)
        return
    cap = "no cap" if told["cap_bytes"] is None else f"cap {told['cap_bytes']} bytes"
    store, dense = told["store"], told["dense"]
    lines = {
        "tenant": told["tenant"],
        **{name: str(told[name]) for name in _COUNTS},
        "used": f"{told['used_bytes']} bytes of names and values; {cap}",
        "generation": str(told["generation"]),
        "position": str(store["position"]),
        "store": f"{store['path']} ({store['size_bytes']} bytes)",
        "dense": _dense(dense),
    }
    for name, text in lines.items():
        print_text(f"{name:<10}  {printable(text)}")
    for doubt in told.get("doubts", ()):
        print_text(f"{'doubt':<10}  {printable(doubt)}; run `muniment verify-store`")


def _dense(dense: dict[str, Any]) -> str:
    if dense["model"] is None:
        return "off"
    told = f"{dense['model']}: {counted(dense['vectors'], 'vector')}, {dense['waiting']} waiting"
    return f"{told}; {dense['trouble']}" if "trouble" in dense else told


def tenants(context: typer.Context, json: Json = False) -> None:
    """List the tenants that have records."""
    from muniment.cli.records_answers import list_tenants  # Slow to import, as gRPC is.

    home: Home = context.obj
    told = asyncio.run(list_tenants(home))
    if json:
        print_json(told)
    elif told:
        rows = [[one["tenant"], str(one["generation"]), one["path"]] for one in told]
        print_table(["tenant", "generation", "folder"], rows)
    else:
        print_text("no tenants")
