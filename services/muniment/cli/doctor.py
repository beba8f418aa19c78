"""`muniment doctor`: shows the findings, and how to register the bridge with a harness."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import typer

from muniment.cli.harnesses import bridge_command, registrations
from muniment.cli.output import Json, print_json, print_table, print_text, progress
from muniment.kit.paths import Home

__all__ = ["doctor"]


def doctor(context: typer.Context, json: Json = False) -> None:
    """Check the home, its services and its settings; show how to register the bridge.

    The exit code is 1 where there is a problem.
    """
    # The checks need gRPC and the settings, which take a second to import.
    from muniment.cli.checks import examine

    home: Home = context.obj
    with progress("looking around"):
        findings = asyncio.run(examine(home))
    command = bridge_command()
    ready = registrations(home, command) if command else {}
    if json:
        print_json({"findings": [asdict(one) for one in findings], "registrations": ready})
    else:
        rows = [
            [one.level, one.check, f"{one.message}; {one.fix}" if one.fix else one.message]
            for one in findings
        ]
        print_table(["level", "check", "finding"], rows)
        for harness, text in ready.items():
            print_text(f"\n{harness}:\n{text}")
    if any(one.level == "problem" for one in findings):
        raise typer.Exit(1)
