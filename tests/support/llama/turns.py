"""A conversation that grows turn by turn: each prompt begins with the last one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.llama.process import LlamaServer

__all__ = ["Conversation", "Turn", "lines"]

_FIRST_LINES = 60


@dataclass(frozen=True)
class Turn:
    """What the server says of one prompt."""

    prompt_tokens: int
    reused_tokens: int
    prompt_ms: float

    @property
    def evaluated_tokens(self) -> int:
        """Those that it had to work out."""
        return self.prompt_tokens - self.reused_tokens


def lines(first: int, count: int) -> str:
    """So many lines of text, each different."""
    return "".join(
        f"line {number}: the fox jumps over {number * 7 % 1000} lazy dogs\n"
        for number in range(first, first + count)
    )


class Conversation:
    """Turns in one slot of a server."""

    def __init__(self, server: LlamaServer, slot: int = 0, first_lines: int = _FIRST_LINES) -> None:
        """Begin one; nothing is sent yet."""
        self._server = server
        self._slot = slot
        self._lines = first_lines
        self.prompt = lines(0, first_lines)

    def send(self) -> Turn:
        """Send all that was said so far."""
        return _turn(self._server.complete(self.prompt, self._slot))

    def go_on(self, *, slot: int | None = None) -> Turn:
        """Say one thing more and send all of it, from now on in that slot."""
        self._slot = self._slot if slot is None else slot
        self.prompt += lines(self._lines, 1)
        self._lines += 1
        return self.send()


def _turn(answer: Any) -> Turn:
    timings = answer["timings"]
    return Turn(
        prompt_tokens=timings["cache_n"] + timings["prompt_n"],
        reused_tokens=timings["cache_n"],
        prompt_ms=timings["prompt_ms"],
    )
