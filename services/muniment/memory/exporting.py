"""Writing a project, or all of them, as the lines of an export.

What an export holds is settled when it begins; its episodes are read page by page, each page in a
moment of its own, so that a slow reader holds nothing up. That is sound since episodes never
change: they can only be purged, and then the export ends with an error.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.errors import PreconditionError, TamperedError
from muniment.kit.store import Reader
from muniment.memory.counts import Serving
from muniment.memory.episodes import read_content
from muniment.memory.limits import EXPORT_PAGE_BYTES, EXPORT_PAGE_EPISODES
from muniment.memory.lines import (
    Closing,
    Header,
    episode_line,
    pin_line,
    project_line,
    tombstone_line,
)
from muniment.memory.pins import pins_in_force
from muniment.memory.projects import as_purged, known_project
from muniment.memory.schema import EPISODES, PROJECTS, SESSIONS, TOMBSTONES
from muniment.v1 import memory_pb2, store_pb2

__all__ = ["Export"]


class Export:
    """One export under way."""

    def __init__(
        self,
        reader: Reader,
        project_id: str | None,
        exporter: str,
        created_at: Timestamp,
        serving: Serving,
    ) -> None:
        """Settle what is exported: one project, or all for None.

        Raises:
            NotFoundError: There is no such project, or it was purged.
        """
        self._only = project_id
        self._serving = serving
        self._left_out = 0
        tombstones = self._read_tombstones(reader)
        self._purge_times = _purge_times(tombstones)
        self._purged = _Runs(tombstones)
        self._projects = self._read_projects(reader)
        self._pins = self._read_pins(reader)
        self._seqs = self._read_seqs(reader)
        self._next = 0
        self._episodes = 0
        self._lines = 0
        self._digest = hashlib.sha256()
        self._size_bytes = 0
        self._done = False
        self._in_force = [as_purged(one) for one in tombstones if not one.HasField("revived_at")]
        self._in_force.sort(key=lambda one: (one.purged_at.ToNanoseconds(), one.project_id))
        state = _state(reader)
        header = Header(exporter, state.incarnation, state.position, created_at)
        self._head = self._head_lines(header)

    @property
    def episodes(self) -> int:
        """How many episodes are written."""
        return self._episodes

    @property
    def total(self) -> int:
        """How many episodes there are to write, about."""
        return len(self._seqs)

    @property
    def done(self) -> bool:
        """Whether all but the closing line is written."""
        return self._done

    def page(self, reader: Reader) -> bytes:
        """The next lines. It may be empty before the end."""
        page = bytearray()
        for line in chain(self._head, self._episode_lines(reader)):
            page += line
            self._lines += 1
            if len(page) >= EXPORT_PAGE_BYTES:
                break
        else:
            self._done = self._next >= len(self._seqs)
        self._digest.update(page)
        self._size_bytes += len(page)
        return bytes(page)

    def end(self, reader: Reader) -> tuple[bytes, memory_pb2.ExportResult]:
        """The closing line, and what came of it all.

        Raises:
            PreconditionError: A project was purged meanwhile, and so is in the lines in part.
        """
        if _purge_times(self._read_tombstones(reader)) != self._purge_times:
            raise PreconditionError(
                "a project was purged while it was exported; what was written is no export",
                reason="EXPORT_OVERTAKEN",
                fix="throw the file away and export again",
            )
        closing = Closing(
            lines=self._lines,
            projects=len(self._projects),
            episodes=self._episodes,
            pins=len(self._pins),
            tombstones=len(self._in_force),
            left_out=self._left_out,
            sha256=self._digest.digest(),
        )
        line = closing.to_line()
        return line, memory_pb2.ExportResult(
            projects=closing.projects,
            episodes=closing.episodes,
            pins=closing.pins,
            tombstones=closing.tombstones,
            left_out=closing.left_out,
            size_bytes=self._size_bytes + len(line),
            sha256=closing.sha256,
        )

    # --- What is settled at the beginning

    def _read_tombstones(self, reader: Reader) -> list[store_pb2.StoredTombstone]:
        if self._only is not None:
            found = reader.get(TOMBSTONES, self._only)
            return [] if found is None else [found]
        every = (one for _, one in reader.survey(TOMBSTONES))
        return [one for one in every if not isinstance(one, TamperedError)]

    def _read_projects(self, reader: Reader) -> list[memory_pb2.Project]:
        if self._only is not None:
            return [known_project(reader, self._only)]
        projects = []
        for _, stored in reader.survey(PROJECTS):
            if isinstance(stored, TamperedError):
                # Its episodes and pins are exported all the same, and make it anew.
                self._left_out += 1
            elif stored.project.episodes or stored.project.pins:
                projects.append(stored.project)
        return sorted(projects, key=lambda one: (one.created_at.ToNanoseconds(), one.project_id))

    def _read_pins(self, reader: Reader) -> list[memory_pb2.PinnedRule]:
        pins = []
        for pin in pins_in_force(reader, self._only):
            if isinstance(pin, TamperedError):
                self._left_out += 1
            else:
                pins.append(pin)
        # Ids sort by time.
        return sorted(pins, key=lambda pin: pin.pin_id)

    def _read_seqs(self, reader: Reader) -> Sequence[int]:
        if self._only is None:
            return range(1, reader.newest_number(EPISODES) + 1)
        seqs = array("Q")
        for _, reference in reader.survey(SESSIONS, self._only):
            if isinstance(reference, TamperedError):
                self._left_out += 1
            else:
                seqs.append(reference.seq)
        return array("Q", sorted(seqs))

    # --- Lines

    def _head_lines(self, header: Header) -> Iterator[bytes]:
        yield header.to_line()
        yield from map(tombstone_line, self._in_force)
        yield from map(project_line, self._projects)
        yield from map(pin_line, self._pins)

    def _episode_lines(self, reader: Reader) -> Iterator[bytes]:
        last = min(self._next + EXPORT_PAGE_EPISODES, len(self._seqs))
        counts = self._serving.counts(reader)
        while self._next < last:
            seq = self._seqs[self._next]
            self._next += 1
            if seq in self._purged:
                continue
            try:
                episode = reader.get(EPISODES, seq)
                content = read_content(reader, seq)
            except TamperedError:
                episode = None
            if episode is None:
                self._left_out += 1
                continue
            self._episodes += 1
            yield episode_line(counts.show(episode), content)


class _Runs:
    """Seqs that were purged."""

    def __init__(self, tombstones: Iterable[store_pb2.StoredTombstone]) -> None:
        runs = sorted((run.first, run.last) for one in tombstones for run in one.seqs)
        self._firsts = array("Q", (first for first, _ in runs))
        self._lasts = array("Q", (last for _, last in runs))

    def __contains__(self, seq: int) -> bool:
        place = bisect_right(self._firsts, seq) - 1
        return place >= 0 and seq <= self._lasts[place]


def _purge_times(tombstones: Iterable[store_pb2.StoredTombstone]) -> dict[str, int]:
    return {one.project_id: one.purged_at.ToNanoseconds() for one in tombstones}


def _state(reader: Reader) -> store_pb2.StoredState:
    try:
        return reader.state()
    except TamperedError:
        # What can be believed is exported from a store in doubt too.
        return store_pb2.StoredState()
