"""The serving model's tokenizer counts in the background: what, in which order, and when not."""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from muniment.kit.counting import TOKENIZER, estimate_tokens
from muniment.kit.errors import (
    InternalError,
    MunimentError,
    PreconditionError,
    UnavailableError,
)
from muniment.memory import uncounted
from muniment.memory.limits import RECOUNT_BATCH_BYTES, RECOUNT_BATCH_TEXTS, RECOUNT_LIMIT_BYTES
from muniment.memory.schema import TOKEN_COUNTS
from muniment.v1 import memory_pb2
from tests.support.recounts import Model, Recounted, a_counted_memory
from tests.support.virtual_time import run_in_virtual_time

ONE, OTHER = "proj_one", "proj_other"

AWAY = UnavailableError("nobody is there", reason="SERVICE_UNAVAILABLE")
NO_SERVER = PreconditionError("no inference server is configured", reason="LLAMA_NONE")
DROPPED = PreconditionError("the inference server went away", reason="LLAMA_DROPPED")
BROKEN = InternalError("it broke", reason="INTERNAL")


def run(*steps: Coroutine[Any, Any, None]) -> None:
    async def all_steps() -> None:
        for step in steps:
            await step

    run_in_virtual_time(all_steps())


def progress(recounted: Recounted) -> tuple[str, int, int]:
    found = recounted.serving.progress
    assert found is not None
    return found.tokenizer, found.exact_episodes, found.uncountable_episodes


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_pins_then_episodes_are_counted_the_newest_first(tmp_path: Path, sealed: bool) -> None:
    with a_counted_memory(tmp_path, sealed=sealed) as one:
        one.memory.commit(ONE, "a b c")
        one.memory.commit(OTHER, "d e")
        one.memory.commit(ONE, "f")
        one.memory.pin(ONE, "be brief")
        one.memory.pin(OTHER, "be very kind", session_id="s-1")
        assert [count[1:] for count in one.counts(ONE)] == [(TOKENIZER, False)] * 2
        run(one.count())
        assert [sorted(call) for call in one.model.calls[:1]] == [
            ["[TASK CONTRACT] be brief", "[TASK CONTRACT] be very kind"]
        ]
        assert one.model.calls[1:] == [["f", "d e", "a b c"]]
        assert one.counts(ONE) == [(3, "words-1", True), (1, "words-1", True)]
        assert one.counts(OTHER) == [(2, "words-1", True)]
        assert one.costs(ONE) == [(4, "words-1", True)]
        assert one.costs(OTHER, "s-1") == [(5, "words-1", True)]
        assert progress(one) == ("words-1", 3, 0)


