"""Counts are kept beside what they count, and shown by the newest of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.kit.counting import TOKENIZER, estimate_tokens
from muniment.kit.store import Reader
from muniment.memory.counts import (
    BLOCK_SEQS,
    Progress,
    Serving,
    counted_by,
    forget_counts,
    keep_costs,
    keep_counts,
    read_costs,
)
from muniment.memory.schema import PIN_COUNTS, TOKEN_COUNTS
from muniment.v1 import memory_pb2
from tests.support.bare_memory import BareMemory, a_bare_memory

ONE, OTHER = "proj_one", "proj_other"


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[BareMemory]:
    with a_bare_memory(tmp_path, sealed=request.param) as memory:
        yield memory


def keep(memory: BareMemory, tokenizer: str, counts: dict[int, int]) -> int:
    return memory.store.write(lambda writer: keep_counts(writer, tokenizer, counts)).result()


def forget(memory: BareMemory, *seqs: int) -> None:
    memory.store.write(lambda writer: forget_counts(writer, seqs)).result()


def serving(tokenizer: str | None) -> Serving:
    found = Serving()
    found.progress = Progress(tokenizer, 0, 0) if tokenizer else None
    return found


def shown(memory: BareMemory, seq: int, tokenizer: str | None) -> tuple[int, str, bool]:
    with memory.store.read() as reader:
        episode = memory_pb2.Episode(seq=seq)
        episode.tokens.count_tokens, episode.tokens.tokenizer = 77, "estimate"
        tokens = serving(tokenizer).counts(reader).show(episode).tokens
    return tokens.count_tokens, tokens.tokenizer, tokens.exact


def rows(reader: Reader) -> int:
    return reader.count(TOKEN_COUNTS)


def test_the_estimate_is_shown_until_there_is_a_count(memory: BareMemory) -> None:
    memory.commit(ONE, "one two three")
    assert shown(memory, 1, "a") == (77, "estimate", False)
    assert keep(memory, "a", {1: 3}) == 1
    assert shown(memory, 1, "a") == (3, "a", True)


@pytest.mark.parametrize("tokenizer", [None, "b"])
def test_a_count_is_exact_only_of_the_model_that_serves(
    memory: BareMemory, tokenizer: str | None
) -> None:
    memory.commit(ONE, "one two three")
    keep(memory, "a", {1: 3})
    assert shown(memory, 1, tokenizer) == (3, "a", False)


def test_nothing_is_a_count_too(memory: BareMemory) -> None:
    memory.commit(ONE, " ")
    keep(memory, "a", {1: 0})
    assert shown(memory, 1, "a") == (0, "a", True)


def test_another_tokenizer_replaces_what_it_counts_and_no_more(memory: BareMemory) -> None:
    for number in range(3):
        memory.commit(ONE, f"{number}")
    keep(memory, "a", {1: 10, 2: 20, 3: 30})
    assert keep(memory, "b", {2: 21}) == 1
    assert keep(memory, "b", {2: 22}) == 0
    told = [shown(memory, seq, "b") for seq in (1, 2, 3)]
    assert told == [(10, "a", False), (22, "b", True), (30, "a", False)]
    with memory.store.read() as reader:
        assert (counted_by(reader, "a"), counted_by(reader, "b")) == (2, 1)
    keep(memory, "b", {1: 11, 3: 31})
    with memory.store.read() as reader:
        assert (counted_by(reader, "a"), counted_by(reader, "b")) == (0, 3)


def test_blocks_meet_without_a_gap(memory: BareMemory) -> None:
    for number in range(BLOCK_SEQS + 2):
        memory.commit(ONE, f"{number}")
    seqs = [1, BLOCK_SEQS - 1, BLOCK_SEQS, BLOCK_SEQS + 1]
    assert keep(memory, "a", {seq: 1000 + seq for seq in seqs}) == 4
    for seq in seqs:
        assert shown(memory, seq, "a") == (1000 + seq, "a", True)
    assert shown(memory, 2, "a") == shown(memory, BLOCK_SEQS + 2, "a") == (77, "estimate", False)
    with memory.store.read() as reader:
        assert rows(reader) == 2
    forget(memory, *range(BLOCK_SEQS, BLOCK_SEQS + 3))
    assert shown(memory, BLOCK_SEQS, "a") == (77, "estimate", False)
    assert shown(memory, BLOCK_SEQS - 1, "a") == (1000 + BLOCK_SEQS - 1, "a", True)
    with memory.store.read() as reader:
        assert rows(reader) == 1


def test_nothing_is_kept_of_what_is_not_there(memory: BareMemory) -> None:
    memory.commit(ONE, "one")
    assert keep(memory, "a", {1: 1, 2: 2, 5000: 3}) == 1
    with memory.store.read() as reader:
        assert (rows(reader), counted_by(reader, "a")) == (1, 1)


def test_a_purge_takes_the_counts_of_the_project_and_no_others(memory: BareMemory) -> None:
    for number in range(4):
        memory.commit(ONE if number % 2 else OTHER, f"{number}")
    mine, other = memory.pin(ONE, "be brief"), memory.pin(OTHER, "be kind")
    keep(memory, "a", {1: 1, 2: 2, 3: 3, 4: 4})
    pins = [*memory.pins(ONE), *memory.pins(OTHER)]
    memory.store.write(lambda writer: keep_costs(writer, "a", [(pin, 5) for pin in pins])).result()
    memory.purge(ONE)
    with memory.store.read() as reader:
        assert counted_by(reader, "a") == 2
        assert reader.get(PIN_COUNTS, ONE) is None
        assert set(read_costs(reader, OTHER)) == {other}
        everything = str([row for _, row in reader.survey(PIN_COUNTS)])
    assert mine not in everything
    assert shown(memory, 1, "a") == (1, "a", True)
    memory.purge(OTHER)
    with memory.store.read() as reader:
        assert (rows(reader), reader.count(PIN_COUNTS)) == (0, 0)


def test_the_cost_of_a_pin_is_that_of_its_kind(memory: BareMemory) -> None:
    pin_id = memory.pin(ONE, "be brief")
    (pin,) = memory.pins(ONE)
    memory.store.write(lambda writer: keep_costs(writer, "a", [(pin, 9)])).result()

    def cost() -> tuple[int, str, bool]:
        with memory.store.read() as reader:
            (found,) = memory.pins(ONE)
            told = serving("a").counts(reader).show_cost(found).token_cost
        return told.count_tokens, told.tokenizer, told.exact

    assert cost() == (9, "a", True)
    memory.pin(ONE, "be brief", kind=memory_pb2.PIN_KIND_USER_CORRECTION)
    assert cost() == (estimate_tokens("[USER CORRECTION] be brief"), TOKENIZER, False)
    memory.unpin(ONE, pin_id)
    with memory.store.read() as reader:
        assert reader.count(PIN_COUNTS) == 0


def test_no_cost_is_kept_of_a_pin_that_was_taken_away(memory: BareMemory) -> None:
    gone = memory.pin(ONE, "be brief")
    kept = memory.pin(ONE, "be kind")
    pins = memory.pins(ONE)
    memory.unpin(ONE, gone)
    memory.store.write(lambda writer: keep_costs(writer, "a", [(pin, 5) for pin in pins])).result()
    with memory.store.read() as reader:
        assert set(read_costs(reader, ONE)) == {kept}
