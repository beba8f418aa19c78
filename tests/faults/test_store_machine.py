"""The store and its index beside a plain model, through crashes at every fault point.

What was acknowledged is there; what was not is there whole or not at all, in the order in which it
was asked for; the feed replays to the tables; the sums and the chain hold; the index answers as one
that is made anew.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from muniment.kit.errors import UnavailableError
from muniment.kit.ids import IdMaker
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.store.folders import NEW_LIFE
from muniment.memory.indexing import EpisodesAndPins
from tests.support.crashes import Crash, dying_at, fault_points
from tests.support.seams import FakeClock, SeededRandomness
from tests.support.store_checks import (
    Replica,
    answer,
    demand_chain,
    demand_same_index,
    digests,
)
from tests.support.store_model import (
    CONTEXT,
    SCHEMA,
    TABLES,
    Hands,
    Job,
    Model,
    Step,
    held,
)
from tests.support.stores import Stepped, demand_sound

POINTS = sorted(fault_points("services/muniment/kit/store/store.py"))
KIB = 1024
LIFE_SECONDS = 600.0
RETENTION = 60

WORDS = ("harbour", "lantern", "quorum", "parse_config", "src/app.py")
VALUES = st.sampled_from(["", "v", "other", "x…", "yyyyy…"])
KEYS = st.sampled_from([("a",), ("a", 1), ("a\0",), ("b", 2**40), ("k…",), ("k…", "l…")])
NUMBERS = st.integers(1, 9).map(lambda number: (number,))
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)

STEPS = st.one_of(
    st.builds(Step, st.just("put"), st.sampled_from(sorted(TABLES)), KEYS | NUMBERS, VALUES),
    st.builds(Step, st.just("delete"), st.sampled_from(sorted(TABLES)), KEYS | NUMBERS),
    st.builds(lambda value: Step("episode", value=value), TEXTS),
    st.builds(lambda value: Step("pin", value=value), TEXTS),
    st.builds(lambda value: Step("unpin", value=value), TEXTS),
)
ENDS = st.sampled_from([(), (), (), (), (Step("refuse"),), (Step("fail"),)])
JOBS = st.builds(
    lambda steps, end, key: Job((*steps, *end), key),
    st.lists(STEPS, max_size=4),
    ENDS,
    st.sampled_from(["", "", "k1", "k2", "k3"]),
)


@dataclass
class Asked:
    """A job that was asked for and is not answered yet."""

    job: Job
    future: Future[Any]


class Flaky(IndexFollower):
    """A follower that may fail once."""

    fails = False

    def catch_up(self, read: Any) -> None:
        if self.fails:
            self.fails = False
            raise UnavailableError("is full", reason="INDEX_UNAVAILABLE")
        super().catch_up(read)


class StoreMachine(RuleBasedStateMachine):
    """A store under jobs, crashes and harm to its index."""

    @initialize(
        sealed=st.booleans(),
        first_map_kib=st.sampled_from([256, 64 * KIB]),
        asked=st.lists(JOBS, max_size=3),
    )
    def begin(self, sealed: bool, first_map_kib: int, asked: list[Job]) -> None:
        memory_disk = Path("/dev/shm")
        self.root = Path(
            tempfile.mkdtemp(prefix="mu-", dir=memory_disk if memory_disk.is_dir() else None)
        )
        self.sealed, self.first_map_bytes = sealed, first_map_kib * KIB
        self.clock = FakeClock()
        self.hands = Hands(self.clock, IdMaker(self.clock, SeededRandomness()))
        self.model, self.replica = Model(), Replica()
        self.lives = 0
        self.asked: list[Asked] = []
        self.copies: list[tuple[Path, int, Model]] = []
        self.open()
        for job in asked:
            self.ask(job)

    def open(self) -> None:
        self.lives += 1
        self.stepped = Stepped(
            self.root / "store",
            sealed=self.sealed,
            schema=SCHEMA,
            clock=self.clock,
            randomness=SeededRandomness(self.lives),
            first_map_bytes=self.first_map_bytes,
            retention_changes=RETENTION,
            reply_life_seconds=LIFE_SECONDS,
        )
        self.index = LexicalIndex(None if self.sealed else self.root / "index" / "lexical.sqlite3")
        self.follower = Flaky(self.index, EpisodesAndPins(), fill_in_background=False)
        self.stepped.store.follow(self.follower)
        assert self.stepped.store.doubts == []

    # --- Jobs

    @rule(job=JOBS)
    def ask(self, job: Job) -> None:
        store = self.stepped.store
        if job.idempotency_key:
            once = self.hands.once(job)
            future: Future[Any] = store.write(once.run, remember=once.remember)
        else:
            future = store.write(lambda writer: self.hands.do(writer, job.steps))
        self.asked.append(Asked(job, future))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from(self.asked))
        assert asked.future.cancel()
        self.asked.remove(asked)

    @rule()
    def step(self) -> None:
        """Commit and follow; every outcome is the model's."""
        asked, self.asked = self.asked, []
        fails, was_committed = self.follower.fails, bool(asked)
        outcomes = run_batch(self.model, [one.job for one in asked], self.clock.now_ns())
        self.stepped.step()
        for one, expected in zip(asked, outcomes, strict=True):
            error = one.future.exception(0)
            if isinstance(expected, type):
                assert type(error) is expected
            elif fails and was_committed:
                # It is kept all the same, which the next look shows.
                assert isinstance(error, UnavailableError)
            else:
                assert error is None
                result = one.future.result(0)
                assert int(getattr(result, "text", result)) == expected
        if asked and not fails:
            assert self.index.progress.position == self.stepped.store.position
        self.demand_contents()

    @rule()
    def fail_to_index(self) -> None:
        self.follower.fails = True

    @rule(seconds=st.sampled_from([1.0, LIFE_SECONDS / 2, LIFE_SECONDS + 1]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.move(seconds)

    # --- Crashes

    @rule(point=st.sampled_from(POINTS))
    def die_at(self, point: str) -> None:
        """Die inside the next batch, and find all of it or nothing."""
        asked, self.asked = self.asked, []
        before, after = self.model, self.model.copy()
        run_batch(after, [one.job for one in asked], self.clock.now_ns())
        has_died = False
        with dying_at(point):
            try:
                self.stepped.step()
            except Crash:
                has_died = True
        assert has_died or not asked, f"{point} was never visited"
        assert not any(one.future.done() for one in asked)
        self.model = before if point == "store.before_commit" else after
        self.reopen_after_crash()

    @rule()
    def die_waiting(self) -> None:
        """Die with jobs that nobody has begun."""
        self.asked.clear()
        self.reopen_after_crash()

    def reopen_after_crash(self) -> None:
        self.stepped.die()
        self.index.close()
        self.open()
        self.demand_contents()

    @rule()
    def close_and_open(self) -> None:
        """A close runs what waits."""
        asked, self.asked = self.asked, []
        run_batch(self.model, [one.job for one in asked], self.clock.now_ns())
        self.follower.fails = False
        self.stepped.close()
        self.index.close()
        assert all(one.future.done() for one in asked)
        self.open()
        self.demand_contents()

    # --- The index

    @precondition(lambda self: not self.sealed)
    @rule(harm=st.sampled_from(["gone", "rubbish", "cut", "emptied"]))
    def harm_index(self, harm: str) -> None:
        """Find the index damaged after a crash."""
        self.asked.clear()
        self.stepped.die()
        self.index.close()
        path = self.root / "index" / "lexical.sqlite3"
        if harm == "gone":
            shutil.rmtree(path.parent)
        else:
            raw = path.read_bytes()
            path.write_bytes(
                {"rubbish": b"no database", "cut": raw[: len(raw) // 2]}.get(harm, b"")
            )
        self.open()

    @rule()
    def fill(self) -> None:
        """A portion of what a new index lacks."""
        self.follower.fill(self.stepped.store.read)

    @rule()
    def compare_index(self) -> None:
        """The index has and answers what one does that is made anew."""
        store = self.stepped.store
        with suppress(UnavailableError):
            self.follower.catch_up(store.read)
        self.follower.catch_up(store.read)
        while self.follower.fill(store.read):
            pass
        demand_same_index(store, self.index, CONTEXT, (*WORDS, " ".join(WORDS)))
        with store.read() as reader:
            for word in WORDS:
                is_there = any(word in text for text in (*self.model.episodes, *self.model.pins))
                assert bool(answer(reader, self.index, CONTEXT, word).hits) == is_there

    # --- Copies that are put back

    @rule()
    def keep_a_copy(self) -> None:
        """Copy the files, as a backup that knows nothing of the index does."""
        folder = self.root / f"copy-{len(self.copies)}"
        folder.mkdir()
        with self.stepped.store.standing_still() as environment:
            environment.copy(str(folder))
        self.copies.append((folder, self.stepped.store.position, self.model.copy()))

    @precondition(lambda self: self.copies)
    @rule(data=st.data(), is_told=st.booleans())
    def put_a_copy_back(self, data: st.DataObject, is_told: bool) -> None:
        """Go back to a copy: as a restore does, which begins a new life, or without a word."""
        folder, position, model = data.draw(st.sampled_from(self.copies))
        is_index_ahead = self.index.progress.position > position
        self.asked.clear()
        self.stepped.die()
        self.index.close()
        shutil.copyfile(folder / "data.mdb", self.root / "store" / "data.mdb")
        if is_told:
            (self.root / "store" / NEW_LIFE).touch()
        else:
            # Nothing tells readers of the feed that this is another life, unless they are ahead.
            self.replica = Replica()
            if not is_index_ahead:
                shutil.rmtree(self.root / "index", ignore_errors=True)
        self.model = model.copy()
        self.open()
        self.demand_contents()

    # --- What must hold

    @rule()
    def read_the_feed(self) -> None:
        """A reader that goes on where it was ends with the digests of the tables."""
        with self.stepped.store.read() as reader:
            self.replica.catch_up(reader, SCHEMA)
            assert self.replica.digests == digests(reader, SCHEMA)

    @rule()
    def verify(self) -> None:
        demand_sound(self.stepped.store)
        with self.stepped.store.read() as reader:
            demand_chain(reader)

    def demand_contents(self) -> None:
        with self.stepped.store.read() as reader:
            found = held(reader)
        # A transaction that changes something clears away what is old.
        self.model.forget(found["replies"], self.clock.now_ns() - int(LIFE_SECONDS * 1e9))
        assert found == self.model.contents()

    def teardown(self) -> None:
        if not hasattr(self, "stepped"):
            return
        self.follower.fails = False
        self.step()
        self.verify()
        self.read_the_feed()
        self.compare_index()
        self.stepped.die()
        self.index.close()
        shutil.rmtree(self.root)


def run_batch(model: Model, jobs: list[Job], now_ns: int) -> list[Any]:
    """The outcomes of the jobs, and the model as they leave it."""
    return [model.run(job, now_ns) for job in jobs]


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
@pytest.mark.parametrize("point", POINTS)
def test_a_batch_is_whole_or_absent_after_a_crash_at(point: str, sealed: bool) -> None:
    machine = StoreMachine()
    machine.begin(sealed=sealed, first_map_kib=256, asked=[])
    pin, episode = Step("pin", value="quorum"), Step("episode", value="lantern harbour")
    once = Job((episode, pin), "k1")
    machine.ask(once)
    machine.ask(Job((Step("put", "notes", ("a",), "v"), Step("put", "counts", ("a",), "v"))))
    machine.ask(Job((episode, Step("fail"))))
    machine.die_at(point)
    machine.ask(once)
    machine.step()
    machine.teardown()


@pytest.mark.timeout(300)
def test_the_store_is_as_the_model_whatever_happens() -> None:
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=int(os.environ.get("MUNIMENT_TEST_EXAMPLES", "30")),
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.reuse, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