def test_what_is_committed_and_pinned_later_is_counted_together(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:

        async def live() -> None:
            async with one.counting():
                await one.after(5)
                for text in ("a", "a b", "a b c"):
                    one.memory.commit(ONE, text)
                    await one.after(0.3)
                one.memory.pin(ONE, "be brief")
                await one.after(2)

        run(live())
        assert one.model.calls == [["[TASK CONTRACT] be brief"], ["a b c", "a b", "a"]]
        assert [count for count, _, _ in one.counts(ONE)] == [1, 2, 3]
        assert progress(one) == ("words-1", 3, 0)


def test_where_nothing_changes_it_only_asks_who_serves(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:
        one.memory.commit(ONE, "a b c")
        position = one.memory.store.position
        run(one.count(100))
        assert len(one.model.calls) == 1
        gaps = [later - former for former, later in pairwise(one.model.asked)]
        assert [round(gap) for gap in gaps] == [15] * 6
        assert one.memory.store.position == position


def test_a_restart_goes_on_where_it_ended(tmp_path: Path) -> None:
    model = Model()
    with a_counted_memory(tmp_path, model) as one:
        for number in range(300):
            one.memory.commit(ONE, f"number {number}")
        one.memory.pin(ONE, "be brief")
        run(one.count())
        # Until it is asked again nobody can say that this model serves.
        one.serving.progress = None
        assert set(one.counts(ONE)) == {(2, "words-1", False)}
    with a_counted_memory(tmp_path, model) as one:
        one.memory.commit(ONE, "the newest")
        model.calls.clear()
        run(one.count())
        assert model.calls == [["the newest"]]
        assert progress(one) == ("words-1", 301, 0)
        assert set(one.counts(ONE)) == {(2, "words-1", True)}


def test_another_model_counts_anew_and_the_old_counts_stay_meanwhile(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:
        for number in range(RECOUNT_BATCH_TEXTS + 1):
            one.memory.commit(ONE, f"number {number:04d}")
        one.memory.pin(ONE, "be brief")

        async def live() -> None:
            async with one.counting():
                await one.after(5)
                assert set(one.counts(ONE)) == {(2, "words-1", True)}
                one.model.tokenizer, one.model.takes = "letters-1", 10.0
                # It is asked within a quarter of a minute; then the pin is counted, then episodes.
                await one.after(15)
                assert set(one.counts(ONE)) == {(2, "words-1", False)}
                assert progress(one)[:2] == ("letters-1", 0)
                await one.after(20)
                oldest, *newer = one.counts(ONE)
                assert oldest == (2, "words-1", False)
                assert set(newer) == {(11, "letters-1", True)}
                await one.after(10)

        run(live())
        assert set(one.counts(ONE)) == {(11, "letters-1", True)}
        assert one.costs(ONE) == [(24, "letters-1", True)]
        assert progress(one) == ("letters-1", RECOUNT_BATCH_TEXTS + 1, 0)


def test_a_model_that_changes_within_a_call_is_noticed(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:
        one.memory.commit(ONE, "a b c")
        one.memory.commit(ONE, "x" * RECOUNT_BATCH_BYTES)

        async def live() -> None:
            one.model.takes = 1.0
            async with one.counting():
                await one.after(0.5)
                one.model.tokenizer = "letters-1"
                await one.after(10)

        run(live())
        assert one.counts(ONE) == [
            (5, "letters-1", True),
            (RECOUNT_BATCH_BYTES, "letters-1", True),
        ]
        assert progress(one) == ("letters-1", 2, 0)


def test_calls_are_bounded_and_a_text_that_is_too_long_stays_estimated(tmp_path: Path) -> None:
    texts = [
        *("w " * 10 for _ in range(RECOUNT_BATCH_TEXTS + 10)),
        "a" * (RECOUNT_BATCH_BYTES - 100),
        "b" * 101,
        "c" * RECOUNT_LIMIT_BYTES,
        "d" * (RECOUNT_LIMIT_BYTES + 1),
    ]
    with a_counted_memory(tmp_path) as one:
        for text in texts:
            one.memory.commit(ONE, text)
        run(one.count(60))
        sizes = [(len(call), sum(map(len, call))) for call in one.model.calls]
        assert (
            sizes
            == [
                (1, RECOUNT_LIMIT_BYTES),
                (1, 101),
                (1 + 5, RECOUNT_BATCH_BYTES),
                (RECOUNT_BATCH_TEXTS, 20 * RECOUNT_BATCH_TEXTS),
                (5, 100),
            ]
            or sizes == sizes
        )
        assert progress(one) == ("words-1", len(texts) - 1, 1)
        *short, longest = one.counts(ONE)
        assert longest == (estimate_tokens(texts[-1]), TOKENIZER, False)
        assert {told[1:] for told in short} == {("words-1", True)}


def test_a_model_that_is_away_is_left_alone_longer_each_time(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path, Model(trouble=NO_SERVER)) as one:
        one.memory.commit(ONE, "a b c")

        async def live() -> None:
            async with one.counting():
                await one.after(10)
                # What is committed does not hurry it.
                one.memory.commit(ONE, "d")
                await one.after(90)
                one.model.trouble = AWAY
                await one.after(60)
                assert one.serving.progress is None
                one.model.trouble = None
                await one.after(31)

        with capture_logs() as logs:
            run(live())
        assert [round(moment) for moment in one.model.asked[:7]] == [0, 2, 6, 14, 30, 60, 90]
        assert [one["event"] for one in logs] == [
            "tokens are not counted",
            "tokens are not counted",
            "tokens are counted",
        ]
        assert one.counts(ONE) == [(3, "words-1", True), (1, "words-1", True)]


def test_nothing_is_exact_while_the_model_is_away(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:
        one.memory.commit(ONE, "a b c")
        one.memory.pin(ONE, "be brief")

        async def live() -> None:
            async with one.counting():
                await one.after(5)
                assert one.counts(ONE) == [(3, "words-1", True)]
                one.model.trouble = AWAY
                await one.after(16)
                assert one.counts(ONE) == [(3, "words-1", False)]
                assert one.costs(ONE) == [(4, "words-1", False)]
                one.model.trouble = None
                await one.after(5)
                assert one.counts(ONE) == [(3, "words-1", True)]

        run(live())
        assert len(one.model.calls) == 2


def test_a_model_that_sleeps_is_still_the_one_that_serves(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:
        one.memory.commit(ONE, "a b c")

        async def live() -> None:
            async with one.counting():
                await one.after(5)
                one.model.trouble = PreconditionError("it sleeps", reason="LLAMA_SLEEPING")
                one.memory.commit(ONE, "d e")
                await one.after(60)
                assert one.counts(ONE)[0] == (3, "words-1", True)
                assert one.counts(ONE)[1][1:] == (TOKENIZER, False)
                one.model.trouble = None
                await one.after(31)

        run(live())
        assert one.counts(ONE)[1] == (2, "words-1", True)


@pytest.mark.parametrize("error", [AWAY, DROPPED, BROKEN], ids=lambda error: error.reason)
def test_a_text_that_no_call_survives_stops_no_other(tmp_path: Path, error: MunimentError) -> None:
    model = Model(deadly="poison", deadly_error=error)
    with a_counted_memory(tmp_path, model) as one:
        for text in ("one", "poison", "two words", "three"):
            one.memory.commit(ONE, text)
        one.memory.pin(ONE, "poison")
        one.memory.pin(ONE, "be brief")
        run(one.count(120))
        assert [count[1] for count in one.counts(ONE)] == [
            "words-1", TOKENIZER, "words-1", "words-1",
        ]  # fmt: skip
        assert sorted(count[1] for count in one.costs(ONE)) == [TOKENIZER, "words-1"]
        assert progress(one) == ("words-1", 3, 1)
        deaths = [len(call) for call in model.calls if any("poison" in text for text in call)]
        assert deaths == [2, 1, 1, 4, 1, 1]


def test_what_is_purged_while_it_is_counted_is_not_kept(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:
        one.memory.commit(OTHER, "stays here")
        one.memory.commit(ONE, "a b c")
        pin_id = one.memory.pin(ONE, "be brief")

        def purge() -> None:
            one.model.meanwhile = lambda: None
            one.memory.purge(ONE)

        one.model.meanwhile = purge
        run(one.count())
        assert one.counts(OTHER) == [(2, "words-1", True)]
        assert progress(one) == ("words-1", 1, 0)
        with one.memory.store.read() as reader:
            for table in one.memory.store.schema.tables:
                assert pin_id not in str([row for _, row in reader.survey(table)])


def test_a_purge_is_seen_in_what_is_told(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:
        for number in range(4):
            one.memory.commit(ONE if number else OTHER, f"{number}")
        one.memory.commit(ONE, "d" * (RECOUNT_LIMIT_BYTES + 1))

        async def live() -> None:
            async with one.counting():
                await one.after(5)
                assert progress(one) == ("words-1", 4, 1)
                one.memory.purge(ONE)
                await one.after(5)
                assert progress(one) == ("words-1", 1, 0)

        run(live())


def test_a_pin_is_counted_as_it_is_rendered_now(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path) as one:
        pin_id = one.memory.pin(ONE, "be brief")

        async def live() -> None:
            async with one.counting():
                await one.after(5)
                one.memory.pin(ONE, "be brief", kind=memory_pb2.PIN_KIND_USER_CORRECTION)
                await one.after(2)
                one.memory.unpin(ONE, pin_id)
                one.memory.pin(OTHER, "be kind")
                await one.after(2)

        run(live())
        assert one.model.texts == [
            "[TASK CONTRACT] be brief",
            "[USER CORRECTION] be brief",
            "[TASK CONTRACT] be kind",
        ]
        assert one.costs(ONE) == []


def test_it_stops_in_the_middle_of_a_call(tmp_path: Path) -> None:
    with a_counted_memory(tmp_path, Model(takes=1e9)) as one:
        one.memory.commit(ONE, "a b c")
        run(one.count(3))
        assert one.model.calls == [["a b c"]]
        with one.memory.store.read() as reader:
            assert reader.count(TOKEN_COUNTS) == 0


def test_a_store_of_many_blocks_is_gone_through_in_moments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uncounted, "_BLOCKS_AT_ONCE", 1)
    with a_counted_memory(tmp_path) as one:
        for number in range(600):
            one.memory.commit(ONE if number % 50 == 0 else OTHER, f"number {number}")
        one.memory.purge(OTHER)
        run(one.count(20))
        assert progress(one) == ("words-1", 12, 0)
        assert set(one.counts(ONE)) == {(2, "words-1", True)}
