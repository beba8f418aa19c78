"""A working tree in memory and in the store, and how it is brought up to the disk.

What was read is compared by size, times and inode; what differs is read again, in parser
processes, committed in batches and given to the graph when somebody wants that. Whatever is asked
meanwhile is answered from what there is.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from muniment.code.frames import ReadRequest
from muniment.code.graph import CodeGraph
from muniment.code.languages import language_of
from muniment.code.paths import shown
from muniment.code.readers import Readers
from muniment.code.reading import READER_VERSION
from muniment.code.tree_rows import TreeRows
from muniment.code.walking import (
    DiskState,
    Listing,
    changed_folders,
    disk_state,
    folder_test,
    folder_times,
    list_files,
    names_in,
)
from muniment.kit import faults
from muniment.kit.clock import Clock, timestamp
from muniment.v1 import code_pb2, store_pb2

__all__ = ["Known", "RunResult", "Tree", "TreeState"]

_BATCH_FILES = 256
"""Most files whose rows are committed together."""

_MET_LIMIT = 20_000

_TICK_NS = 2_000_000_000
"""The coarsest time that disks give."""

_NOWHERE = DiskState(0, 0, 0, 0)


class Known(NamedTuple):
    """What is kept in mind of a file."""

    state: DiskState
    digest: bytes
    language: str
    condition: code_pb2.FileCondition.ValueType
    reader_version: int
    symbols: int


class _Arrived(NamedTuple):
    """A file that was read, and when that began among all readings."""

    turn: int
    row: store_pb2.StoredCodeFile


class _Gone(NamedTuple):
    """A file that is not there any more, and when that was looked at."""

    turn: int
    path: str


@dataclass(frozen=True)
class RunResult:
    """What a look at the whole tree came to."""

    parsed: int
    unchanged: int
    removed: int


@dataclass(frozen=True)
class TreeState:
    """How far a tree is."""

    indexed_at_ns: int | None
    files: int
    symbols: int
    waiting_files: int
    changed_files: int
    is_running: bool
    is_complete: bool
    """A look at the whole tree ended in this process."""
    failure: str
    """Why the last look did not end as it should; empty where it did."""
    note: str
    """What the listing says of itself."""


class Tree:
    """One working tree. Any thread may use it."""

    def __init__(
        self,
        root: bytes,
        tree: store_pb2.StoredCodeTree,
        rows: TreeRows,
        readers: Readers,
        runner: Executor,
        clock: Clock,
    ) -> None:
        """Take in what the store has of the tree; `tree` is its row, or a new one."""
        self.root = root
        self.project_id = tree.project_id
        self._row = tree
        self._rows = rows
        self._readers = readers
        self._runner = runner
        self._clock = clock
        self._turn = threading.Lock()
        """Held by who looks at the whole tree."""
        self._keeping = threading.Lock()
        """Held by who keeps what was read, in the store and then in mind."""
        self._guard = threading.RLock()
        """Held by who touches what follows."""
        self._known: dict[str, Known] = {}
        self._graph = CodeGraph()
        self._pending: dict[str, tuple[str, store_pb2.CodeFacts] | None] = {}
        self._listing: Listing | None = None
        self._folders: dict[bytes, int] = {}
        """When names in the folders of the tree's files changed last."""
        self._unlooked = 0
        """When new names were met that no look has seen yet; 0 where there are none."""
        self._met: set[bytes] = set()
        """Names in them that are none of the tree's, as looks found."""
        self._queued: Future[RunResult] | None = None
        self._turns = itertools.count(1)
        self._taken: dict[str, int] = {}
        """By path the turn of the reading that was taken in last, while others are under way."""
        self._readings = 0
        self._to_read = 0
        self._done = 0
        self._running = False
        self._complete = False
        self._failure = ""
        self._changed: set[str] = set()
        self._forgotten = False
        for row in rows.files():
            self._take(row)
            # A store whose account of the tree is older than its files must not count backwards.
            newest = max((symbol.changed_scan for symbol in row.facts.symbols), default=0)
            self._row.scan = max(self._row.scan, newest)

    # --- Asking

    @contextmanager
    def graph(self) -> Iterator[CodeGraph]:
        """The graph of what is read, for this thread alone until the block ends."""
        with self._guard:
            if self._pending:
                pending, self._pending = self._pending, {}
                self._graph.replace(pending)
            yield self._graph

    def settle(self) -> None:
        """Resolve what is new, so that nobody who asks has to wait for it."""
        with self.graph() as graph:
            graph.settle()

    @property
    def listing(self) -> Listing | None:
        """The newest list of files of this process."""
        return self._listing

    @property
    def progress(self) -> tuple[int, int]:
        """Files that the present look has read, and has to read."""
        return self._done, self._to_read

    def state(self) -> TreeState:
        """How far it is."""
        with self._guard:
            has_ended = self._row.HasField("indexed_at")
            return TreeState(
                indexed_at_ns=self._row.indexed_at.ToNanoseconds() if has_ended else None,
                files=len(self._known),
                symbols=sum(known.symbols for known in self._known.values()),
                waiting_files=self._to_read - self._done,
                changed_files=len(self._changed),
                is_running=self._running,
                is_complete=self._complete,
                failure=self._failure,
                note=self._listing.note if self._listing is not None else "",
            )

    def known(self) -> dict[str, Known]:
        """By path what is kept in mind of each file."""
        with self._guard:
            return dict(self._known)

    def knows(self, path: str) -> bool:
        """Whether that file is one of the tree."""
        return path in self._known

    def readable(self) -> list[str]:
        """Paths of the files that have symbols, or might."""
        with self._guard:
            return [path for path, known in self._known.items() if known.language]

    def has_new_names(self) -> bool:
        """Whether a folder of the tree has a name that the last look did not meet.

        A tree that is watched is told of it too, but a moment later.
        """
        now_ns = self._clock.now_ns()
        with self._guard:
            for folder, changed_at in changed_folders(self.root, self._folders):
                self._folders[folder] = _if_past(changed_at, now_ns)
                inside = names_in(self.root, folder)
                new = {
                    name for name in inside if name not in self._folders and name not in self._met
                }
                new = {name for name in new if shown(name) not in self._known}
                if new:
                    self._unlooked = next(self._turns)
                self._met |= new
            if len(self._met) > _MET_LIMIT:
                self._met.clear()
            return self._unlooked > 0

    def has_other_list(self) -> bool:
        """Whether what decides which files the tree has is another than at the last look."""
        listing = self._listing
        return listing is None or any(
            disk_state(path) != state for path, state in listing.deciding.items()
        )

    def differing(self, paths: Iterable[str]) -> list[str]:
        """Those of the files that the disk describes in another way than their rows do."""
        is_real = folder_test(self.root)
        return [
            path
            for path in paths
            if (known := self._known.get(path)) is not None
            and known.state != self._disk_state(path, is_real)
        ]

    # --- Bringing up to the disk

    def look(self) -> Future[RunResult]:
        """Look at the whole tree, after now; who asks before it begins gets the same look."""
        with self._guard:
            if self._queued is None:
                self._queued = self._runner.submit(self._run_queued)
            return self._queued

    def run(self, *, anew: bool) -> Future[RunResult]:
        """Look at the whole tree because somebody wants it indexed; anew reads every file."""
        return self._runner.submit(self._run, anew=anew)

    def reread(self, paths: Iterable[str]) -> None:
        """Bring these files up to the disk; those that are gone go."""
        is_real = folder_test(self.root)
        gone: list[_Gone] = []
        wanted: list[str] = []
        with self._reading():
            for path in dict.fromkeys(paths):
                turn = next(self._turns)
                if path in self._known:
                    if self._disk_state(path, is_real) is None:
                        gone.append(_Gone(turn, path))
                    else:
                        wanted.append(path)
            if wanted or gone:
                scan = self._next_scan()
                with self._guard:
                    self._changed.update(wanted, (one.path for one in gone))
                if gone:
                    self._take_in((), gone, anew=False)
                for _ in self._read(wanted, scan, anew=False):
                    pass
                self.settle()

    def forget(self) -> None:
        """Let nothing be kept of it any more. Who is at it ends with ForgottenError, soon."""
        with self._keeping:
            self._forgotten = True

    def _run_queued(self) -> RunResult:
        with self._turn:
            with self._guard:
                self._queued = None
            return self._guarded(anew=False, is_wanted=False)

    def _run(self, *, anew: bool) -> RunResult:
        with self._turn:
            return self._guarded(anew=anew, is_wanted=True)

    def _guarded(self, *, anew: bool, is_wanted: bool) -> RunResult:
        self._running = True
        try:
            with self._reading():
                result = self._look(anew=anew, is_wanted=is_wanted)
        except Exception as error:
            self._failure = str(error)
            raise
        else:
            self._failure, self._complete = "", True
            return result
        finally:
            self._running = False
            self._done = self._to_read = 0

    def _look(self, *, anew: bool, is_wanted: bool) -> RunResult:
        turn, began_ns = next(self._turns), self._clock.now_ns()
        listing = list_files(self.root)
        with self._guard:
            self._listing = listing
            times = folder_times(self.root, listing)
            self._folders = {one: _if_past(time, began_ns) for one, time in times.items()}
            wanted = sorted(
                path
                for path, state in listing.files.items()
                if anew or self._is_to_read(path, state)
            )
            removed = [_Gone(turn, path) for path in self._known if path not in listing.files]
            self._to_read = len(wanted)
            has_run = self._row.HasField("indexed_at")
        parsed = 0
        if wanted or removed:
            scan = self._next_scan()
            if removed:
                self._take_in((), removed, anew=False)
            for arrived, count in self._read(wanted, scan, anew=anew):
                self._done += arrived
                parsed += count
            self.settle()
        # A look that found all as it was leaves the moment, by which maps say how old they are.
        if parsed or removed or is_wanted or not has_run:
            faults.reach("code.run_ending")
            with self._guard:
                self._row.indexed_at.CopyFrom(timestamp(self._clock))
                self._changed.clear()
            self._take_in((), (), anew=False)
        with self._guard:
            if self._unlooked < turn:
                self._unlooked = 0
        return RunResult(parsed, len(listing.files) - parsed, len(removed))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Remember which readings were taken in, for as long as there are any under way."""
        with self._guard:
            self._readings += 1
        try:
            yield
        finally:
            with self._guard:
                self._readings -= 1
                if not self._readings:
                    self._taken.clear()

    def _is_to_read(self, path: str, state: DiskState) -> bool:
        known = self._known.get(path)
        return known is None or known.state != state or known.reader_version != READER_VERSION

    def _disk_state(self, path: str, is_real: Callable[[bytes], bool]) -> DiskState | None:
        raw = self._raw(path)
        folder = raw.rpartition(b"/")[0]
        return disk_state(self.root + b"/" + raw) if is_real(folder) else None

    def _raw(self, path: str) -> bytes:
        listing = self._listing
        return listing.raw(path) if listing is not None else path.encode()

    def _next_scan(self) -> int:
        with self._guard:
            self._row.scan += 1
            return self._row.scan

    def _read(self, paths: list[str], scan: int, *, anew: bool) -> Iterator[tuple[int, int]]:
        """Read the files, and take them in; yields how many arrived, and were other than before."""
        arrived: list[_Arrived] = []
        asked: dict[str, tuple[int, DiskState]] = {}
        for some in self._readers.read(self._requests(paths, scan, asked, anew=anew)):
            for row in some:
                turn, state = asked.pop(row.path)
                if row.condition == code_pb2.FILE_CONDITION_PARSER_FAILED:
                    _note_failure(row, state)
                arrived.append(_Arrived(turn, row))
            news = 0
            if len(arrived) >= _BATCH_FILES:
                news = self._take_in(arrived, (), anew=anew)
                arrived = []
            yield len(some), news
        if arrived:
            yield 0, self._take_in(arrived, (), anew=anew)

    def _requests(
        self, paths: list[str], scan: int, asked: dict[str, tuple[int, DiskState]], *, anew: bool
    ) -> Iterator[ReadRequest]:
        """What to read; each file's turn, and how the disk describes it, go to `asked`."""
        for path in paths:
            location = self.root + b"/" + self._raw(path)
            asked[path] = next(self._turns), disk_state(location) or _NOWHERE
            before = self._rows.file(path) if path in self._known else None
            if before is not None and anew:
                before.ClearField("digest")
            packed = before.SerializeToString() if before is not None else b""
            yield ReadRequest(scan, location, path, packed)

    def _take_in(self, arrived: Sequence[_Arrived], removed: Sequence[_Gone], *, anew: bool) -> int:
        """Keep what was read or is gone; how many files were other than before.

        Of a file that several read at once, as a query and a watch do, the one counts that began
        last: what it read is not older than any that began before it.
        """
        with self._keeping:
            if self._forgotten:
                raise ForgottenError("the tree is not kept any more")
            with self._guard:
                newest = [one for one in arrived if one.turn > self._taken.get(one.row.path, 0)]
                # One that went while it was about to be read has no inode.
                rows = [one.row for one in newest if one.row.inode]
                gone = [_Gone(one.turn, one.row.path) for one in newest if not one.row.inode]
                gone += [one for one in removed if one.turn > self._taken.get(one.path, 0)]
                tree = store_pb2.StoredCodeTree()
                tree.CopyFrom(self._row)
            self._rows.keep(tree, rows, [one.path for one in gone])
            with self._guard:
                news = sum(self._take(row) or anew for row in rows)
                self._drop(one.path for one in gone)
                self._taken.update((one.row.path, one.turn) for one in newest)
                self._taken.update((one.path, one.turn) for one in gone)
        return news

    def _is_news(self, row: store_pb2.StoredCodeFile) -> bool:
        known = self._known.get(row.path)
        return (
            known is None
            or known.digest != row.digest
            or known.condition != row.condition
            or known.reader_version != row.reader_version
        )

    def _take(self, row: store_pb2.StoredCodeFile) -> bool:
        """Keep the row in mind; whether it says anything new."""
        is_news = self._is_news(row)
        self._known[row.path] = Known(
            DiskState(row.size_bytes, row.mtime_ns, row.ctime_ns, row.inode),
            row.digest,
            row.language,
            row.condition,
            row.reader_version,
            len(row.facts.symbols),
        )
        if is_news:
            self._pending[row.path] = row.language, row.facts
        return is_news

    def _drop(self, paths: Iterable[str]) -> None:
        for path in paths:
            if self._known.pop(path, None) is not None:
                self._pending[path] = None


class ForgottenError(Exception):
    """Its project was forgotten while the tree was read."""


def _if_past(time_ns: int, now_ns: int) -> int:
    """When names in a folder changed; 0, which it never is, where more may change at that time."""
    return time_ns if time_ns < now_ns - _TICK_NS else 0


def _note_failure(row: store_pb2.StoredCodeFile, state: DiskState) -> None:
    """A file that a parser died of is not tried again before it changes."""
    row.size_bytes, row.mtime_ns, row.ctime_ns, row.inode = state
    row.language = language_of(row.path, b"") or ""
