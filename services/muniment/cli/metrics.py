"""What the services counted, for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

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
    told = asyncio.run(_read(home))
    if json:
        print_json([{"service": name, "text": text} for name, text in told.items()])
    else:
        print(_merged(told.values()), end="")


def _merged(texts: Iterable[str]) -> str:
    """One text with what all of them have: the format takes a metric's samples in one place."""
    families: dict[str, list[str]] = {}
    for text in texts:
        samples: list[str] = []
        for line in text.splitlines(keepends=True):
            if line.startswith("# HELP "):
                samples = families.setdefault(line, [])
            elif not line.startswith("# TYPE ") or line not in samples:
                samples.append(line)
    return "".join(help_ + "".join(samples) for help_, samples in families.items())


async def _read(home: Home) -> dict[str, str]:
    # gRPC takes a third of a second to import, and most commands do without.
    from muniment.cli.health import KEEPERS
    from muniment.workflows.clients import open_clients
    from muniment.workflows.status import service_metrics

    async with open_clients(home) as clients:
        return {name: await service_metrics(clients, name) for name in KEEPERS}
