"""What is known of inference servers and their slots, in words.

They follow what was seen and measured, and never a model's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from muniment.v1 import slots_pb2

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper

__all__ = [
    "cache_coherence",
    "can",
    "condition_in_words",
    "content_in_words",
    "in_short",
    "note_on",
    "usual_server",
    "word_of",
    "worth_in_words",
]

_NO_SERVER = (
    "unavailable: without an inference server the cache cannot be seen, so pin more aggressively"
)
_NOT_NOW = "unavailable: the inference server cannot be asked now, so pin more aggressively"
_ANYWHERE = (
    "can rewind anywhere: a prompt that shares a prefix with the slot's evaluates only what comes"
    " after it, after a restore too"
)
_NOT_AFTER_RESTORE = (
    "partly: a shared prefix is not evaluated again while the slot holds it, but is after a restore"
)
_RESTORE_NOT_MEASURED = (
    "partly known: a shared prefix is not evaluated again while the slot holds it; what a restore"
    " brings was not measured yet"
)
_APPENDING_ONLY = (
    "partly: only appending is cheap; a prompt that shares no more than a prefix with the slot's is"
    " evaluated from its beginning, so pin more aggressively"
)
_NOT_MEASURED = (
    "not known: nothing was measured on this server yet; `muniment slots probe` does that"
)

_CONDITIONS = {
    slots_pb2.SERVER_CONDITION_READY: "is ready",
    slots_pb2.SERVER_CONDITION_LOADING: "loads its model",
    slots_pb2.SERVER_CONDITION_SLEEPING: "sleeps until the next request",
    slots_pb2.SERVER_CONDITION_UNREACHABLE: "cannot be reached",
    slots_pb2.SERVER_CONDITION_KEY_REFUSED: "wants another key",
    slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD: "is not understood",
}

_PREFIX = slots_pb2.CAPABILITY_KIND_PREFIX_REUSE
_RESTORE = slots_pb2.CAPABILITY_KIND_RESTORE_REUSE


Value = TypeVar("Value", bound=int)


def word_of(enum: _EnumTypeWrapper[Value], value: Value) -> str:
    """The value's name without the set's: `ready` for SERVER_CONDITION_READY."""
    zero = enum.DESCRIPTOR.values_by_number[0].name
    return enum.Name(value).removeprefix(zero.removesuffix("UNSPECIFIED")).lower()


def usual_server(servers: Sequence[slots_pb2.Server]) -> slots_pb2.Server | None:
    """The home's usual one, where there is any."""
    return next((one for one in servers if one.is_usual), None)


def condition_in_words(server: slots_pb2.Server) -> str:
    """How the server was found, as what follows its name."""
    return _CONDITIONS.get(server.condition, "is in a condition that is not known")


def note_on(server: slots_pb2.Server) -> str:
    """The same, with the cause and what to do where something is amiss."""
    text = server.detail or f"{server.name} {condition_in_words(server)}"
    return f"{text}; {server.fix}" if server.fix else text


def can(server: slots_pb2.Server, kind: slots_pb2.CapabilityKind.ValueType) -> bool:
    """Whether the server is known to do it."""
    return _standing(server, kind) == slots_pb2.STANDING_YES


def in_short(capabilities: Sequence[slots_pb2.Capability]) -> str:
    """What a server can do, what it cannot and how it could, and what is not known."""
    names: dict[slots_pb2.Standing.ValueType, list[str]] = {}
    ways: dict[str, None] = {}
    for one in capabilities:
        names.setdefault(one.standing, []).append(word_of(slots_pb2.CapabilityKind, one.kind))
        if one.standing == slots_pb2.STANDING_NO and one.HasField("fix"):
            ways[one.fix] = None
    text = "+".join(names.get(slots_pb2.STANDING_YES, ["none"]))
    if missing := names.get(slots_pb2.STANDING_NO):
        told = f" ({'; '.join(ways)})" if ways else ""
        text += f"; not {', '.join(missing)}{told}"
    if unknown := names.get(slots_pb2.STANDING_NOT_KNOWN):
        text += f"; not known: {', '.join(unknown)}"
    return text


def cache_coherence(server: slots_pb2.Server | None) -> str:
    """Whether a prompt that is cut back finds its beginning evaluated, as it was measured."""
    if server is None:
        return _NO_SERVER
    if server.condition not in (
        slots_pb2.SERVER_CONDITION_READY,
        slots_pb2.SERVER_CONDITION_SLEEPING,
    ):
        return _NOT_NOW
    prefix, restore = _standing(server, _PREFIX), _standing(server, _RESTORE)
    if prefix == slots_pb2.STANDING_NO:
        return _APPENDING_ONLY
    if prefix != slots_pb2.STANDING_YES:
        return _NOT_MEASURED
    if restore == slots_pb2.STANDING_YES:
        return _ANYWHERE
    return _NOT_AFTER_RESTORE if restore == slots_pb2.STANDING_NO else _RESTORE_NOT_MEASURED


def worth_in_words(worth: slots_pb2.RestoreWorth) -> str:
    """What a restore was worth, with where that was seen."""
    source = word_of(slots_pb2.WorthSource, worth.source).replace("_", " ")
    day = worth.measured_at.ToJsonString()[:10]
    return (
        f"{worth.reused_tokens} of the next prompt's {worth.prompt_tokens} tokens were not"
        f" evaluated again ({source}, {day})"
    )


def content_in_words(content: slots_pb2.SlotContent) -> str:
    """What a slot holds, and how that is known."""
    if content.basis == slots_pb2.CONTENT_BASIS_PREDICTED:
        basis = "predicted"
    elif content.basis == slots_pb2.CONTENT_BASIS_CONFIRMED:
        basis = "confirmed"
    else:
        return "content not known"
    snapshot = f" of {content.snapshot_id}" if content.HasField("snapshot_id") else ""
    return f"{basis}: {content.tokens} tokens{snapshot}"


def _standing(
    server: slots_pb2.Server, kind: slots_pb2.CapabilityKind.ValueType
) -> slots_pb2.Standing.ValueType:
    found = (one.standing for one in server.capabilities if one.kind == kind)
    return next(found, slots_pb2.STANDING_NOT_KNOWN)
