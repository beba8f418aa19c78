"""What the memory's tables say of each other, and what its index should have."""

from __future__ import annotations

import hashlib
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from google.protobuf.message import Message

from muniment.kit.errors import TamperedError, UnavailableError
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.progress import Report
from muniment.kit.store import Reader, Table
from muniment.kit.store.findings import Findings, Kind, counted
from muniment.kit.store.keys import KeyPart, as_number
from muniment.memory.counts import counts_in, seqs_of_block
from muniment.memory.indexing import episode_key, pin_key
from muniment.memory.pins import scope_of
from muniment.memory.schema import (
    CONTENTS,
    EPISODE_IDS,
    EPISODES,
    PIN_COUNTS,
    PIN_SCOPES,
    PINS,
    PROJECTS,
    PURGES,
    SESSIONS,
    SUPERSESSIONS,
    TOKEN_COUNTS,
    TOMBSTONES,
)
from muniment.v1 import maintenance_pb2, memory_pb2, store_pb2

__all__ = ["MemoryChecks"]

INDEX = "index"
"""What findings about the index have for a table."""

_KIND = maintenance_pb2.FindingKind

_INDEX_TELLS = {
    _KIND.FINDING_KIND_INDEX_MISSING: "it is there and cannot be found",
    _KIND.FINDING_KIND_INDEX_SURPLUS: "it can be found and is not there",
}

_BY_SEQ = (EPISODES.name, CONTENTS.name, SUPERSESSIONS.name, SESSIONS.name)
"""Tables whose keys end with an episode's place."""

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class MemoryChecks:
    """What a verification of the store has to know of the memory (`DomainChecks`)."""

    index: LexicalIndex
    read: Callable[[], AbstractContextManager[Reader]]
    settle: Callable[[], None]
    """Returns when the index has taken all that was committed before."""

    def name(self, reader: Reader, table: str, key: tuple[KeyPart, ...]) -> str:
        """The row's key as a reader knows it: an episode's or a pin's id where it can be had."""
        return _name(reader, table, key)

    def mend(self, kind: Kind, table: str, key: str) -> str | None:
        """What to do about a finding, where it is more than to bring back a backup."""
        if table == INDEX:
            return "make the index anew with `muniment reindex`"
        if table in (PINS.name, PIN_SCOPES.name) and key:
            pin_id = key if key.startswith("pin_") else "PIN_ID"
            return (
                "pin the rule again in the same words with `muniment pin`, or take it away with"
                f" `muniment unpin {pin_id}`"
            )
        if table in (TOKEN_COUNTS.name, PIN_COUNTS.name) and key:
            return (
                "estimates are shown in place of these counts; `muniment restart memory` has them"
                " made anew where a model serves"
            )
        return None

    def check_rows(
        self, reader: Reader, state: store_pb2.StoredState, findings: Findings, report: Report
    ) -> None:
        """Hold episodes, pins and projects against each other."""
        _RowCheck(reader, state, findings, report).run()

    def check_index(self, findings: Findings, report: Report) -> None:
        """Hold the index against what should be found."""
        try:
            wrong = self._index_differences(report)
            if wrong:
                # What was committed while they were looked at differs once and not twice.
                wrong &= self._index_differences(report)
        except UnavailableError as error:
            findings.add(_KIND.FINDING_KIND_INDEX_MISSING, INDEX, "", error.message)
            return
        with self.read() as reader:
            for kind, key in sorted(wrong):
                table, _, name = key.partition(":")
                is_episode = table == "episode" and name.isdigit()
                told = _episode_name(reader, int(name)) if is_episode else name or key
                findings.add(kind, INDEX, told, _INDEX_TELLS[kind])

    def _index_differences(self, report: Report) -> set[tuple[Kind, str]]:
        self.settle()
        with self.read() as reader:
            return set(_index_differences(reader, self.index, report))


