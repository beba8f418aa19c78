"""The host's settings as this process sees them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from muniment.cli.groups import command_group
from muniment.cli.output import Json, print_json, print_table
from muniment.kit.paths import Home

__all__ = ["app"]

app = command_group("The host's settings.")


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
