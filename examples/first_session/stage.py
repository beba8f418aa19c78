"""How the session looks to the person who watches it.

In a terminal with colour and tables; plain text, without a frame, everywhere else.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from statistics import median

from rich import box
from rich.cells import cell_len
from rich.console import Console, OverflowMethod, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from examples.first_session.answers import Dependent, Hit
from examples.first_session.checks import TOP_HITS, Check, rank_of

__all__ = ["Batch", "Stage"]

_WIDEST = 110
_ANCHOR_LINES = 4
_EXCERPT_LEAD = 30


@dataclass
class Batch:
    """Turns that were committed one after the other, told in one line."""

    roles: Counter[str] = field(default_factory=Counter)
    tools: list[str] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    tokens: int = 0
    milliseconds: list[float] = field(default_factory=list)

    def add(self, role: str, tool: str | None, seq: int, tokens: int, milliseconds: float) -> None:
        """Take in one acknowledged turn."""
        self.roles[role] += 1
        if tool is not None and tool not in self.tools:
            self.tools.append(tool)
        self.seqs.append(seq)
        self.tokens += tokens
        self.milliseconds.append(milliseconds)


class Stage:
    """Prints the session."""

    def __init__(self, *, plain: bool) -> None:
        """Open the stage on standard output.

        Args:
            plain: No colour and no frames, whatever standard output is.
        """
        self.plain = plain or not sys.stdout.isatty() or "NO_COLOR" in os.environ
        if self.plain:
            self._console = Console(
                highlight=False, force_terminal=False, color_system=None, width=_WIDEST
            )
        else:
            width = min(Console().width, _WIDEST)
            self._console = Console(highlight=False, width=width)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Show in a terminal that something takes a moment."""
        return nullcontext() if self.plain else self._console.status(Text(text))

    def say(self, text: str = "", style: str = "") -> None:
        """Print one paragraph."""
        self._print(Text(text, style=style))

    def fail(self, text: str) -> None:
        """Print what went wrong."""
        self.say()
        self._print(self._mark(False).append(text))

    def heading(self, text: str) -> None:
        """Begin a part."""
        self.say()
        if self.plain:
            self.say(f"== {text} ==")
        else:
            self._print(Rule(Text(text, style="bold"), align="left", style="dim"))

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print names and values in two columns."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in rows:
            grid.add_row(Text(f"  {name}"), Text(value))
        self._print(grid)

    def narrate(self, text: str) -> None:
        """Print what happens in the story."""
        self.say()
        self.say(text, style="italic")

    def committed(self, batch: Batch) -> None:
        """Print a run of acknowledged turns as one line."""
        if not batch.seqs:
            return
        tools = f" ({', '.join(batch.tools)})" if batch.tools else ""
        who = ", ".join(
            f"{count} {role}{tools if role == 'tool' else ''}"
            for role, count in batch.roles.items()
        )
        first, last = batch.seqs[0], batch.seqs[-1]
        which = f"turn {first}" if first == last else f"turns {first} to {last}"
        line = self._mark(True).append(which, style="bold")
        line.append(f", {batch.tokens} tokens, {median(batch.milliseconds):.0f} ms each: ", "dim")
        self._line(line.append(who))

    def pinned(self, kind: str, content: str, token_cost: int) -> None:
        """Print a rule that was pinned."""
        line = self._mark(True).append("pinned", style="bold magenta")
        line.append(f" as {kind}, {token_cost} tokens in every prompt:", style="dim")
        self._line(line)
        self._print(Padding(Text(content, style="magenta"), (0, 0, 0, 6)))

    def killed(self, service: str, pid: int) -> None:
        """Print that a service was ended."""
        line = Text().append("  ! ", style="bold red")
        line.append(f"SIGKILL to {service}, pid {pid}. No pause: the next call goes out at once.")
        self._line(line)

    def met_the_kill(self, what: str, milliseconds: float) -> None:
        """Print how the first call after a kill went."""
        line = self._mark(True).append(what, style="bold").append(" was answered all the same, ")
        self._line(line.append(f"after {milliseconds:.0f} ms: it waited for the restart."))

    def recalled(
        self, query: str, expect: str, why: str, hits: Sequence[Hit], milliseconds: float
    ) -> None:
        """Print a question, what came back and why it did."""
        question = Text().append("  ? ", style="bold cyan").append(query, style="cyan")
        self._print(question.append(f"  {milliseconds:.0f} ms", style="dim"))
        rank = rank_of(expect, hits)
        if rank is None:
            self._line(self._mark(False).append(f"nothing with {expect!r} in the first hits:"))
        for number, hit in enumerate(hits[:TOP_HITS], 1):
            if rank in (None, number) or hit.superseded_by is not None:
                self._hit(number, hit, expect)
        self._print(Padding(Text(why, style="dim italic"), (0, 0, 0, 4)))

    def _hit(self, number: int, hit: Hit, expect: str) -> None:
        who = hit.tool_name or hit.role
        source = hit.kind if who is None else f"{who}, turn {hit.seq}"
        line = Text(f"    {number}  ").append(source, style="bold")
        if hit.superseded_by is not None:
            line.append(", superseded", style="red").append("; now: ", style="dim")
            line.append(_excerpt(hit.current_value or "nothing given", expect))
        else:
            line.append(": ", style="dim").append(_excerpt(hit.text, expect))
        line.highlight_words([expect], style="bold green")
        self._line(line)
        reasons = "; ".join(hit.reasons) or "no reason given"
        self._line(Text(f"       because {reasons}", style="dim"))

    def reached(
        self, symbol: str, why: str, found: Sequence[Dependent], milliseconds: float
    ) -> None:
        """Print what a change of a symbol would reach."""
        question = (
            Text().append("  ? ", style="bold cyan").append("What would change with ", "cyan")
        )
        question.append(symbol, style="bold cyan").append("?", style="cyan")
        self._print(question.append(f"  {milliseconds:.0f} ms", style="dim"))
        for one in found:
            line = Text("    ").append(one.name, style="bold").append(f" {one.via} it, ", "dim")
            line.append(f"{one.file}:{one.line}")
            self._line(line.append(", a test", style="green") if one.is_test else line)
        self._print(Padding(Text(why, style="dim italic"), (0, 0, 0, 4)))

    def anchors(self, uri: str, text: str) -> None:
        """Print the beginning of the Anchor Set."""
        lines = [line for line in text.splitlines() if line.strip()]
        self._line(self._mark(True).append("read ").append(uri, style="bold"))
        for line in lines[:_ANCHOR_LINES]:
            self._line(Text(f"      {line}", style="magenta"))
        if len(lines) > _ANCHOR_LINES:
            self._line(Text(f"      and {len(lines) - _ANCHOR_LINES} lines more", style="dim"))

    def timings(self, rows: Sequence[tuple[str, Sequence[float]]]) -> None:
        """Print how long calls took, as median and worst, in milliseconds."""
        table = self._table("Calls", _WIDEST)
        for name in ("number", "median", "worst"):
            table.add_column(name, justify="right")
        for what, values in rows:
            if values:
                figures = (str(len(values)), f"{median(values):.0f} ms", f"{max(values):.0f} ms")
                table.add_row(Text(what), *(Text(figure) for figure in figures))
        self._print(table)

    def verdict(self, checks: Sequence[Check]) -> None:
        """Print every check and how it went."""
        widest_detail = max(cell_len(check.detail) for check in checks)
        table = self._table("Check", max(40, self._console.width - widest_detail - 17))
        table.add_column("Held")
        table.add_column("What was seen", style="dim", overflow="fold")
        for check in checks:
            word = Text("yes", "green") if check.holds else Text("NO", "bold red")
            table.add_row(Text(check.claim), word, Text(check.detail))
        self._print(table)

    def _table(self, name: str, width: int) -> Table:
        table = Table(box=None if self.plain else box.ROUNDED, border_style="dim", pad_edge=True)
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=width)
        return table

    def _mark(self, good: bool) -> Text:
        if good:
            return Text().append("  + " if self.plain else "  ✓ ", style="green")
        return Text().append("  - " if self.plain else "  ✗ ", style="bold red")

    def _line(self, text: Text) -> None:
        self._print(text, no_wrap=True)

    def _print(self, what: RenderableType, *, no_wrap: bool = False) -> None:
        overflow: OverflowMethod | None = "ellipsis" if no_wrap else None
        if not self.plain:
            self._console.print(what, no_wrap=no_wrap, overflow=overflow)
            return
        with self._console.capture() as captured:
            self._console.print(what, no_wrap=no_wrap, overflow=overflow)
        # Tables fill their lines with spaces, which nobody wants in a file.
        text = "\n".join(line.rstrip() for line in captured.get().split("\n"))
        try:
            print(text, end="", flush=True)
        except BrokenPipeError:
            # The reader has seen enough. The session goes on to its tidy end, unseen.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _excerpt(text: str, around: str) -> str:
    """The part of a text around a word, on one line."""
    flat = " ".join(text.split())
    position = flat.find(around)
    if position <= _EXCERPT_LEAD:
        return flat
    start = position - _EXCERPT_LEAD
    start = max(start, flat.find(" ", start, position) + 1)
    return f"… {flat[start:]}"
