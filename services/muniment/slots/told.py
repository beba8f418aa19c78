"""One slot as /slots tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muniment.slots.answers import count_of

__all__ = ["ToldSlot"]

_NO_TASK = -1
_OF_A_TASK = frozenset({"params", "next_token", "prompt", "n_prompt_tokens"})
"""What is told of a slot together with its newest task."""


@dataclass(frozen=True)
class ToldSlot:
    """What the server says of a slot. What it does not say is None."""

    slot_id: int
    context_tokens: int
    is_busy: bool
    task: int | None
    """Its newest task; None where it had none since the server started."""
    prompt_tokens: int | None
    """Tokens that it holds: the prompt's, and those generated after it."""
    reused_tokens: int | None
    evaluated_tokens: int | None
    generated_tokens: int | None

    is_fresh: bool
    """The server says that nothing was asked of it since the server started. A server that says
    nothing of its use has not said that."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> ToldSlot:
        """From an element of /slots."""
        following = told.get("next_token")
        if isinstance(following, list):
            following = following[0] if following else None
        generated = following.get("n_decoded") if isinstance(following, dict) else None
        is_busy = told.get("is_processing") is True
        prompt_tokens = count_of(told.get("n_prompt_tokens"))
        return cls(
            slot_id=count_of(told.get("id")) or 0,
            context_tokens=count_of(told.get("n_ctx")) or 0,
            is_busy=is_busy,
            task=count_of(told.get("id_task")),
            prompt_tokens=prompt_tokens,
            is_fresh=not is_busy and not prompt_tokens and _had_no_task(told),
            reused_tokens=count_of(told.get("n_prompt_tokens_cache")),
            evaluated_tokens=count_of(told.get("n_prompt_tokens_processed")),
            generated_tokens=count_of(generated),
        )


def _had_no_task(told: Mapping[str, Any]) -> bool:
    """Whether it is told that the slot had no task yet.

    Older builds say so in figures. Newer ones tell nothing of tasks then, and what they tell of
    each slot shows that they are such: a server that leaves tasks out always is none of them.
    """
    if "id_task" in told:
        # One that does not count the slot's tokens could not show whose they are afterwards.
        return "n_prompt_tokens" in told and bool(told["id_task"] == _NO_TASK)
    is_of_newer_build = isinstance(told.get("speculative"), bool) and "is_processing" in told
    return is_of_newer_build and not told.keys() & _OF_A_TASK
