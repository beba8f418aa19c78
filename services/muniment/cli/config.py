"""The host's settings as this process sees them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from muniment.cli.output import Json, print_json, print_table
from muniment.kit.paths import Home

__all__ = ["app"]

app = typer.Typer(help="The host's settings.", invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def _config(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


@app.command()
def show(
    context: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="Say where each came from.")] = False,
    json: Json = False,
) -> None:
    """Print every setting; services that run may have read others (`muniment doctor` compares)."""
    from muniment.kit.settings import explain  # Costs every other command half a second.

    home: Home = context.obj
    settings = explain(home)
    if json:
        print_json([asdict(one) for one in settings])
        return
    columns = ["setting", "value", *(["origin"] if origin else []), "meaning"]
    rows = [
        [one.name, one.value, *([one.origin] if origin else []), one.description]
        for one in settings
    ]
    print_table(columns, rows)
