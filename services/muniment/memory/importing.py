"""Taking in the lines of an export.

A line is checked as a whole before anything of it is written, and one that is refused stops no
other. What is here already is passed over, so that the same file can be sent again, to the end,
after whatever stopped it. Nothing that is here is changed or taken away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import (
    ConflictError,
    InvalidArgumentError,
    MunimentError,
    NotFoundError,
    PreconditionError,
)
from muniment.kit.store import Store, Writer
from muniment.kit.store.transaction import missing_row
from muniment.memory.episodes import NewEpisode, find_corrected, keep_episode
from muniment.memory.limits import (
    IMPORT_BATCH_BYTES,
    IMPORT_BATCH_LINES,
    IMPORT_LINE_LIMIT_BYTES,
    IMPORT_REMARKS_LIMIT,
)
from muniment.memory.lines import Closing, Header, Record, read_line
from muniment.memory.pins import find_pinned, keep_pin
from muniment.memory.projects import count_change, find_project, purged_on, purged_through
from muniment.memory.schema import (
    EPISODE_IDS,
    EPISODES,
    PINS,
    TOMBSTONES,
)
from muniment.v1 import memory_pb2, store_pb2

__all__ = ["Import"]

_EPISODE_IDENTITY = (
    "project_id", "session_id", "slot_id", "role", "tool_name", "created_at", "corrects",
    "content_sha256",
)  # fmt: skip
_PIN_IDENTITY = ("project_id", "session_id", "content")

Remark = Callable[[memory_pb2.ImportRemark], None]


@dataclass(frozen=True)
class _Outcome:
    """What became of a line."""

    line: int
    counted_as: str
    """The field of ImportResult."""
    imported: bool = False
    note: str = ""
    error: MunimentError | None = None


class Import:
    """One import under way. Its calls wait for the store, and so belong in a thread."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        written_by: str,
        remark: Remark,
        *,
        revive: bool,
    ) -> None:
        """`revive`: take what was purged here all the same."""
        self._store = store
        self._clock = clock
        self._written_by = written_by
        self._remark = remark
        self._remarks_left = IMPORT_REMARKS_LIMIT
        self._revive = revive
        self._projects: dict[str, memory_pb2.Project] = {}
        self._result = memory_pb2.ImportResult()
        self._line = bytearray()
        self._overlong = False
        self._number = 0
        self._digest = hashlib.sha256()
        self._closed = False
        self._batch: list[tuple[int, Record]] = []
        self._batch_bytes = 0
        self._writing: Future[list[_Outcome]] | None = None

    def take(self, chunk: bytes) -> None:
        """Take the file's next bytes.

        Raises:
            InvalidArgumentError: The file is no export; nothing of it was kept.
            MunimentError: The store cannot be written. Whole lines before were kept.
        """
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._lengthen(chunk[start : end + 1])
            self._end_line()
            start = end + 1
        self._lengthen(chunk[start:])

    def end(self) -> memory_pb2.ImportResult:
        """Take the end of the file, and say what came of it.

        Raises:
            MunimentError: As `take`.
        """
        if self._line or not self._number:
            self._end_line(is_cut=True)
        self._write()
        self._wait()
        if not self._closed:
            self._say(
                _said_of_file(
                    "the end of the file is missing; the whole lines that are there were taken"
                )
            )
        return self._result

    # --- Lines

    def _lengthen(self, part: bytes) -> None:
        self._line += part
        if len(self._line) > IMPORT_LINE_LIMIT_BYTES:
            self._overlong = True
        if self._overlong:
            self._digest.update(self._line)
            self._line.clear()

    def _end_line(self, *, is_cut: bool = False) -> None:
        raw, overlong = bytes(self._line), self._overlong
        self._line.clear()
        self._overlong = False
        self._number += 1
        try:
            if overlong:
                raise _refused(f"is longer than {IMPORT_LINE_LIMIT_BYTES} bytes")
            if self._closed:
                raise _refused("stands behind the closing line")
            record = read_line(raw, first=self._number == 1)
        except InvalidArgumentError as error:
            if self._number == 1:
                raise
            if not is_cut:
                self._refuse(self._number, error)
        else:
            self._accept(record, len(raw))
        self._digest.update(raw)

    def _accept(self, record: Record, size_bytes: int) -> None:
        if isinstance(record, Closing):
            self._close(record)
        elif not isinstance(record, Header):
            self._batch.append((self._number, record))
            self._batch_bytes += size_bytes
            if len(self._batch) >= IMPORT_BATCH_LINES or self._batch_bytes >= IMPORT_BATCH_BYTES:
                self._write()

    def _close(self, closing: Closing) -> None:
        self._closed = True
        self._result.whole = closing.sha256 == self._digest.digest()
        if not self._result.whole:
            self._say(_said_of_file("the file was changed after it was written"))
        if closing.left_out:
            left = f"{closing.left_out} episodes and pins could not be believed when it was written"
            self._say(_said_of_file(f"{left}, and are not in it"))

    def _refuse(self, line: int, error: MunimentError) -> None:
        self._result.refused_lines += 1
        text = f"{error.message}; {error.fix}" if error.fix else error.message
        self._say(
            memory_pb2.ImportRemark(line=line, field=error.field or "", text=text, refused=True)
        )

    def _say(self, remark: memory_pb2.ImportRemark) -> None:
        # What concerns the file as a whole is always said.
        if remark.line:
            self._remarks_left -= 1
        if not remark.line or self._remarks_left >= 0:
            self._remark(remark)

    # --- Batches

    def _write(self) -> None:
        """Write what is gathered; while that goes to the disk, the next lines are read."""
        self._wait()
        batch, self._batch, self._batch_bytes = tuple(self._batch), [], 0
        if batch:
            self._writing = self._store.write(
                lambda writer: self._taking(writer).take(batch), written_by=self._written_by
            )

    def _taking(self, writer: Writer) -> _Taking:
        return _Taking(writer, self._clock, self._projects, revive=self._revive)

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        for outcome in writing.result() if writing else ():
            if outcome.error is not None:
                self._refuse(outcome.line, outcome.error)
                continue
            count: memory_pb2.ImportCount = getattr(self._result, outcome.counted_as)
            count.imported += outcome.imported
            count.present += not outcome.imported
            if outcome.note:
                self._say(memory_pb2.ImportRemark(line=outcome.line, text=outcome.note))