def _index_differences(
    reader: Reader, index: LexicalIndex, report: Report
) -> Iterator[tuple[Kind, str]]:
    """Keys that the index lacks, and such as it should not have."""
    last = reader.newest_number(EPISODES)
    # While it is made anew, what is older is not there yet.
    first = max(index.progress.below, 1)
    has_episode, pins = bytearray(last + 1), set()
    keys = index.keys()
    for key in keys:
        kind, _, name = key.partition(":")
        if kind == "pin":
            pins.add(name)
        elif kind == "episode" and name.isdecimal() and 0 < int(name) <= last:
            has_episode[int(name)] = 1
        else:
            yield _KIND.FINDING_KIND_INDEX_SURPLUS, key
    for seq in counted(range(1, last + 1), "comparing the index", last, report):
        if has_episode[seq] or seq >= first:
            yield from _difference(
                episode_key(seq), _episode_can_be_found(reader, seq), bool(has_episode[seq])
            )
    known = {str(key[0]) for key, _ in reader.survey(PINS) if key}
    for pin_id in sorted(known | pins):
        yield from _difference(pin_key(pin_id), _pin_can_be_found(reader, pin_id), pin_id in pins)


def _difference(key: str, should: bool | None, has: bool) -> Iterator[tuple[Kind, str]]:
    """What is wrong with a key; nothing where it cannot be known whether it should be there."""
    if should is True and not has:
        yield _KIND.FINDING_KIND_INDEX_MISSING, key
    elif should is False and has:
        yield _KIND.FINDING_KIND_INDEX_SURPLUS, key


def _episode_can_be_found(reader: Reader, seq: int) -> bool | None:
    try:
        return reader.get(EPISODES, seq) is not None and reader.get(CONTENTS, seq) is not None
    except TamperedError:
        return None


def _pin_can_be_found(reader: Reader, pin_id: str) -> bool | None:
    try:
        stored = reader.get(PINS, pin_id)
    except TamperedError:
        return None
    return stored is not None and not stored.HasField("removed_at")


def _name(reader: Reader, table: str, key: tuple[KeyPart, ...]) -> str:
    last = key[-1] if key else ""
    if table in _BY_SEQ and isinstance(last, int):
        return _episode_name(reader, last)
    if table == TOKEN_COUNTS.name and isinstance(last, int):
        seqs = seqs_of_block(last)
        return f"numbers {max(seqs[0], 1)} to {seqs[-1]}"
    if table == PIN_SCOPES.name:
        for _, stored in reader.survey(PINS):
            if not isinstance(stored, TamperedError) and scope_of(stored.pin) == key:
                return stored.pin.pin_id
    return " ".join(part.hex() if isinstance(part, bytes) else str(part) for part in key)


def _episode_name(reader: Reader, seq: int) -> str:
    try:
        episode = reader.get(EPISODES, seq)
    except TamperedError:
        episode = None
    if episode is not None:
        return episode.episode_id
    for key, reference in reader.survey(EPISODE_IDS):
        if not isinstance(reference, TamperedError) and reference.seq == seq:
            return str(key[0])
    return f"number {seq}"


