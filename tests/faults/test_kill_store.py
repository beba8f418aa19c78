"""A store whose process is killed at random under eight writers, with room on the disk and without.

Each life of the process is killed by SIGKILL. Outside stands a plain account of what was asked for
and what was answered; after each death the files are held against it.
"""

from __future__ import annotations

import os
import random
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.store import Reader
from muniment.kit.store.disk import SystemDisk
from muniment.memory.episodes import read_content
from muniment.memory.indexing import EpisodesAndPins
from muniment.memory.schema import EPISODES, SCHEMA
from tests.support.rows import scan
from tests.support.store_checks import Replica, demand_chain, demand_same_index, digests
from tests.support.store_writers import CONTEXT, WRITERS, Order, content_of
from tests.support.stores import Stepped, demand_sound

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("MUNIMENT_TEST_KILLS", "20"))
DEADLINE_SECONDS = 60.0
KIB, MIB = 1024, 1024**2

NOTHING_KEPT = {"STORE_WRITE_FAILED", "STORE_FULL"}
PERHAPS_KEPT = {"INDEX_UNAVAILABLE"}

Episode = tuple[int, int]
"""A writer and the number of its episode."""


@dataclass
class Account:
    """What was asked for and what came of it, as the outside knows it."""

    next_numbers: list[int] = field(default_factory=lambda: [0] * WRITERS)
    open: set[Episode] = field(default_factory=set)
    """Asked for, and no answer came. Each writer has one at most, and asks for it again."""
    done: dict[Episode, int] = field(default_factory=dict)
    """Acknowledged, with the place in the stream."""
    refused: dict[Episode, str] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)

    def take(self, line: list[str]) -> None:
        """Take in what a writer told."""
        what, episode = line[0], (int(line[1]), int(line[2]))
        if what == "ask":
            self.open.add(episode)
            self.next_numbers[episode[0]] = max(self.next_numbers[episode[0]], episode[1] + 1)
            return
        self.open.remove(episode)
        if what == "done":
            assert episode not in self.refused or self.refused[episode] in PERHAPS_KEPT
            self.done[episode] = int(line[3])
        else:
            self.refused[episode] = line[3]
            self.reasons[line[3]] += 1

    def retried(self) -> list[int | None]:
        """By writer: what is still open."""
        numbers: list[int | None] = [None] * WRITERS
        for writer, number in self.open:
            numbers[writer] = number
        return numbers


