"""Words on servers follow what was seen and measured."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.v1 import slots_pb2
from muniment.workflows.server_words import (
    cache_coherence,
    can,
    condition_in_words,
    content_in_words,
    in_short,
    note_on,
    usual_server,
    word_of,
    worth_in_words,
)

READY = slots_pb2.SERVER_CONDITION_READY
YES, NO, UNKNOWN = (
    slots_pb2.STANDING_YES,
    slots_pb2.STANDING_NO,
    slots_pb2.STANDING_NOT_KNOWN,
)


def a_server(
    *capabilities: slots_pb2.Capability,
    condition: slots_pb2.ServerCondition.ValueType = READY,
    name: str = "any-model-at-all",
) -> slots_pb2.Server:
    server = slots_pb2.Server(name="main", condition=condition, capabilities=capabilities)
    server.model.name = name
    return server


def reuse(
    prefix: slots_pb2.Standing.ValueType, restore: slots_pb2.Standing.ValueType
) -> tuple[slots_pb2.Capability, ...]:
    return (
        slots_pb2.Capability(kind=slots_pb2.CAPABILITY_KIND_PREFIX_REUSE, standing=prefix),
        slots_pb2.Capability(kind=slots_pb2.CAPABILITY_KIND_RESTORE_REUSE, standing=restore),
    )


@pytest.mark.parametrize(
    ("prefix", "restore", "begin"),
    [
        (YES, YES, "can rewind anywhere"),
        (YES, NO, "partly: "),
        (YES, UNKNOWN, "partly known: "),
        (NO, NO, "partly: only appending is cheap"),
        (NO, YES, "partly: only appending is cheap"),
        (UNKNOWN, UNKNOWN, "not known: "),
        (UNKNOWN, YES, "not known: "),
    ],
)
def test_coherence_follows_what_was_measured_and_no_name(
    prefix: slots_pb2.Standing.ValueType, restore: slots_pb2.Standing.ValueType, begin: str
) -> None:
    told = cache_coherence(a_server(*reuse(prefix, restore)))
    assert told.startswith(begin)
    for name in ("gemma3-swa-sliding", "mamba-hybrid-granite", "llama"):
        assert cache_coherence(a_server(*reuse(prefix, restore), name=name)) == told


def test_coherence_is_unavailable_where_nobody_can_be_asked() -> None:
    assert cache_coherence(None).startswith("unavailable: without an inference server")
    for condition in (
        slots_pb2.SERVER_CONDITION_UNREACHABLE,
        slots_pb2.SERVER_CONDITION_LOADING,
        slots_pb2.SERVER_CONDITION_KEY_REFUSED,
        slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD,
    ):
        told = cache_coherence(a_server(*reuse(YES, YES), condition=condition))
        assert told.startswith("unavailable: the inference server cannot be asked now")


def test_a_server_that_was_never_probed_is_not_known() -> None:
    assert cache_coherence(a_server()).startswith("not known")


def test_capabilities_in_short() -> None:
    kinds = slots_pb2.CapabilityKind
    fix = "start llama-server with --slot-save-path FOLDER"
    told = in_short(
        [
            slots_pb2.Capability(kind=kinds.CAPABILITY_KIND_SLOTS, standing=YES),
            slots_pb2.Capability(kind=kinds.CAPABILITY_KIND_TOKENIZE, standing=YES),
            slots_pb2.Capability(kind=kinds.CAPABILITY_KIND_SAVE, standing=NO, fix=fix),
            slots_pb2.Capability(kind=kinds.CAPABILITY_KIND_RESTORE, standing=NO, fix=fix),
            *reuse(UNKNOWN, UNKNOWN),
        ]
    )
    assert told == (
        "slots+tokenize; not save, restore (start llama-server with --slot-save-path FOLDER);"
        " not known: prefix_reuse, restore_reuse"
    )
    assert in_short([]) == "none"


def test_can_is_said_only_where_it_is_known() -> None:
    server = a_server(*reuse(YES, UNKNOWN))
    assert can(server, slots_pb2.CAPABILITY_KIND_PREFIX_REUSE)
    assert not can(server, slots_pb2.CAPABILITY_KIND_RESTORE_REUSE)
    assert not can(server, slots_pb2.CAPABILITY_KIND_SAVE)


def test_every_condition_has_words() -> None:
    told = {
        condition_in_words(a_server(condition=condition))
        for condition in slots_pb2.ServerCondition.values()
    }
    assert len(told) == len(slots_pb2.ServerCondition.values())


def test_a_note_has_cause_and_cure() -> None:
    server = a_server(condition=slots_pb2.SERVER_CONDITION_LOADING)
    assert note_on(server) == "main loads its model"
    server.detail, server.fix = "the server is loading", "wait"
    assert note_on(server) == "the server is loading; wait"


def test_the_usual_server_is_found() -> None:
    first, second = a_server(), a_server()
    assert usual_server([]) is None
    assert usual_server([first, second]) is None
    second.is_usual = True
    assert usual_server([first, second]) is second


def test_words_of_closed_sets() -> None:
    assert word_of(slots_pb2.Standing, UNKNOWN) == "not_known"
    assert word_of(slots_pb2.SnapshotPlace, slots_pb2.SNAPSHOT_PLACE_FOLDER) == "folder"


def test_a_worth_in_words() -> None:
    worth = slots_pb2.RestoreWorth(
        prompt_tokens=386,
        reused_tokens=383,
        source=slots_pb2.WORTH_SOURCE_PROBE,
        measured_at=Timestamp(seconds=1_750_000_000),
    )
    assert worth_in_words(worth) == (
        "383 of the next prompt's 386 tokens were not evaluated again (probe, 2025-06-15)"
    )


def test_a_content_in_words() -> None:
    content = slots_pb2.SlotContent(basis=slots_pb2.CONTENT_BASIS_NOT_KNOWN)
    assert content_in_words(content) == "content not known"
    content.basis, content.tokens = slots_pb2.CONTENT_BASIS_PREDICTED, 12
    assert content_in_words(content) == "predicted: 12 tokens"
    content.basis, content.snapshot_id = slots_pb2.CONTENT_BASIS_CONFIRMED, "snap_1"
    assert content_in_words(content) == "confirmed: 12 tokens of snap_1"
