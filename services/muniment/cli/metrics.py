"""What the services counted, for Prometheus."""

from __future__ import annotations

import asyncio

import typer

from muniment.cli.output import Json, print_json
from muniment.cli.supervisor_client import not_running
from muniment.kit.paths import Home
from muniment.kit.supervise import supervisor_lives

__all__ = ["metrics"]


def metrics(context: typer.Context, json: Json = False) -> None:
    """Print the metrics of every service that keeps some, in the Prometheus text format."""
    home: Home = context.obj
    if not supervisor_lives(home):
        raise not_running()
    text = asyncio.run(_read(home))
    if json:
        print_json([{"service": "memory", "text": text}])
    else:
        print(text, end="")


async def _read(home: Home) -> str:
    # gRPC takes a third of a second to import, and most commands do without.
    from muniment.workflows.clients import open_clients
    from muniment.workflows.status import memory_metrics

    async with open_clients(home) as clients:
        return await memory_metrics(clients)