class Lives:
    """One store through many lives of its process."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.account = Account()
        self.replica = Replica()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.store_writers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
        )
        self._rest = b""
        self._lines: list[list[str]] = []
        self.child = 0

    def close(self) -> None:
        """End the process that forks, and its child."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def begin(self, **options: Any) -> None:
        """Start a life."""
        account = self.account
        order = Order(
            folder=str(self.folder),
            first=list(account.next_numbers),
            retried=account.retried(),
            seed=self.random.getrandbits(32),
            **options,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(order.to_line().encode())
        self.process.stdin.flush()
        self.child = 0

    def listen(self, until: Callable[[], object], seconds: float = DEADLINE_SECONDS) -> list[str]:
        """Take in lines until that holds, the child ends or the time is over; the last line."""
        line: list[str] = []
        end = time.monotonic() + seconds
        while not until():
            left = end - time.monotonic()
            if left <= 0 or not (line := self._line(left)):
                return []
            if line[0] == "child":
                self.child = int(line[1])
            elif line[0] in ("end", "ready", "unready"):
                if line[0] != "ready":
                    return line
            else:
                self.account.take(line)
        return line

    def kill(self) -> None:
        """Kill the child, and take in its last words."""
        if not self.child:
            self.listen(lambda: self.child)
        os.kill(self.child, signal.SIGKILL)
        assert self.listen(lambda: False) == ["end", str(-signal.SIGKILL)]

    def live(self, seconds: float, **options: Any) -> None:
        """Start a life and end it by SIGKILL after that time."""
        self.begin(**options)
        assert self.listen(lambda: False, seconds) == []
        self.kill()

    def _line(self, seconds: float) -> list[str]:
        stdout = self.process.stdout
        assert stdout is not None
        if not self._lines:
            with selectors.DefaultSelector() as selector:
                selector.register(stdout, selectors.EVENT_READ)
                if not selector.select(seconds):
                    return []
            read = os.read(stdout.fileno(), 1 << 16)
            assert read, "the forking process ended"
            *lines, self._rest = (self._rest + read).split(b"\n")
            self._lines = [line.decode().split() for line in lines]
            if not self._lines:
                return self._line(seconds)
        return self._lines.pop(0)

    # --- What must hold after a death

    def demand_kept(self, *, with_index: bool) -> None:
        """Fail where the files do not fit the account."""
        stepped = Stepped(
            self.folder / "store", schema=SCHEMA, disk=SystemDisk(), map_limit_bytes=64 * MIB
        )
        assert stepped.store.doubts == []
        demand_sound(stepped.store)
        with stepped.store.read() as reader:
            self.demand_account(reader)
            demand_chain(reader)
            self.replica.catch_up(reader, SCHEMA)
            assert self.replica.digests == digests(reader, SCHEMA)
        if with_index:
            index = LexicalIndex(self.folder / "index" / "lexical.sqlite3")
            follower = IndexFollower(index, EpisodesAndPins(), fill_in_background=False)
            stepped.store.follow(follower)
            while follower.fill(stepped.store.read):
                pass
            demand_same_index(stepped.store, index, CONTEXT, ["harbour ledger", "w3n0", "w0n1"])
            index.close()
        stepped.close()

    def demand_account(self, reader: Reader) -> None:
        account = self.account
        found: dict[Episode, int] = {}
        for (seq, *_), _ in scan(reader, EPISODES):
            content = read_content(reader, int(seq))
            writer, number = (int(part) for part in content.split()[0][1:].split("n"))
            assert content == content_of(writer, number, Order.content_bytes)
            assert (writer, number) not in found, "one call was done twice"
            found[writer, number] = int(seq)
        assert account.done.items() <= found.items(), "what was acknowledged is lost"
        refused = {one for one, reason in account.refused.items() if reason in NOTHING_KEPT}
        assert not refused & found.keys(), "what was refused is there"
        known = account.done.keys() | account.refused.keys() | account.open
        assert found.keys() <= known, "what nobody asked for is there"


@pytest.fixture
def lives(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lives]:
    yield from opened(tmp_path, request.node.name)


def opened(folder: Path, name: str) -> Iterator[Lives]:
    seed = int(os.environ.get("SEED", random.SystemRandom().getrandbits(32)))
    lives = Lives(folder, seed)
    try:
        yield lives
    except BaseException:
        sys.stderr.write(f"{name}: SEED={seed}\n")
        raise
    finally:
        lives.close()


@pytest.mark.timeout(20 + 5 * KILLS)
@pytest.mark.parametrize("failing", [0.0, 0.3], ids=["good disk", "failing disk"])
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(
    lives: Lives, failing: float
) -> None:
    kills = KILLS if not failing else max(5, KILLS // 4)
    for number in range(1, kills + 1):
        if lives.random.random() < 0.2:
            # The next life fills a new index while it goes on.
            shutil.rmtree(lives.folder / "index", ignore_errors=True)
        lives.live(lives.random.uniform(0.0, 0.25), failing=failing)
        lives.demand_kept(with_index=number % 50 == 0 or number == kills)
    lives.begin(failing=failing)
    done = len(lives.account.done)
    # A disk that fails at times refuses something sooner or later.
    lives.listen(
        lambda: (
            len(lives.account.done) >= done + 2 * WRITERS
            and bool(lives.account.reasons) >= bool(failing)
        )
    )
    lives.kill()
    lives.demand_kept(with_index=True)
    assert len(lives.account.done) >= done + 2 * WRITERS
    assert set(lives.account.reasons) <= ({"STORE_WRITE_FAILED"} if failing else set())
    assert bool(lives.account.reasons) == bool(failing)


@pytest.mark.timeout(20 + 5 * KILLS)
def test_nothing_acknowledged_is_lost_at_the_limit_of_the_map(lives: Lives) -> None:
    limit = 512 * KIB
    for number in range(max(3, KILLS // 5)):
        lives.begin(map_limit_bytes=limit, first_map_bytes=256 * KIB)
        refusals = lives.account.reasons.total()
        lives.listen(lambda: lives.account.reasons.total() >= refusals + WRITERS)  # noqa: B023
        lives.listen(lambda: False, lives.random.uniform(0.0, 0.05))
        lives.kill()
        lives.demand_kept(with_index=number == 0)
        # More room, and it goes on where it was.
        limit += 512 * KIB
    assert set(lives.account.reasons) == {"STORE_FULL"}
    assert len(lives.account.done) > WRITERS


class Room(Protocol):
    """A place for a home, whose room can be taken and given back while somebody writes there."""

    folder: Path

    def take(self, lives: Lives) -> None:
        """Let the files grow no more, but for a little."""
        ...

    def give(self, lives: Lives) -> None:
        """Let them grow again."""
        ...

    def for_the_next_life(self) -> dict[str, Any]:
        """What a life that begins without room has to be told."""
        ...


class FileLimit:
    """The kernel lets no file of the living process grow beyond what it is, and a little more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, lives: Lives) -> None:
        if Path(f"/proc/{lives.child}").exists():
            self._limit(lives, self._size() + 256 * KIB)

    def give(self, lives: Lives) -> None:
        if Path(f"/proc/{lives.child}").exists():
            self._limit(lives, resource.RLIM_INFINITY)

    def for_the_next_life(self) -> dict[str, Any]:
        return {"file_limit_bytes": self._size()}

    def _size(self) -> int:
        data = self.folder / "store" / "data.mdb"
        return data.stat().st_size if data.exists() else 0

    def _limit(self, lives: Lives, size: int) -> None:
        resource.prlimit(lives.child, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class SmallDisk:
    """A file system of its own in memory, which is filled up to the last byte."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder.parent / "ballast"

    def take(self, lives: Lives) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            block = b"\0" * 65536
            while block:
                try:
                    file.write(block)
                except OSError:
                    block = block[: len(block) // 2]

    def give(self, lives: Lives) -> None:
        self._ballast.unlink(missing_ok=True)

    def for_the_next_life(self) -> dict[str, Any]:
        return {}


@contextmanager
def small_disk(folder: Path, size_mib: int) -> Iterator[SmallDisk]:
    """A file system of that size, mounted there.

    Raises:
        PermissionError: This process may not mount.
    """
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=0700", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        raise PermissionError("no file system can be mounted here")
    try:
        yield SmallDisk(folder / "home")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Room]:
    """A small file system; where it takes root and nobody is it, a limit of the kernel's."""
    with ExitStack() as mounted:
        try:
            room: Room = mounted.enter_context(small_disk(tmp_path / "disk", 48))
        except PermissionError:
            room = FileLimit(tmp_path)
        yield room


def go_through_want_of_room(lives: Lives, room: Room) -> None:
    """A life in which the room ends and comes back, with deaths on both sides of that."""
    account = lives.account
    done, refusals = len(account.done), account.reasons.total()
    lives.begin()
    lives.listen(lambda: len(account.done) >= done + WRITERS)
    room.take(lives)
    lives.listen(lambda: account.reasons.total() >= refusals + WRITERS)
    assert account.reasons.total() >= refusals + WRITERS, "the room did not end"
    if lives.random.random() < 0.5:
        lives.kill()
        room.give(lives)
        lives.demand_kept(with_index=False)
        lives.begin()
    else:
        room.give(lives)
    done = len(account.done)
    lives.listen(lambda: len(account.done) >= done + 2 * WRITERS)
    assert len(account.done) >= done + 2 * WRITERS, "it did not go on"
    lives.kill()
    lives.demand_kept(with_index=True)


def begin_without_room(lives: Lives, room: Room) -> None:
    """A life that begins without room says why it cannot, or lives."""
    room.take(lives)
    lives.begin(**room.for_the_next_life())
    last = lives.listen(lambda: False, 1.0)
    assert not last or last[0] == "unready"
    if last:
        assert last[1] in {"INDEX_UNAVAILABLE", "STORE_UNREADABLE"}
        assert lives.listen(lambda: False) == ["end", "0"]
    else:
        lives.kill()
    room.give(lives)
    lives.live(0.5)
    lives.demand_kept(with_index=True)


@pytest.mark.timeout(20 + 5 * KILLS)
def test_nothing_acknowledged_is_lost_when_files_can_grow_no_more(lives: Lives) -> None:
    room = FileLimit(lives.folder)
    for _ in range(max(2, KILLS // 10)):
        go_through_want_of_room(lives, room)
    assert set(lives.account.reasons) <= NOTHING_KEPT | PERHAPS_KEPT


@pytest.mark.timeout(20 + 5 * KILLS)
def test_nothing_acknowledged_is_lost_when_the_disk_is_full(
    small: Room, request: pytest.FixtureRequest
) -> None:
    for lives in opened(small.folder, request.node.name):
        for _ in range(max(2, KILLS // 10)):
            go_through_want_of_room(lives, small)
        begin_without_room(lives, small)
        assert set(lives.account.reasons) <= NOTHING_KEPT | PERHAPS_KEPT
