"""A store, its index and two clients in one process, on virtual time and seeded chance.

Nothing here waits, and nothing comes from outside the seed: the same seed makes the same run, to
the last byte of its trace. The disk is slow, refuses commits, and forgets at a crash whatever was
not made durable; the index's files may be lost, old or damaged after it. The clients commit, pin,
recall, send calls again with the same key, and take calls back, and believe nothing but answers.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lmdb
import pytest

from muniment.kit import faults
from muniment.kit.context import CallContext
from muniment.kit.errors import UnavailableError
from muniment.kit.ids import IdMaker
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex
from muniment.memory.indexing import EpisodesAndPins
from muniment.memory.pins import list_pins
from muniment.memory.schema import SCHEMA
from tests.support.crashes import Crash
from tests.support.seams import SeededRandomness
from tests.support.simulated_client import Client, House, Trace
from tests.support.store_checks import demand_chain, demand_same_index
from tests.support.stores import QuickDisk, Stepped, demand_sound

__all__ = ["SimulationError", "simulate"]

_CRASH_AT_POINT = 0.02
_CRASH_IN_SYNC = 0.01
_LIFE_SECONDS = 3600.0
_RETENTION_CHANGES = 60


class SimulationError(AssertionError):
    """A run that went wrong; says how to see it again."""

    def __init__(self, seed: int, trace: Trace, error: BaseException) -> None:
        last = "\n".join(trace.lines[-60:])
        super().__init__(f"SEED={seed} goes wrong: {error!r}\n{last}")


class _Clock:
    """Time that passes when the simulation says so."""

    def __init__(self) -> None:
        self._now_ns = 1_750_000_000_000_000_000
        self._begun_ns = self._now_ns

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._now_ns

    def monotonic(self) -> float:
        """Seconds since the simulation began."""
        return (self._now_ns - self._begun_ns) / 1e9

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self._now_ns += int(seconds * 1e9)


class _ForgetfulDisk(QuickDisk):
    """Keeps through a crash what was made durable, and nothing else; slow, and full at times."""

    def __init__(self, durable: Path, clock: _Clock, chance: random.Random, trace: Trace) -> None:
        super().__init__()
        self._durable = durable
        self._clock = clock
        self._chance = chance
        self._trace = trace
        self.is_full = False

    def committing(self, environment: lmdb.Environment) -> None:
        self._clock.pass_by(self._chance.expovariate(200.0))
        if self.is_full and self._chance.random() < 0.5:
            self._trace.note("disk", "refuses a commit")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def committed(self, environment: lmdb.Environment) -> None:
        self._clock.pass_by(self._chance.expovariate(200.0))
        if self._chance.random() < _CRASH_IN_SYNC:
            if self._chance.random() < 0.5:
                self._sync(environment)
            raise Crash("sync")
        self._sync(environment)

    def _sync(self, environment: lmdb.Environment) -> None:
        shutil.copyfile(Path(environment.path()) / "data.mdb", self._durable)


class _Follower(IndexFollower):
    """A follower whose disk is full at times."""

    def __init__(self, index: LexicalIndex, disk: _ForgetfulDisk, chance: random.Random) -> None:
        super().__init__(index, EpisodesAndPins(), fill_in_background=False)
        self._disk = disk
        self._chance = chance

    def catch_up(self, read: Any) -> None:
        if self._disk.is_full and self._chance.random() < 0.3:
            raise UnavailableError("the disk is full", reason="INDEX_UNAVAILABLE")
        super().catch_up(read)


class _World:
    """Everything that a seed decides."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.clock = _Clock()
        self.trace = Trace(self.clock)
        self.randomness = SeededRandomness(seed)
        self.sealed = self.chance.random() < 0.4
        self.lives = 0
        self.durable = folder / "durable.mdb"
        self.reading = ExitStack()
        self._long_look: tuple[Any, bytes] | None = None
        self._open()
        ids = IdMaker(self.clock, self.randomness)
        self.house = House(self.clock, ids, self.trace, self.stepped.store, self.index)
        self.clients = [
            self._client("ann", "proj_one", "sa"),
            self._client("bob", self.chance.choice(["proj_one", "proj_two"]), "sb"),
        ]

    def _client(self, name: str, project: str, session: str) -> Client:
        context = CallContext(project_id=project, session_id=session, caller=name)
        return Client(name, context, random.Random(self.chance.getrandbits(64)), self.house)

    # --- Lives

    def _open(self) -> None:
        self.lives += 1
        home = self.folder / f"life-{self.lives}"
        (home / "store").mkdir(mode=0o700, parents=True)
        if self.durable.exists():
            shutil.copyfile(self.durable, home / "store" / "data.mdb")
        self.disk = _ForgetfulDisk(self.durable, self.clock, self.chance, self.trace)
        self.stepped = Stepped(
            home / "store",
            sealed=self.sealed,
            schema=SCHEMA,
            disk=self.disk,
            clock=self.clock,
            randomness=self.randomness,
            retention_changes=_RETENTION_CHANGES,
            reply_life_seconds=_LIFE_SECONDS,
        )
        assert self.stepped.store.doubts == []
        self.index_path = home / "index" / "lexical.sqlite3"
        if self.lives > 1 and not self.sealed:
            self._bring_index_over(self.folder / f"life-{self.lives - 1}" / "index")
        self.index = LexicalIndex(None if self.sealed else self.index_path)
        self.follower = _Follower(self.index, self.disk, self.chance)
        self.stepped.store.follow(self.follower)

    def _bring_index_over(self, before: Path) -> None:
        """What a crash leaves of the index: it as it was, an old copy, a part of it, or nothing."""
        old = self.folder / "old-index"
        fate = self.chance.choices(["whole", "old", "cut", "lost"], weights=[6, 2, 1, 1])[0]
        source = old if fate == "old" and old.exists() else before
        self.trace.note("disk", f"index is {fate}")
        if fate != "lost":
            shutil.copytree(source, self.index_path.parent)
        if fate == "cut":
            size = self.index_path.stat().st_size
            os.truncate(self.index_path, self.chance.randrange(size))

    def crash(self, why: str) -> None:
        """Die, and come back with what the disk kept."""
        self.trace.note("world", f"CRASH ({why}) at position {self.stepped.store.position}")
        self.reading.close()
        self._long_look = None
        self.stepped.die()
        self.index.close()
        for client in self.clients:
            client.lose()
        self._open()
        self.house.store, self.house.index = self.stepped.store, self.index
        position, progress = self.stepped.store.position, self.index.progress
        self.trace.note("world", f"opens at {position}; index at {progress.position}")
        self.demand_kept()

    def reach(self, point: str) -> None:
        """Pass a fault point, or die there."""
        if self.chance.random() < _CRASH_AT_POINT:
            raise Crash(point)

    # --- Steps

    def step(self) -> None:
        """One thing happens."""
        deeds: dict[Callable[[], Any], int] = {
            self._let_a_client_act: 60,
            self._commit: 14,
            self._follow: 14,
            self._fill: 4,
            self._let_time_pass: 3,
            self._change_the_disk: 2,
            self._look_for_long: 2,
            self._copy_index: 1,
            lambda: self.crash("power"): 1,
        }
        try:
            self.chance.choices(list(deeds), weights=list(deeds.values()))[0]()
        except Crash as crash:
            self.crash(crash.point)
        self.clock.pass_by(self.chance.expovariate(1000.0))

    def _let_a_client_act(self) -> None:
        self.chance.choice(self.clients).act()

    def _commit(self) -> None:
        if self.stepped.loop.commit_batch():
            state = self.stepped.look(lambda reader: reader.state())
            self.trace.note("store", f"commits {state.position} {state.chain.hex()[:12]}")

    def _follow(self) -> None:
        if self.stepped.loop.follow_batch():
            self.trace.note("store", f"is followed to {self.index.progress.position}")
            for client in self.clients:
                client.hear()

    def _fill(self) -> None:
        if self.follower.fill(self.stepped.store.read):
            self.trace.note("index", f"has nothing below {self.index.progress.below}")

    def _let_time_pass(self) -> None:
        # A call that is repeated after its reply's life is another call, so none may wait so long.
        is_quiet = all(client.is_at_rest for client in self.clients)
        self.clock.pass_by(self.chance.choice([1.0, 100.0, 4000.0]) if is_quiet else 1.0)

    def _change_the_disk(self) -> None:
        self.disk.is_full = not self.disk.is_full
        self.trace.note("disk", "is full" if self.disk.is_full else "has room")

    def _copy_index(self) -> None:
        if self.index_path.exists():
            shutil.rmtree(self.folder / "old-index", ignore_errors=True)
            shutil.copytree(self.index_path.parent, self.folder / "old-index")

    def _look_for_long(self) -> None:
        """Begin a long look, or end it: it shows what it showed, and marks nothing."""
        if self._long_look is None:
            reader = self.reading.enter_context(self.stepped.store.read())
            self._long_look = reader, self._pins(reader)
            return
        reader, pins = self._long_look
        assert self._pins(reader) == pins
        self.reading.close()
        self._long_look = None

    def _pins(self, reader: Any) -> bytes:
        pins = list_pins(reader, "proj_one", None)
        assert not pins.tampered_pins
        return pins.SerializeToString(deterministic=True)

    # --- What must hold

    def demand_kept(self) -> None:
        """Hold the store to what the clients were told."""
        with self.stepped.store.read() as reader:
            for client in self.clients:
                client.demand_kept(reader)
            demand_chain(reader)

    def settle(self) -> None:
        """Let everything come to rest, and look at all of it."""
        self.disk.is_full = False
        while not all(client.is_at_rest for client in self.clients):
            try:
                self._commit()
                self._follow()
            except Crash as crash:
                self.crash(crash.point)
        self.demand_kept()
        demand_sound(self.stepped.store)
        self.follower.catch_up(self.stepped.store.read)
        while self.follower.fill(self.stepped.store.read):
            pass
        context = self.clients[0].context
        demand_same_index(self.stepped.store, self.index, context, ["harbour tide", "ann1 always"])
        for client in self.clients:
            client.recall()
        self.trace.note("world", f"rests at {self.stepped.store.position}")

    def close(self) -> None:
        """Let go of all files."""
        self.reading.close()
        self.stepped.die()
        self.index.close()


def simulate(seed: int, steps: int, folder: Path) -> Trace:
    """Run the seed's world for so many steps.

    Raises:
        SimulationError: Something that must hold did not.
    """
    world = _World(seed, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "reach", world.reach)
        try:
            for _ in range(steps):
                world.step()
            world.settle()
        except BaseException as error:
            raise SimulationError(seed, world.trace, error) from error
        finally:
            world.close()
    return world.trace
