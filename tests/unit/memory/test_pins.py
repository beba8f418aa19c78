"""Pins are in force where they were pinned, once each, until they are taken away."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.counting import TOKENIZER, estimate_tokens
from muniment.kit.errors import InvalidArgumentError, NotFoundError
from muniment.memory.limits import PIN_LIMIT_BYTES
from muniment.v1 import memory_pb2
from tests.support.memory import Agent, Memory

pytestmark = pytest.mark.asyncio(loop_scope="session")

SAFETY = memory_pb2.PIN_KIND_SAFETY_CONSTRAINT
CORRECTION = memory_pb2.PIN_KIND_USER_CORRECTION
CONTRACT = memory_pb2.PIN_KIND_TASK_CONTRACT


async def in_force(agent: Agent, session_id: str | None = None) -> list[str]:
    fields = {} if session_id is None else {"session_id": session_id}
    return [pin.content for pin in (await agent.pins(**fields)).pins]


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        (SAFETY, "SAFETY CONSTRAINT"),
        (CORRECTION, "USER CORRECTION"),
        (CONTRACT, "TASK CONTRACT"),
        (memory_pb2.PIN_KIND_UNSPECIFIED, "TASK CONTRACT"),
    ],
)
async def test_a_pin_says_all_of_itself(
    agent: Agent, kind: memory_pb2.PinKind.ValueType, label: str
) -> None:
    answer = await agent.pin("Never push to main.", kind=kind)
    pin = answer.pin
    assert not answer.already_pinned
    assert not answer.HasField("previous_kind")
    assert pin.pin_id.startswith("pin_")
    assert pin.kind == (kind or CONTRACT)
    assert pin.content == "Never push to main."
    assert pin.rendered == f"[{label}] Never push to main."
    assert pin.project_id == agent.project_id
    assert not pin.HasField("session_id")
    assert pin.token_cost.count_tokens == estimate_tokens(pin.rendered)
    assert (pin.token_cost.tokenizer, pin.token_cost.exact) == (TOKENIZER, False)
    assert list((await agent.pins()).pins) == [pin]


async def test_the_same_text_is_one_pin(agent: Agent) -> None:
    first = await agent.pin("Use tabs.")
    again = await agent.pin("  Use tabs.\n")
    assert again.already_pinned
    assert again.pin == first.pin
    assert not again.HasField("previous_kind")
    assert await in_force(agent) == ["Use tabs."]


async def test_other_words_are_another_pin(agent: Agent) -> None:
    texts = ["Use tabs.", "use tabs.", "Use  tabs.", "Use tabs", "Use tabs\u0301."]
    for text in texts:
        assert not (await agent.pin(text)).already_pinned
    assert await in_force(agent) == texts


async def test_pinning_again_changes_the_kind(agent: Agent) -> None:
    first = (await agent.pin("Use tabs.")).pin
    answer = await agent.pin("Use tabs.", kind=SAFETY)
    assert answer.already_pinned
    assert answer.previous_kind == CONTRACT
    assert answer.pin.kind == SAFETY
    assert answer.pin.rendered == "[SAFETY CONSTRAINT] Use tabs."
    assert answer.pin.token_cost.count_tokens == estimate_tokens(answer.pin.rendered)
    assert (answer.pin.pin_id, answer.pin.created_at) == (first.pin_id, first.created_at)
    assert list((await agent.pins()).pins) == [answer.pin]
    assert await agent.found("tabs") == ["Use tabs."]


@settings(max_examples=30, deadline=None)
@given(text=st.text(min_size=1, max_size=40))
async def test_words_are_kept_but_for_white_space_at_the_ends(memory: Memory, text: str) -> None:
    agent = memory.agent()
    if not text.strip():
        with pytest.raises(InvalidArgumentError):
            await agent.pin(text)
        return
    assert (await agent.pin(text)).pin.content == text.strip()
    assert (await agent.pin(f"\t{text} \n")).already_pinned
    assert await in_force(agent) == [text.strip()]


@pytest.mark.parametrize(
    ("content", "fields", "reason", "field"),
    [
        ("", {}, "CONTENT_EMPTY", "content"),
        (" \n\u3000", {}, "CONTENT_EMPTY", "content"),
        ("x" * (PIN_LIMIT_BYTES + 1), {}, "CONTENT_TOO_LONG", "content"),
        ("é" * (PIN_LIMIT_BYTES // 2 + 1), {}, "CONTENT_TOO_LONG", "content"),
        ("x", {"kind": 9}, "PIN_KIND_UNKNOWN", "kind"),
        ("x", {"session_id": "a\nb"}, "NAME_UNPRINTABLE", "session_id"),
        ("x", {"session_id": "x" * 201}, "NAME_TOO_LONG", "session_id"),
    ],
)
async def test_what_cannot_be_a_pin_is_refused(
    agent: Agent, content: str, fields: dict[str, Any], reason: str, field: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        await agent.pin(content, **fields)
    assert (refused.value.reason, refused.value.field) == (reason, field)
    assert await in_force(agent) == []


async def test_the_longest_pin_fits(agent: Agent) -> None:
    longest = "é" * (PIN_LIMIT_BYTES // 2)
    assert (await agent.pin(f" {longest} ")).pin.content == longest
    assert await in_force(agent) == [longest]


async def test_pins_hold_in_their_scope(memory: Memory) -> None:
    agent = memory.agent()
    await agent.pin("everywhere")
    await agent.pin("in one", session_id="one")
    await agent.pin("in two", session_id="two")
    await agent.pin("also in two", session_id="two")
    await memory.agent().pin("elsewhere")
    for session_id, pins, others in (
        (None, ["everywhere"], 3),
        ("one", ["everywhere", "in one"], 2),
        ("two", ["everywhere", "in two", "also in two"], 1),
        ("three", ["everywhere"], 3),
        ("", ["everywhere"], 3),
    ):
        assert await in_force(agent, session_id) == pins
        fields = {} if session_id is None else {"session_id": session_id}
        assert (await agent.pins(**fields)).other_sessions_pins == others


async def test_one_text_in_two_scopes_is_two_pins(agent: Agent) -> None:
    wide = (await agent.pin("Use tabs.")).pin
    narrow = (await agent.pin("Use tabs.", session_id="s-1")).pin
    assert narrow.session_id == "s-1"
    assert wide.pin_id != narrow.pin_id
    assert await in_force(agent, "s-1") == ["Use tabs."] * 2
    await agent.unpin(wide.pin_id)
    assert await in_force(agent) == []
    assert await in_force(agent, "s-1") == ["Use tabs."]


async def test_an_empty_session_is_the_project(agent: Agent) -> None:
    pin = (await agent.pin("Use tabs.", session_id="")).pin
    assert not pin.HasField("session_id")
    assert (await agent.pin("Use tabs.")).already_pinned


async def test_they_are_ordered_by_kind_and_age(agent: Agent) -> None:
    for content, kind in (
        ("c1", CONTRACT), ("k1", CORRECTION), ("s1", SAFETY), ("c2", CONTRACT), ("s2", SAFETY)
    ):  # fmt: skip
        await agent.pin(content, kind=kind)
    await agent.pin("k2", kind=CORRECTION, session_id="s-1")
    assert await in_force(agent, "s-1") == ["s1", "s2", "k1", "k2", "c1", "c2"]
    # A changed kind moves it; its age stays.
    await agent.pin("c1", kind=SAFETY)
    assert await in_force(agent) == ["c1", "s1", "s2", "k1", "c2"]


async def test_a_pin_that_is_taken_away_is_nowhere(agent: Agent) -> None:
    pin = (await agent.pin("Use tabs, always.")).pin
    kept = (await agent.pin("Use spaces, never.")).pin
    assert await agent.unpin(pin.pin_id) == pin
    assert list((await agent.pins()).pins) == [kept]
    assert await agent.found("use tabs") == ["Use spaces, never."]
    assert (await agent.stats()).project_pins == 1


async def test_it_cannot_be_taken_away_twice(agent: Agent) -> None:
    pin = (await agent.pin("Use tabs.")).pin
    await agent.unpin(pin.pin_id, key="unpin")
    with pytest.raises(NotFoundError) as refused:
        await agent.unpin(pin.pin_id)
    assert (refused.value.reason, refused.value.field) == ("PIN_UNKNOWN", "pin_id")
    # But the same call again is answered as before.
    assert await agent.unpin(pin.pin_id, key="unpin") == pin


async def test_another_projects_pin_is_unknown(memory: Memory) -> None:
    agent = memory.agent()
    pin = (await agent.pin("Use tabs.")).pin
    with pytest.raises(NotFoundError):
        await memory.agent().unpin(pin.pin_id)
    assert await in_force(agent) == ["Use tabs."]


@pytest.mark.parametrize("pin_id", ["", "pin_unknown", "ep_1"])
async def test_what_is_no_pin_is_unknown(agent: Agent, pin_id: str) -> None:
    with pytest.raises(NotFoundError) as refused:
        await agent.unpin(pin_id)
    assert "muniment pins" in (refused.value.fix or "")


async def test_any_session_of_the_project_may_take_it_away(agent: Agent) -> None:
    pin = (await agent.pin("Use tabs.", session_id="s-1")).pin
    await agent.with_context(session_id="s-2").unpin(pin.pin_id)
    assert await in_force(agent, "s-1") == []


async def test_it_can_be_pinned_anew(agent: Agent) -> None:
    first = (await agent.pin("Use tabs.", kind=SAFETY)).pin
    await agent.unpin(first.pin_id)
    answer = await agent.pin("Use tabs.")
    assert not answer.already_pinned
    assert answer.pin.pin_id != first.pin_id
    assert answer.pin.kind == CONTRACT
    assert list((await agent.pins()).pins) == [answer.pin]
    assert await agent.found("tabs") == ["Use tabs."]


async def test_a_repeated_call_pins_once_and_says_so(agent: Agent) -> None:
    answers = [await agent.pin("Use tabs.", kind=SAFETY, key="pin") for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert not answers[0].already_pinned
    assert await in_force(agent) == ["Use tabs."]
