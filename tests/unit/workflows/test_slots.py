"""Counts are asked for in portions, and calls carry what they were given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from muniment.kit.context import CallContext
from muniment.kit.counting import TOKENIZER, estimate_tokens
from muniment.kit.errors import InvalidArgumentError, PreconditionError
from muniment.kit.paths import Home
from muniment.v1 import slots_pb2
from muniment.workflows.clients import Clients, open_clients
from muniment.workflows.slots import (
    apply_template,
    count_tokens,
    list_servers,
    probe_server,
    save_snapshot,
)
from tests.support.scripted_slots import ScriptedSlots
from tests.support.slots import a_slots, serving_slots

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONTEXT = CallContext(caller="test")
MIB = 1024 * 1024


class Counting(ScriptedSlots):
    """Counts characters, by another tokenizer for each request if told so."""

    def __init__(self, *tokenizers: str) -> None:
        super().__init__()
        self.tokenizers = list(tokenizers)
        self.sizes: list[tuple[int, int]] = []

    async def CountTokens(
        self, request: slots_pb2.CountTokensRequest, context: object
    ) -> slots_pb2.CountTokensResponse:
        self.sizes.append((len(request.texts), sum(len(one.encode()) for one in request.texts)))
        tokenizer = self.tokenizers[min(len(self.sizes), len(self.tokenizers)) - 1]
        is_exact = tokenizer.startswith("llama:")
        return slots_pb2.CountTokensResponse(
            counts=[len(text) for text in request.texts],
            tokenizer=tokenizer,
            exact=is_exact,
            note=None if is_exact else "the server went away",
        )


@asynccontextmanager
async def clients_of(home: Home, slots: ScriptedSlots) -> AsyncIterator[Clients]:
    async with serving_slots(home, slots), open_clients(home) as clients:
        yield clients


async def test_many_texts_are_counted_by_the_thousand(home: Home) -> None:
    slots = Counting("llama:1")
    texts = ["x" * (number % 7) for number in range(2500)]
    async with clients_of(home, slots) as clients:
        counted = await count_tokens(clients, CONTEXT, texts)
    assert [texts for texts, _ in slots.sizes] == [1000, 1000, 500]
    assert list(counted.counts) == [len(text) for text in texts]
    assert (list(counted.tokenizers), counted.exact, counted.note) == (["llama:1"], True, None)


async def test_long_texts_are_counted_two_mebibytes_at_a_time(home: Home) -> None:
    slots = Counting("llama:1")
    lengths = [MIB, MIB, 1, 3 * MIB, 1, 1]
    async with clients_of(home, slots) as clients:
        counted = await count_tokens(clients, CONTEXT, ["x" * length for length in lengths])
    assert slots.sizes == [(2, 2 * MIB), (1, 1), (1, 3 * MIB), (2, 2)]
    assert list(counted.counts) == lengths


async def test_bytes_are_meant_and_not_characters(home: Home) -> None:
    slots = Counting("llama:1")
    async with clients_of(home, slots) as clients:
        await count_tokens(clients, CONTEXT, ["漢" * (MIB // 2)] * 2)
        with pytest.raises(InvalidArgumentError) as refused:
            await count_tokens(clients, CONTEXT, ["漢" * (MIB + 1)])
        with pytest.raises(InvalidArgumentError):
            await apply_template(clients, CONTEXT, "x" * (3 * MIB + 1))
    assert [texts for texts, _ in slots.sizes] == [1, 1]
    assert (refused.value.reason, refused.value.field) == ("CONTENT_TOO_LONG", "text")


async def test_nothing_is_asked_for_no_texts(home: Home) -> None:
    slots = Counting("llama:1")
    async with clients_of(home, slots) as clients:
        counted = await count_tokens(clients, CONTEXT, [])
    assert (list(counted.counts), list(counted.tokenizers), slots.sizes) == ([], [], [])


async def test_a_server_that_goes_away_between_two_portions_is_told(home: Home) -> None:
    slots = Counting("llama:1", "estimate-9")
    async with clients_of(home, slots) as clients:
        counted = await count_tokens(clients, CONTEXT, ["x"] * 1500)
    assert list(counted.tokenizers) == ["llama:1", "estimate-9"]
    assert (counted.exact, counted.note) == (False, "the server went away")


async def test_without_a_server_counts_are_estimates_or_none_at_all(home: Home) -> None:
    text = "def f(x): return x + 1  # 漢字"
    async with a_slots(home), open_clients(home) as clients:
        assert not await list_servers(clients, CONTEXT)
        counted = await count_tokens(clients, CONTEXT, [text])
        with pytest.raises(PreconditionError) as refused:
            await count_tokens(clients, CONTEXT, [text], exact=True)
    assert list(counted.counts) == [estimate_tokens(text)]
    assert (list(counted.tokenizers), counted.exact) == ([TOKENIZER], False)
    assert counted.note is not None
    assert refused.value.reason == "LLAMA_NONE"


async def test_a_probe_reports_how_far_it_is(home: Home) -> None:
    steps: list[str] = []
    async with clients_of(home, ScriptedSlots(ProbeServer=slots_pb2.Server(name="m"))) as clients:
        found = await probe_server(clients, CONTEXT, lambda step, done, of: steps.append(step))
    assert (found.name, steps) == ("m", ["evaluating a prompt"])


async def test_a_save_is_of_the_contexts_slot_on_the_named_server(home: Home) -> None:
    slots = ScriptedSlots(SaveSnapshot=slots_pb2.SaveSnapshotResponse(elapsed_ms=3))
    context = CallContext("p", session_id="s", slot_id=2, idempotency_key="k")
    async with clients_of(home, slots) as clients:
        saved = await save_snapshot(clients, context, server="second")
    ((_, request, seen),) = slots.asked
    assert saved.elapsed_ms == 3
    assert seen == context
    assert isinstance(request, slots_pb2.SaveSnapshotRequest)
    assert request.server == "second"
