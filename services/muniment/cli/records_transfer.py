"""Records on their way out and in: files of lines, and another program's store."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from muniment.cli.files import PIPE, readable, writable
from muniment.cli.output import Json, print_json, print_text, print_warning, progress
from muniment.cli.records_common import Tenant, confirm, records_of
from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home

if TYPE_CHECKING:
    from muniment.cli.records_answers import Records
    from muniment.kit.progress import Report
    from muniment.v1 import records_pb2
    from muniment.workflows.peer_import import PeerRecords
    from muniment.workflows.record_files import RecordFile, Written

__all__ = ["export", "import_", "import_from"]

_SHOWN = 20
"""Of a long list; --json has all."""


def export(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to write; `-` is standard output.")
    ] = PIPE,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Write all records, as lines of JSON.

    What was written is told on stderr where the lines go to standard output.
    """
    records = records_of(context, tenant)
    with writable(file) as target:
        written = asyncio.run(_export(records, target))
    if json:
        with redirect_stdout(sys.stderr if file == PIPE else sys.stdout):
            print_json({"file": file} | _written(written))
    elif file != PIPE:
        print_text(
            f"{file} has {written.closing.records} records of tenant {written.header.tenant}"
        )
    if written.closing.left_out:
        raise PreconditionError(
            f"{written.closing.left_out} records fail their check, and are not in the file",
            reason="EXPORT_INCOMPLETE",
            fix="`muniment verify-store` says which, and how to mend the store",
        )


async def _export(records: Records, target: BinaryIO) -> Written:
    from importlib.metadata import version

    from muniment.cli.answers import memory_clients
    from muniment.kit.clock import SystemClock, timestamp
    from muniment.workflows.record_files import write_file

    async with memory_clients(records.home) as clients:
        with progress("exporting") as report:
            return await write_file(
                clients,
                records.context,
                target.write,
                report,
                exporter=f"muniment {version('muniment')}",
                created_at=timestamp(SystemClock()),
            )


def _written(written: Written) -> dict[str, Any]:
    return {
        "tenant": written.header.tenant,
        "incarnation": written.header.incarnation,
        "position": written.header.position,
        "records": written.closing.records,
        "counts": dict(written.counts),
        "left_out": written.closing.left_out,
        "size_bytes": written.size_bytes,
        "sha256": written.closing.sha256.hex(),
    }


