"""Commands that stand together under one word."""

from __future__ import annotations

import typer

__all__ = ["command_group"]


def command_group(summary: str) -> typer.Typer:
    """A group of commands, which prints its help where none of them is named."""
    group = typer.Typer(help=summary, invoke_without_command=True, rich_markup_mode=None)

    @group.callback()
    def begin(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())
            raise typer.Exit

    return group
