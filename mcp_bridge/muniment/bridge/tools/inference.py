"""What the status tells of the inference server and its slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muniment.bridge.tools.schemas import array_of, integer, string
from muniment.v1 import slots_pb2
from muniment.workflows.server_words import (
    cache_coherence,
    can,
    content_in_words,
    in_short,
    note_on,
    worth_in_words,
)
from muniment.workflows.status import ServersStatus

__all__ = ["INFERENCE", "could_not_tell", "inference_content", "serving_tokenizer"]

INFERENCE: Mapping[str, Any] = {
    "backend": string(),
    "backend_note": string(),
    "capabilities": string(),
    "cache_coherence": string(),
    "restore_worth": string(),
    "context_window": integer(),
    "slots": array_of(string()),
}
"""The properties that `inference_content` gives."""

_SLOTS_TOLD = 16
"""More are counted: a status is read by a model."""

_NO_SERVER = (
    "no inference server: none is configured, and none answers at llama-server's own address"
)


def inference_content(status: ServersStatus, session_id: str) -> dict[str, Any]:
    """What is known of the home's usual server. What could not be read is left out."""
    if status.servers is None:
        return {
            "backend_note": f"could not tell: {status.failure}",
            "cache_coherence": "not known: the slots service does not tell",
        }
    usual = status.usual
    if usual is None:
        return {
            "backend": "none",
            "backend_note": _NO_SERVER,
            "capabilities": "none",
            "cache_coherence": cache_coherence(None),
        }
    content: dict[str, Any] = {
        "backend": f"{usual.name} at {usual.url}",
        "backend_note": _note(usual, status.servers),
    }
    if usual.capabilities:
        content["capabilities"] = in_short(usual.capabilities)
    content["cache_coherence"] = cache_coherence(usual)
    if usual.restore_worth:
        content["restore_worth"] = worth_in_words(usual.restore_worth[-1])
    if usual.HasField("model") and usual.model.slot_context_tokens:
        content["context_window"] = usual.model.slot_context_tokens
    if status.slots is not None:
        content["slots"] = list(_slots(status.slots, session_id))
    return content


def could_not_tell(status: ServersStatus) -> Iterator[str]:
    """The fields that are not there because they could not be read."""
    if status.servers is None:
        yield from ("backend", "capabilities", "context_window", "slots")
        return
    usual = status.usual
    if usual is None:
        return
    if not usual.capabilities:
        yield "capabilities"
    if not usual.model.slot_context_tokens:
        yield "context_window"
    if status.slots is None and not _keeps_slots_to_itself(usual):
        yield "slots"


def serving_tokenizer(status: ServersStatus) -> str | None:
    """The serving model's own tokenizer, where it can be asked for counts."""
    usual = status.usual
    # One that sleeps is not woken for counts.
    if usual is None or usual.condition != slots_pb2.SERVER_CONDITION_READY:
        return None
    exact = can(usual, slots_pb2.CAPABILITY_KIND_TOKENIZE)
    return (usual.model.tokenizer or None) if exact else None


def _note(usual: slots_pb2.Server, servers: Sequence[slots_pb2.Server]) -> str:
    note = note_on(usual)
    if usual.model.name:
        note += f"; serves {usual.model.name}"
    others = len(servers) - 1
    return f"{note}; {others} more configured, see `muniment slots show`" if others else note


def _slots(slots: Sequence[slots_pb2.Slot], session_id: str) -> Iterator[str]:
    for one in slots[:_SLOTS_TOLD]:
        yield f"{one.slot_id}: {'; '.join(_slot(one, session_id))}"
    if left := slots[_SLOTS_TOLD:]:
        busy = sum(one.is_busy for one in left)
        yield f"{len(left)} more, {busy} of them busy"


def _slot(slot: slots_pb2.Slot, session_id: str) -> Iterator[str]:
    who = ""
    if slot.HasField("session_id"):
        # The other session may be one of another project.
        who = " for this session" if slot.session_id == session_id else " for another session"
    yield f"{'busy' if slot.is_busy else 'idle'}{who}"
    if slot.HasField("prompt_tokens"):
        yield f"{slot.prompt_tokens} of {slot.context_tokens} tokens"
    yield content_in_words(slot.content)


def _keeps_slots_to_itself(server: slots_pb2.Server) -> bool:
    """Whether it is known not to list its slots: what it cannot do is told already."""
    return any(
        one.kind == slots_pb2.CAPABILITY_KIND_SLOTS and one.standing == slots_pb2.STANDING_NO
        for one in server.capabilities
    )