def import_(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `export` wrote; `-` is standard input.")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="Let these be all that the tenant has.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Take in what `export` wrote.

    The whole file is checked before anything is written. A record that is here already and
    differs stays as it is, and is listed.
    """
    records = records_of(context, tenant)
    from muniment.workflows.record_files import check_file

    with _rereadable(records.home, file) as (source, size_bytes):
        with progress("importing") as report:
            checked = check_file(source, report, size_bytes)
        if replace:
            confirm(lambda: _what_is_replaced(records, checked), yes=yes)
        name = "standard input" if file == PIPE else Path(file).name
        response = asyncio.run(_import(records, checked, name, replace=replace))
    told = {"file": file, "records": checked.closing.records} | _taken(response)
    if replace:
        told |= {"generation": response.generation, "carried_over": response.carried_over}
    if json:
        print_json(told)
        return
    _print_taken(told)
    if replace:
        print_text(f"they are generation {response.generation}, and replace what was there")
        if response.carried_over:
            print_text(f"{response.carried_over} that were written meanwhile were carried over")


def _what_is_replaced(records: Records, checked: RecordFile) -> str:
    there = asyncio.run(records.stats())
    kinds = ("entities", "states", "references", "events", "archived")
    count = sum(there[kind] for kind in kinds)
    return (
        f"the {count} records of tenant {records.tenant_id} would be replaced by the"
        f" {checked.closing.records} of the file"
    )


async def _import(
    records: Records, checked: RecordFile, source: str, *, replace: bool
) -> records_pb2.ImportRecordsResponse:
    from muniment.cli.answers import memory_clients
    from muniment.workflows.records import import_records

    async with memory_clients(records.home) as clients:
        with progress("importing") as report:
            return await import_records(
                clients,
                records.context,
                checked,
                _of(report, checked.closing.records),
                replace=replace,
                source=source,
            )


def _of(report: Report, total: int) -> Report:
    """Reports of what knows only how much is done."""
    return lambda step, done, _: report(step, done, total)


@contextmanager
def _rereadable(home: Home, file: str) -> Iterator[tuple[BinaryIO, int]]:
    """What can be read twice, and how long it is."""
    with readable(file) as (source, size_bytes):
        if source.seekable():
            yield source, size_bytes
            return
        from muniment.cli.keys import open_shelf
        from muniment.kit.files import make_file, private_folder

        shelf = open_shelf(home)
        key = shelf.load() or shelf.load_next()
        if key is not None and key.sealed:
            raise PreconditionError(
                "it has to be read twice, and a copy would stand in the clear beside a sealed home",
                reason="FILE_NOT_REREADABLE",
                field="file",
                fix="name a file instead of a pipe",
            )
        with tempfile.TemporaryDirectory(
            prefix="import-", dir=private_folder(home.runtime)
        ) as folder:
            spool = Path(folder) / "lines"
            with make_file(spool) as target:
                while block := source.read(1024 * 1024):
                    target.write(block)
            with spool.open("rb") as spooled:
                yield spooled, spool.stat().st_size


def import_from(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="DB", envvar="SIBYL_MEMORY_DB", help="The SQLite file of the other program."
        ),
    ],
    from_tenant: Annotated[
        str | None,
        typer.Option(
            "--from-tenant", metavar="NAME", help="Whose of its records [default: the only one's]."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what there is, and take nothing.")
    ] = False,
    tenant: Tenant = None,
    json: Json = False,
) -> None:
    """Take over another program's store.

    It is only read. Ids, times and status stay. What was taken is read back and compared;
    rows that are no records are listed and left out.
    """
    records = records_of(context, tenant)
    from muniment.kit.files import private_folder
    from muniment.workflows.peer_import import PeerRecords, choose_tenant
    from muniment.workflows.peer_store import open_peer_store

    with open_peer_store(file, private_folder(records.home.runtime)) as store:
        chosen = choose_tenant(store, from_tenant)
        with progress("reading") as report:
            found = PeerRecords.look_through(store, chosen, report)
        told: dict[str, Any] = {
            "file": str(file),
            "from_tenant": chosen,
            "tenant": records.tenant_id,
            "rows": store.tenants()[chosen],
            "records": dict(found.counts),
            "left_out": [vars(one) for one in found.left_out],
        }
        if not json:
            _print_found(told)
        if not dry_run:
            told |= asyncio.run(_take_over(records, found, file.name))
    if json:
        print_json(told)
    elif not dry_run:
        _print_taken(told)
        print_text(f"{told['verified']} were read back and are as in the file")


async def _take_over(records: Records, found: PeerRecords, source: str) -> dict[str, Any]:
    from muniment.cli.answers import memory_clients
    from muniment.workflows.peer_import import import_peer

    async with memory_clients(records.home) as clients:
        with progress("importing") as report:
            response, verified = await import_peer(
                clients,
                records.context,
                found,
                _of(report, found.counts.total()),
                source=source,
            )
    return _taken(response) | {"verified": verified}


def _print_found(told: dict[str, Any]) -> None:
    counts = ", ".join(f"{table} {count}" for table, count in told["rows"].items())
    print_text(f"{told['file']} has of tenant {told['from_tenant']}: {counts}")
    left_out = told["left_out"]
    for one in left_out[:_SHOWN]:
        where = f"{one['table']}, row {one['rowid']} ({one['name']})"
        print_warning(f"{where} is left out: {one['why']}", as_json=False)
    if len(left_out) > _SHOWN:
        print_warning(f"{len(left_out)} rows are left out; --json lists all", as_json=False)


def _taken(response: records_pb2.ImportRecordsResponse) -> dict[str, Any]:
    from muniment.workflows.record_values import place_of

    return {
        "taken": dict(sorted(response.taken.items())),
        "same": response.same,
        "kept": [place_of(one) for one in response.kept],
        "kept_total": response.kept_total,
    }


def _print_taken(told: dict[str, Any]) -> None:
    taken = sum(told["taken"].values())
    print_text(f"{taken} taken, {told['same']} here already, {told['kept_total']} kept as they are")
    for place in told["kept"][:_SHOWN]:
        print_text(f"kept: {place} differs from the file's")
    if told["kept_total"] > _SHOWN:
        print_text(f"and {told['kept_total'] - _SHOWN} more")
