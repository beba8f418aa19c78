"""The `muniment` command line: its commands, and what happens when one fails."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from muniment.cli import (
    backups,
    code,
    config,
    doctor,
    house,
    keys,
    logs,
    maintenance,
    memory,
    metrics,
    records,
    slots,
    transfer,
)
from muniment.cli.output import print_error
from muniment.cli.usage import wrong_usage
from muniment.kit.errors import InternalError, MunimentError, PreconditionError
from muniment.kit.paths import Home

__all__ = ["app", "main", "run"]

_FAILED = 1
_USAGE = 2
_INTERRUPTED = 130

app = typer.Typer(
    name="muniment",
    help="The memory of an inference host, served to coding agents over MCP.",
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    house.up,
    house.down,
    house.ps,
    logs.logs,
    house.restart,
    doctor.doctor,
    metrics.metrics,
    backups.backup,
    backups.restore,
    maintenance.verify_store,
    maintenance.reindex,
    memory.status,
    memory.commit,
    memory.recall,
    memory.show,
    memory.episodes,
    memory.pin,
    memory.unpin,
    memory.pins,
    memory.projects,
    transfer.export,
    transfer.purge,
    code.index,
    code.symbol,
    code.impact,
):
    app.command()(command)
app.command(name="map")(code.map_)
app.command(name="import")(transfer.import_)
app.add_typer(config.app, name="config")
app.add_typer(keys.app, name="key")
app.add_typer(records.app, name="records")
app.add_typer(slots.app, name="slots")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"muniment {version('muniment')}")
        raise typer.Exit


@app.callback()
def _begin(
    context: typer.Context,
    home: Annotated[
        str | None,
        typer.Option(
            "--home",
            metavar="DIR",
            help="The data home [default: MUNIMENT_HOME, else the platform's data folder].",
        ),
    ] = None,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit
    try:
        context.obj = Home.locate(home)
    except FileNotFoundError as error:
        raise PreconditionError(
            "the current folder was deleted, and the home is relative to it",
            reason="CURRENT_FOLDER_GONE",
            fix="change to another one, or give --home as an absolute path",
        ) from error


def run(arguments: Sequence[str]) -> int:
    """Run one command. Returns its exit code: 0, 1 for failure, 2 for wrong usage."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in own
    try:
        code = app(arguments, prog_name="muniment", standalone_mode=False)
        sys.stdout.flush()
    except MunimentError as error:
        print_error(error, as_json=as_json)
        return _FAILED
    except typer.TyperException as error:
        print_error(wrong_usage(error), as_json=as_json)
        return _USAGE
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough; nor may the interpreter flush into the void.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except Exception as error:
        print_error(_defect(error), as_json=as_json)
        return _FAILED
    return code if isinstance(code, int) else 0


def _defect(error: Exception) -> InternalError:
    *_, last = traceback.extract_tb(error.__traceback__)
    return InternalError(
        f"{type(error).__name__}: {error} (at {last.filename}:{last.lineno})",
        reason="INTERNAL",
        fix="this is a defect of muniment: please report the line",
    )


def main() -> NoReturn:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Whatever the locale: stored text is UTF-8, and JSON takes the escapes as they are.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))
