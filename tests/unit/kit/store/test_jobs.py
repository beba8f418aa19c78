"""The writer's loops: batches in order, none lost, none twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from muniment.kit.errors import UnavailableError
from muniment.kit.store import jobs
from muniment.kit.store.jobs import BATCH_LIMIT_JOBS, Job, ThreadedLoop
from tests.support.stepped_loop import SteppedLoop
from tests.waiting import until

SECONDS = 20.0


def job(name: str = "") -> Job:
    return Job(lambda writer: None, written_by=name)


@dataclass
class Recorder:
    """Takes the place of the store: notes each batch, and may be held inside a commit."""

    committed: list[list[str]] = field(default_factory=list)
    followed: list[list[str]] = field(default_factory=list)
    may_commit: threading.Event = field(default_factory=threading.Event)
    may_follow: threading.Event = field(default_factory=threading.Event)
    commits_begun: list[int] = field(default_factory=list)

    def commit(self, batch: Sequence[Job]) -> None:
        self.commits_begun.append(len(batch))
        assert self.may_commit.wait(SECONDS)
        self.committed.append([one.written_by for one in batch])

    def follow(self, batch: Sequence[Job]) -> None:
        assert self.may_follow.wait(SECONDS)
        self.followed.append([one.written_by for one in batch])
        for one in batch:
            one.future.set_result(one.written_by)


def flat(batches: list[list[str]]) -> list[str]:
    return [name for batch in batches for name in batch]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def begun(recorder: Recorder, *, held: bool = False) -> ThreadedLoop:
    if not held:
        recorder.may_commit.set()
        recorder.may_follow.set()
    loop = ThreadedLoop()
    loop.start(recorder.commit, recorder.follow)
    return loop


def submit(loop: ThreadedLoop, *names: str) -> list[Job]:
    waiting = [job(name) for name in names]
    for one in waiting:
        loop.submit(one)
    return waiting


def test_what_waits_while_a_batch_commits_is_the_next_batch(recorder: Recorder) -> None:
    loop = begun(recorder, held=True)
    submit(loop, "first")
    until(lambda: recorder.commits_begun, "the first batch commits")
    names = [f"job {number}" for number in range(20)]
    submit(loop, *names)
    recorder.may_commit.set()
    recorder.may_follow.set()
    loop.stop()
    assert recorder.committed == [["first"], names]
    assert flat(recorder.followed) == ["first", *names]


def test_a_batch_has_a_limit(recorder: Recorder) -> None:
    loop = begun(recorder, held=True)
    submit(loop, "first")
    until(lambda: recorder.commits_begun, "the first batch commits")
    names = [str(number) for number in range(BATCH_LIMIT_JOBS + 3)]
    submit(loop, *names)
    recorder.may_commit.set()
    recorder.may_follow.set()
    loop.stop()
    assert [len(batch) for batch in recorder.committed] == [1, BATCH_LIMIT_JOBS, 3]
    assert flat(recorder.committed) == ["first", *names]


def test_the_next_batch_commits_while_one_is_followed(recorder: Recorder) -> None:
    loop = begun(recorder, held=True)
    recorder.may_commit.set()
    submit(loop, "first")
    until(lambda: recorder.committed, "the first batch is committed")
    submit(loop, "second")
    until(lambda: len(recorder.committed) == 2, "the second too, though none is followed")
    submit(loop, "third")
    until(lambda: len(recorder.committed) == 3, "and the third")
    assert recorder.followed == []
    recorder.may_follow.set()
    loop.stop()
    # What gathered meanwhile is followed at once.
    assert recorder.followed == [["first"], ["second", "third"]]


def test_writers_that_come_back_together_stay_in_one_batch(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LEAST_GATHER_SECONDS", SECONDS)
    monkeypatch.setattr(jobs, "MOST_GATHER_SECONDS", SECONDS)
    loop = begun(recorder, held=True)
    (first,) = submit(loop, "first")
    until(lambda: recorder.commits_begun, "the first batch commits")
    submit(loop, "a", "b")
    recorder.may_commit.set()
    until(lambda: recorder.committed, "the first batch is committed")
    recorder.may_follow.set()
    first.future.result(SECONDS)
    # The writer that is answered comes back to the two that wait.
    submit(loop, "c")
    until(lambda: len(recorder.committed) == 2, "three jobs were one batch")
    submit(loop, "d", "e")
    # Two jobs are no batch while three are expected.
    loop.submit(job("f"))
    until(lambda: len(recorder.committed) == 3, "three jobs are one batch again")
    assert recorder.committed[1:] == [["a", "b", "c"], ["d", "e", "f"]]
    loop.stop()


def test_a_writer_that_does_not_come_back_is_not_waited_for(recorder: Recorder) -> None:
    loop = begun(recorder, held=True)
    submit(loop, "first")
    until(lambda: recorder.commits_begun, "the first batch commits")
    submit(loop, "a", "b")
    recorder.may_commit.set()
    recorder.may_follow.set()
    until(lambda: len(recorder.committed) == 2, "two jobs were one batch")
    (alone,) = submit(loop, "c")
    assert alone.future.result(SECONDS) == "c"
    loop.stop()


def test_stop_runs_all_that_was_taken_and_takes_no_more(recorder: Recorder) -> None:
    loop = begun(recorder, held=True)
    names = [str(number) for number in range(30)]
    submit(loop, *names)
    stopping = threading.Thread(target=loop.stop, daemon=True)
    stopping.start()

    def is_refused() -> bool:
        try:
            loop.submit(job("late"))
        except UnavailableError as error:
            return error.reason == "STORE_CLOSING"
        late.append("late")
        return False

    late: list[str] = []
    until(is_refused, "no more is taken")
    recorder.may_commit.set()
    recorder.may_follow.set()
    stopping.join(SECONDS)
    assert not stopping.is_alive()
    assert flat(recorder.committed) == flat(recorder.followed) == names + late
    loop.stop()


def test_many_writers_are_each_answered_once(recorder: Recorder) -> None:
    loop = begun(recorder)

    def write(writer: int) -> None:
        for number in range(50):
            (one,) = submit(loop, f"{writer}.{number}")
            assert one.future.result(SECONDS) == f"{writer}.{number}"

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    loop.stop()
    for writer in range(6):
        own = [name for name in flat(recorder.committed) if name.startswith(f"{writer}.")]
        assert own == [f"{writer}.{number}" for number in range(50)]
    assert sorted(flat(recorder.followed)) == sorted(flat(recorder.committed))
    assert len(set(flat(recorder.committed))) == 300


@pytest.mark.parametrize("where", ["commit", "follow"])
def test_a_defect_is_told_to_who_waits_and_the_loop_goes_on(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fail(batch: Sequence[Job]) -> None:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(recorder, where, fail)
        loop = begun(recorder)
    loop_fails = submit(loop, "a")[0].future
    with pytest.raises(RuntimeError, match="a defect"):
        loop_fails.result(SECONDS)
    with pytest.raises(RuntimeError, match="a defect"):
        submit(loop, "b")[0].future.result(SECONDS)
    loop.stop()


def test_a_stepped_loop_does_nothing_by_itself(recorder: Recorder) -> None:
    recorder.may_commit.set()
    recorder.may_follow.set()
    loop = SteppedLoop()
    loop.start(recorder.commit, recorder.follow)
    assert not loop.commit_batch()
    assert not loop.follow_batch()
    loop.submit(job("a"))
    loop.submit(job("b"))
    assert (recorder.committed, recorder.followed) == ([], [])
    assert loop.commit_batch()
    loop.submit(job("c"))
    assert recorder.committed == [["a", "b"]]
    assert loop.follow_batch()
    assert recorder.followed == [["a", "b"]]
    loop.stop()
    assert recorder.committed[1:] == recorder.followed[1:] == [["c"]]


@pytest.mark.parametrize("answer", [lambda loop: loop.stop(), lambda loop: loop.commit_batch()])
def test_a_stepped_loop_runs_what_a_job_asks_for(answer: Callable[[SteppedLoop], object]) -> None:
    loop = SteppedLoop()
    order: list[str] = []

    def commit(batch: Sequence[Job]) -> None:
        order.extend(one.written_by for one in batch)
        if len(order) == 1:
            loop.submit(job("asked for by a"))

    loop.start(commit, lambda batch: None)
    loop.submit(job("a"))
    answer(loop)
    loop.stop()
    assert order == ["a", "asked for by a"]