class _RowCheck:
    def __init__(
        self,
        reader: Reader,
        state: store_pb2.StoredState,
        findings: Findings,
        report: Report,
    ) -> None:
        self._reader = reader
        self._state = state
        self._findings = findings
        self._report = report
        self._counts: Counter[str] = Counter()
        """Episodes by project."""
        self._corrections: dict[str, memory_pb2.Episode] = {}
        """By the id of what they correct: the newest."""
        self._purged = sorted(
            (run.first, run.last)
            for _, tombstone in self._believed(TOMBSTONES)
            for run in tombstone.seqs
        )
        self._being_purged = max(
            (purge.through_seq for _, purge in self._believed(PURGES)), default=0
        )

    def run(self) -> None:
        present = self._check_episodes()
        for table in (CONTENTS, EPISODE_IDS, SESSIONS):
            # Every episode has its row; so there are others only if there are more.
            if self._reader.count(table) > present:
                self._check_surplus(table)
        self._check_supersessions()
        pins = self._check_pins()
        self._check_counts(pins)
        self._check_token_counts()
        self._check_pin_counts()

    # --- Episodes

    def _check_episodes(self) -> int:
        """How many there are, whether they can be believed or not."""
        expected, present = 1, 0
        total = self._reader.count(EPISODES)
        for address, raw in counted(
            self._reader.raw_rows(EPISODES), "comparing episodes", total, self._report
        ):
            seq = as_number(address)
            if seq is None or seq > self._last_seq():
                continue
            self._check_gap(expected, seq - 1)
            expected, present = seq + 1, present + 1
            try:
                row = self._reader.open_row(EPISODES, address, raw)
            except TamperedError:
                continue
            self._check_episode(memory_pb2.Episode.FromString(row.payload.value))
        self._check_gap(expected, self._last_seq())
        return present

    def _last_seq(self) -> int:
        return self._state.numbers.get(EPISODES.name, 0) or self._reader.last_number(EPISODES)

    def _check_gap(self, first: int, last: int) -> None:
        for seq in range(max(first, self._being_purged + 1), last + 1):
            if not self._was_purged(seq):
                told = "an episode of that place was recorded, and is gone"
                name = _episode_name(self._reader, seq)
                self._add(_KIND.FINDING_KIND_ROW_MISSING, EPISODES, name, told)

    def _was_purged(self, seq: int) -> bool:
        place = bisect_right(self._purged, (seq, sys.maxsize))
        return place > 0 and seq <= self._purged[place - 1][1]

    def _is_going(self, seq: int) -> bool:
        """Whether a purge that is under way has it to take away, and what belongs to it."""
        return seq <= self._being_purged and self._was_purged(seq)

    def _check_episode(self, episode: memory_pb2.Episode) -> None:
        if self._is_going(episode.seq):
            return
        self._counts[episode.project_id] += 1
        if self._was_purged(episode.seq):
            told = "the episode was purged, and put back"
            self._add(_KIND.FINDING_KIND_ROW_OLDER, EPISODES, episode.episode_id, told)
        if episode.HasField("corrects"):
            self._corrections[episode.corrects] = episode
        content = self._told(CONTENTS, episode.episode_id, episode.seq)
        if content is not None:
            raw = content.text.encode()
            if hashlib.sha256(raw).digest() != episode.content_sha256:
                told = "the content is not the one that the episode describes"
                self._broken(CONTENTS, episode.episode_id, told)
        places = (
            (EPISODE_IDS, (episode.episode_id,)),
            (SESSIONS, (episode.project_id, episode.session_id, episode.seq)),
        )
        for table, key in places:
            reference = self._told(table, episode.episode_id, *key)
            if reference is not None and reference.seq != episode.seq:
                told = f"it leads to number {reference.seq}, and the episode has {episode.seq}"
                self._broken(table, episode.episode_id, told)

    def _told(self, table: Table[M], name: str, *key: KeyPart) -> M | None:
        """The row that another speaks of; None where it is missing or known to be bad."""
        try:
            found = self._reader.get(table, *key)
        except TamperedError:
            return None
        if found is None:
            self._add(_KIND.FINDING_KIND_ROW_MISSING, table, name, "the row is gone")
        return found

    def _check_surplus(self, table: Table[Any]) -> None:
        """Find the rows of the table that speak of no episode."""
        total = self._reader.count(table)
        step = f"comparing {table.name}"
        for key, value in counted(self._reader.survey(table), step, total, self._report):
            if isinstance(value, TamperedError):
                continue
            seq = key[0] if table is CONTENTS else value.seq
            assert isinstance(seq, int)
            try:
                episode = self._reader.get(EPISODES, seq)
            except TamperedError:
                continue
            if episode is None and seq > self._being_purged:
                self._broken(table, _name(self._reader, table.name, key), "it is of no episode")

    def _check_supersessions(self) -> None:
        newest: dict[int, memory_pb2.Episode] = {}
        for corrected, episode in self._corrections.items():
            reference = self._told(EPISODE_IDS, corrected, corrected)
            if reference is not None:
                newest[reference.seq] = episode
        for seq, episode in newest.items():
            name = _episode_name(self._reader, seq)
            supersession = self._told(SUPERSESSIONS, name, seq)
            if supersession is not None and supersession.by_seq != episode.seq:
                told = f"it names {supersession.by_episode_id}, and {episode.episode_id} is newer"
                self._broken(SUPERSESSIONS, name, told)
        for key, supersession in self._believed(SUPERSESSIONS):
            if key[0] not in newest and not self._is_going(int(key[0])):
                name = _name(self._reader, SUPERSESSIONS.name, key)
                told = f"{supersession.by_episode_id} does not correct it"
                self._broken(SUPERSESSIONS, name, told)

    # --- Pins and projects

    def _check_pins(self) -> Counter[str]:
        """Pins in force by project."""
        pins: Counter[str] = Counter()
        for _, stored in self._believed(PINS):
            pin = stored.pin
            if stored.HasField("removed_at"):
                continue
            reference = self._told(PIN_SCOPES, pin.pin_id, *scope_of(pin))
            if reference is not None and reference.pin_id != pin.pin_id:
                self._broken(PIN_SCOPES, pin.pin_id, f"{reference.pin_id} stands in its place")
        for key, reference in self._believed(PIN_SCOPES):
            pins[str(key[0])] += 1
            told_pin = self._told(PINS, reference.pin_id, reference.pin_id)
            if told_pin is None:
                continue
            if told_pin.HasField("removed_at") or scope_of(told_pin.pin) != key:
                told = "it is listed where it does not hold, or holds no more"
                self._broken(PIN_SCOPES, reference.pin_id, told)
        return pins

    def _check_counts(self, pins: Counter[str]) -> None:
        projects = {str(key[0]): stored for key, stored in self._believed(PROJECTS)}
        busy = {str(key[0]) for key, _ in self._believed(PURGES)}
        for project_id in sorted((set(projects) | set(self._counts) | set(pins)) - busy):
            stored = projects.get(project_id) or self._told(PROJECTS, project_id, project_id)
            if stored is None:
                continue
            project = stored.project
            if project.episodes != self._counts[project_id]:
                self._check_count(project_id, "episodes", project.episodes, SESSIONS)
            if project.pins != pins[project_id]:
                self._check_count(project_id, "pins", project.pins, PIN_SCOPES)

    def _check_count(self, project_id: str, what: str, kept: int, table: Table[Any]) -> None:
        """Count entries, since rows that cannot be believed are counted too."""
        there = sum(1 for _ in self._reader.survey(table, project_id))
        if kept != there:
            told = f"it counts {kept} {what}, and there are {there}"
            self._add(_KIND.FINDING_KIND_COUNT_WRONG, PROJECTS, project_id, told)

    # --- Counts of tokens

    def _check_token_counts(self) -> None:
        for key, row in self._believed(TOKEN_COUNTS):
            for seq in sorted(chain(*counts_in(int(key[0]), row).values())):
                if not self._reader.has(EPISODES, seq) and seq > self._being_purged:
                    name = _name(self._reader, TOKEN_COUNTS.name, key)
                    self._broken(TOKEN_COUNTS, name, f"it counts number {seq}, which is not there")

    def _check_pin_counts(self) -> None:
        for key, row in self._believed(PIN_COUNTS):
            for one in row.pins:
                pin = self._told(PINS, one.pin_id, one.pin_id)
                if pin is not None and pin.pin.project_id != key[0]:
                    told = f"it counts {one.pin_id}, which is of another project"
                    self._broken(PIN_COUNTS, str(key[0]), told)

    # --- Common

    def _believed(self, table: Table[M]) -> Iterator[tuple[tuple[KeyPart, ...], M]]:
        for key, value in self._reader.survey(table):
            if not isinstance(value, TamperedError):
                yield key, value

    def _broken(self, table: Table[Any], name: str, told: str) -> None:
        self._add(_KIND.FINDING_KIND_REFERENCE_BROKEN, table, name, told)

    def _add(self, kind: Kind, table: Table[Any], name: str, told: str) -> None:
        self._findings.add(kind, table.name, name, told)