class _Taking:
    """A batch of lines in its transaction."""

    def __init__(
        self,
        writer: Writer,
        clock: Clock,
        projects: dict[str, memory_pb2.Project],
        *,
        revive: bool,
    ) -> None:
        """`projects` are those of the file that were not here."""
        self._writer = writer
        self._clock = clock
        self._projects = projects
        self._revive = revive
        self._tombstones: dict[str, store_pb2.StoredTombstone | None] = {}

    def take(self, batch: Sequence[tuple[int, Record]]) -> list[_Outcome]:
        """Write what is not here yet. Each record is checked before it is written."""
        outcomes = []
        for line, record in batch:
            try:
                outcomes.append(self._take(line, record))
            except MunimentError as error:
                outcomes.append(_Outcome(line, "", error=error))
        return outcomes

    def _take(self, line: int, record: Record) -> _Outcome:
        if isinstance(record, NewEpisode):
            return self._episode(line, record)
        if isinstance(record, memory_pb2.PinnedRule):
            return self._pin(line, record)
        if isinstance(record, memory_pb2.Project):
            return self._project(line, record)
        assert isinstance(record, memory_pb2.PurgedProject)
        return self._tombstone(line, record)

    def _episode(self, line: int, new: NewEpisode) -> _Outcome:
        writer, episode = self._writer, new.description
        reference = writer.get(EPISODE_IDS, episode.episode_id)
        if reference is not None:
            here = writer.get(EPISODES, reference.seq)
            if here is None:
                raise missing_row(EPISODES, reference.seq)
            _demand_same(episode.episode_id, episode, here, _EPISODE_IDENTITY)
            return _Outcome(line, "episodes")
        self._permit(episode.project_id, episode.created_at)
        corrected = find_corrected(writer, episode)
        if episode.HasField("corrects") and corrected is None:
            raise NotFoundError(
                f"its session has no episode {episode.corrects} here",
                reason="CORRECTED_EPISODE_UNKNOWN",
                field="corrects",
                fix="import the file that has it, then this one again",
            )
        keep_episode(writer, new, corrected)
        self._count(episode.project_id, episodes=1)
        return _Outcome(line, "episodes", imported=True)

    def _pin(self, line: int, pin: memory_pb2.PinnedRule) -> _Outcome:
        stored = self._writer.get(PINS, pin.pin_id)
        if stored is not None:
            _demand_same(pin.pin_id, pin, stored.pin, _PIN_IDENTITY)
            away = stored.HasField("removed_at")
            note = f"{pin.pin_id} was taken away here, and stays away" if away else ""
            return _Outcome(line, "pins", note=note)
        if find_pinned(self._writer, pin) is not None:
            return _Outcome(line, "pins")
        self._permit(pin.project_id, pin.created_at)
        keep_pin(self._writer, pin)
        self._count(pin.project_id, pins=1)
        return _Outcome(line, "pins", imported=True)

    def _project(self, line: int, project: memory_pb2.Project) -> _Outcome:
        if find_project(self._writer, project.project_id) is not None:
            return _Outcome(line, "projects")
        self._permit(project.project_id, project.created_at)
        # It is written with the first thing that it has; without one there is nothing to keep.
        self._projects[project.project_id] = project
        return _Outcome(line, "projects", imported=True)

    def _count(self, project_id: str, *, episodes: int = 0, pins: int = 0) -> None:
        context = CallContext(project_id=project_id)
        count_change(
            self._writer,
            self._clock,
            context,
            episodes=episodes,
            pins=pins,
            described=self._projects.get(project_id),
        )

    def _tombstone(self, line: int, purged: memory_pb2.PurgedProject) -> _Outcome:
        project_id = purged.project_id
        # What is here is not taken away; and what was purged here is known better.
        if find_project(self._writer, project_id) or self._known_tombstone(project_id):
            return _Outcome(line, "tombstones")
        tombstone = store_pb2.StoredTombstone(
            project_id=project_id,
            purged_at=purged.purged_at,
            episodes=purged.episodes,
            pins=purged.pins,
        )
        self._put_tombstone(tombstone)
        return _Outcome(line, "tombstones", imported=True)

    def _permit(self, project_id: str, made: Timestamp) -> None:
        """Refuse what was purged here, or note that it comes back.

        Raises:
            PreconditionError: It was purged, or is being purged.
        """
        if purged_through(self._writer, project_id):
            raise PreconditionError(
                f"the project {project_id} is being purged",
                reason="PURGE_UNDER_WAY",
                field="project_id",
                fix="import the file again when that is done",
            )
        tombstone = self._known_tombstone(project_id)
        if tombstone is None or tombstone.HasField("revived_at"):
            return
        if made.ToNanoseconds() > tombstone.purged_at.ToNanoseconds():
            return
        if not self._revive:
            raise PreconditionError(
                f"the project {project_id} was {purged_on(tombstone)}, and this with it",
                reason="LINE_PURGED",
                field="project_id",
                fix="`muniment import --revive` takes it all the same",
            )
        tombstone.revived_at.CopyFrom(timestamp(self._clock))
        self._put_tombstone(tombstone)

    def _known_tombstone(self, project_id: str) -> store_pb2.StoredTombstone | None:
        # It lists what was purged and may be long, so it is read once for all lines of the batch.
        if project_id not in self._tombstones:
            self._tombstones[project_id] = self._writer.get(TOMBSTONES, project_id)
        return self._tombstones[project_id]

    def _put_tombstone(self, tombstone: store_pb2.StoredTombstone) -> None:
        self._tombstones[tombstone.project_id] = tombstone
        self._writer.put(TOMBSTONES, tombstone.project_id, value=tombstone)


def _demand_same(
    name: str,
    line: memory_pb2.Episode | memory_pb2.PinnedRule,
    here: memory_pb2.Episode | memory_pb2.PinnedRule,
    fields: Sequence[str],
) -> None:
    for field in fields:
        if getattr(line, field) != getattr(here, field):
            raise ConflictError(
                f"differs from that of {name}, which is here already",
                reason="LINE_DIFFERS",
                field="content" if field == "content_sha256" else field,
                fix="one of them was changed; `muniment show` prints the one that is here",
            )


def _refused(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, reason="EXPORT_LINE_INVALID")


def _said_of_file(text: str) -> memory_pb2.ImportRemark:
    return memory_pb2.ImportRemark(text=text)
