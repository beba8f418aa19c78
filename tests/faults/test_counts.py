"""Counts of tokens that a stranger changed are not believed, and a crash costs none."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
import structlog

from muniment.kit.counting import TOKENIZER, estimate_tokens
from tests.faults.attacks import kind_name, number_key
from tests.support.memory_process import Caller, MemoryHome, a_memory_home
from tests.support.rule_slots import RuleSlots, counted, rule_slots
from tests.support.tamper import Operation, Rows
from tests.waiting import eventually

POINT = "memory.before_counts"

TURNS = ("the port is 8080", "the sky is blue", "the grass is green")
RULE = "never force-push"
RENDERED = f"[TASK CONTRACT] {RULE}"
TEXTS = (*TURNS, RENDERED)

EXACT = [(counted(text), "rule:1", True) for text in TEXTS]
KEPT = [(counted(text), "rule:1", False) for text in TEXTS]
"""When nobody knows who serves."""

ESTIMATES = [estimate_tokens(text) for text in TEXTS]

OTHER = "proj_0000000000000002"

BLOCK = number_key(0)

Stage = tuple[MemoryHome, Rows, Rows]


@pytest.fixture(scope="module", autouse=True)
def _no_logs() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield


async def _until_counted(caller: Caller, episodes: int) -> None:
    async def is_counted() -> bool:
        stats = await caller.stats()
        return stats.exact_episodes == episodes

    await eventually(is_counted, f"{episodes} episodes are counted", seconds=45)


async def _until_exact(caller: Caller) -> None:
    async def is_exact() -> bool:
        return all(exact for _, _, exact in await caller.tokens())

    await eventually(is_exact, "all is counted", seconds=45)


@asynccontextmanager
async def _counting(home: MemoryHome) -> AsyncIterator[tuple[Caller, RuleSlots]]:
    async with rule_slots(home.home) as slots, home.open_here() as caller:
        yield caller, slots


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage() -> AsyncIterator[Stage]:
    """A home whose tokens are counted; its rows when two turns were, and when all were."""
    with a_memory_home() as home:
        async with _counting(home) as (caller, _):
            for turn in TURNS[:2]:
                await caller.commit(turn)
            await caller.pin(RULE)
            await caller.in_project(OTHER).pin("be brief")
            await _until_counted(caller, 2)
            await _until_exact(caller)
            old = home.rows()
            await caller.commit(TURNS[2])
            await _until_counted(caller, 3)
            assert await caller.tokens() == EXACT
        yield home, old, home.rows()


def _pins(rows: Rows) -> tuple[str, str]:
    """Addresses of what is kept of the pins of both projects."""
    own = next(key for key in rows["pin_counts"] if OTHER.encode().hex() not in key)
    return own, next(key for key in rows["pin_counts"] if key != own)


def _flip(row: str) -> str:
    return row[:-2] + f"{int(row[-2:], 16) ^ 1:02x}"


def _attacks(old: Rows, new: Rows) -> dict[str, list[Operation]]:
    own, other = _pins(new)
    block, pins = new["token_counts"][BLOCK], new["pin_counts"][own]
    return {
        "counts are edited": [("token_counts", BLOCK, _flip(block))],
        "counts are written by a stranger": [("token_counts", BLOCK, "0a00")],
        "counts are deleted": [("token_counts", BLOCK, None)],
        "counts of other episodes are put there": [
            ("token_counts", BLOCK, new["contents"][number_key(1)])
        ],
        "older counts are put back": [("token_counts", BLOCK, old["token_counts"][BLOCK])],
        "counts are slipped in": [("token_counts", number_key(9), block)],
        "costs are edited": [("pin_counts", own, _flip(pins))],
        "costs are deleted": [("pin_counts", own, None)],
        "costs are swapped": [
            ("pin_counts", own, new["pin_counts"][other]),
            ("pin_counts", other, pins),
        ],
    }


_OLDER = [*KEPT[:2], None, KEPT[3]]
_NO_COUNTS = [None, None, None, KEPT[3]]
_NO_COSTS = [*KEPT[:3], None]

SHOWN: dict[str, tuple[Sequence[tuple[int, str, bool] | None], set[tuple[str, str]]]] = {
    "counts are edited": (_NO_COUNTS, {("row_tampered", "token_counts")}),
    "counts are written by a stranger": (_NO_COUNTS, {("row_tampered", "token_counts")}),
    "counts are deleted": (_NO_COUNTS, set()),
    "counts of other episodes are put there": (_NO_COUNTS, {("row_tampered", "token_counts")}),
    # They are true of the episodes that they count.
    "older counts are put back": (_OLDER, set()),
    "counts are slipped in": (KEPT, {("row_tampered", "token_counts")}),
    "costs are edited": (_NO_COSTS, {("row_tampered", "pin_counts")}),
    "costs are deleted": (_NO_COSTS, set()),
    "costs are swapped": (_NO_COSTS, {("row_tampered", "pin_counts")}),
}
"""What is shown then (None: the estimate), and what is found besides a wrong sum."""


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SHOWN)
async def test_what_was_changed_gives_way_to_the_estimate(stage: Stage, name: str) -> None:
    home, old, new = stage
    operations = _attacks(old, new)[name]
    shown, found = SHOWN[name]
    with home.copied() as copy:
        copy.tamper(operations)
        async with copy.open_here() as caller:
            for told, expected, estimate in zip(
                await caller.tokens(), shown, ESTIMATES, strict=True
            ):
                assert told == (expected or (estimate, told[1], False))
                assert (expected is None) == told[1].startswith(TOKENIZER)
            findings = await caller.verify()
            sums = {("sum_mismatch", operations[0][0])}
            assert {(kind_name(one), one.table) for one in findings} == found | sums
            assert all(one.found and one.mend for one in findings)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ["counts are edited", "counts are deleted", "costs are swapped"])
async def test_it_is_not_believed_while_the_service_runs(stage: Stage, name: str) -> None:
    home, old, new = stage
    with home.copied() as copy:
        async with _counting(copy) as (caller, _):
            await _until_exact(caller)
            copy.tamper(_attacks(old, new)[name])
            shown, found = SHOWN[name]
            told = [tokens if tokens[2] else None for tokens in await caller.tokens()]
            assert told == [None if one is None else (*one[:2], True) for one in shown]
            kinds = {(kind_name(one), one.table) for one in await caller.verify()}
            assert kinds >= found


@pytest.mark.asyncio(loop_scope="module")
async def test_it_is_counted_anew_at_the_next_start(stage: Stage) -> None:
    home, old, new = stage
    attacks = _attacks(old, new)
    with home.copied() as copy:
        copy.tamper([*attacks["counts are edited"], *attacks["costs are deleted"]])
        async with _counting(copy) as (caller, slots):
            await _until_exact(caller)
            assert await caller.tokens() == EXACT
            assert slots.texts == len(TEXTS)


@pytest.mark.asyncio(loop_scope="module")
async def test_counts_of_what_is_not_there_are_found(stage: Stage) -> None:
    home, _, _ = stage
    with home.copied() as copy:
        async with copy.open_here() as caller:
            await caller.in_project(OTHER).purge()
            assert await caller.verify() == []
            assert len(copy.rows()["pin_counts"]) == 1
            await caller.purge()
            assert await caller.verify() == []
            assert copy.rows()["pin_counts"] == copy.rows()["token_counts"] == {}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_crash_between_counting_and_keeping_costs_nothing(
    stage: Stage, tmp_path: Path
) -> None:
    home, _, _ = stage
    with home.copied() as copy:
        async with rule_slots(copy.home) as slots:
            slots.tokenizer = "rule:2"
            (tmp_path / POINT).write_text("2")
            process = copy.start(tmp_path)
            assert await asyncio.to_thread(process.wait, 60) == -signal.SIGKILL
            asked = slots.texts
            async with copy.open_here() as caller:
                await _until_exact(caller)
                assert await caller.tokens() == [(one, "rule:2", True) for one, _, _ in EXACT]
                assert await caller.verify() == []
            # The pins were kept, the episodes had to be counted again.
            assert (asked, slots.texts - asked) == (2 + len(TURNS), len(TURNS))
