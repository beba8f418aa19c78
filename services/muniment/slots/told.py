"""One slot as /slots tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muniment.slots.answers import count_of

__all__ = ["ToldSlot"]


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

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> ToldSlot:
        """From an element of /slots."""
        following = told.get("next_token")
        if isinstance(following, list):
            following = following[0] if following else None
        generated = following.get("n_decoded") if isinstance(following, dict) else None
        return cls(
            slot_id=count_of(told.get("id")) or 0,
            context_tokens=count_of(told.get("n_ctx")) or 0,
            is_busy=told.get("is_processing") is True,
            task=count_of(told.get("id_task")),
            prompt_tokens=count_of(told.get("n_prompt_tokens")),
            reused_tokens=count_of(told.get("n_prompt_tokens_cache")),
            evaluated_tokens=count_of(told.get("n_prompt_tokens_processed")),
            generated_tokens=count_of(generated),
        )

    @property
    def is_fresh(self) -> bool:
        """Nothing was asked of it since the server started."""
        return self.task is None and not self.is_busy and not self.prompt_tokens
