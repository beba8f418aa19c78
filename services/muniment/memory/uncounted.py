"""What is still to be counted by a tokenizer: pins first, then new episodes, then older ones.

What was counted is read from the store, so whoever looks again goes on where the last one ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from muniment.kit.errors import TamperedError
from muniment.kit.store import Reader
from muniment.memory.counts import (
    BLOCK_SEQS,
    block_of,
    counted_by,
    read_block,
    read_costs,
    seqs_of_block,
)
from muniment.memory.episodes import read_content
from muniment.memory.limits import RECOUNT_BATCH_BYTES, RECOUNT_BATCH_TEXTS, RECOUNT_LIMIT_BYTES
from muniment.memory.pins import changed_pins, pins_in_force
from muniment.memory.projects import purged_through
from muniment.memory.schema import EPISODES
from muniment.v1 import memory_pb2, store_pb2

__all__ = ["Portion", "Uncounted"]

_FAILURES_LIMIT = 3
"""A text that was in so many calls that failed, all but the first alone, stays estimated."""

_BLOCKS_AT_ONCE = 64
"""What is looked through in one moment of the store."""


@dataclass
class Portion:
    """Texts to be counted in one call: of pins, or of episodes."""

    texts: list[str] = field(default_factory=list)
    pins: list[memory_pb2.PinnedRule] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    size_bytes: int = 0
    is_suspect: bool = False
    """Its text was in a call that failed, and goes alone."""

    @property
    def names(self) -> list[int | str]:
        """Of what the texts are: seqs, and ids of pins."""
        return [*self.seqs, *(pin.pin_id for pin in self.pins)]

    def has_room(self, size_bytes: int, *, is_suspect: bool) -> bool:
        """Whether a text goes into the same call."""
        return not self.texts or (
            not (is_suspect or self.is_suspect)
            and len(self.texts) < RECOUNT_BATCH_TEXTS
            and self.size_bytes + size_bytes <= RECOUNT_BATCH_BYTES
        )

    def add(self, text: str, size_bytes: int, *, is_suspect: bool) -> None:
        """Take the text."""
        self.texts.append(text)
        self.size_bytes += size_bytes
        self.is_suspect = is_suspect


class Uncounted:
    """One way through all that a tokenizer has not counted."""

    def __init__(self, tokenizer: str, incarnation: str) -> None:
        """Of that life of the store."""
        self.tokenizer = tokenizer
        self.incarnation = incarnation
        self.counted = 0
        """How many episodes the tokenizer has counted. Who adds some says so here."""
        self._gaps = -1
        self._left: set[int | str] = set()
        self._failures: Counter[int | str] = Counter()
        self._watched: memory_pb2.WatchPosition | None = None
        self._pins: dict[str, memory_pb2.PinnedRule] = {}
        self._newest = self._through = 0
        """Seqs: the newest there is, and up to which those that came meanwhile are counted."""
        self._below: int | None = None
        """The blocks below wait to be looked at."""

    @property
    def uncountable(self) -> int:
        """How many episodes stay estimated, of those that were looked at."""
        return sum(1 for one in self._left if isinstance(one, int))

    def next(self, reader: Reader) -> Portion | None:
        """What to count next; an empty portion where there is more to look at, None at the end."""
        self._look_around(reader)
        if not self._pins:
            self._look_for_pins(reader)
        if self._pins:
            return self._of_pins()
        if self._through < self._newest:
            return self._of_new(reader)
        return self._of_old(reader) if self._below else None

    def done(self, portion: Portion) -> None:
        """Take note that the portion was counted and kept."""
        for name in portion.names:
            self._failures.pop(name, None)
        for pin in portion.pins:
            self._pins.pop(pin.pin_id, None)

    def failed(self, portion: Portion) -> None:
        """Take note that the portion was not counted, and may be why."""
        self._failures.update(portion.names)
        hopeless = {name for name in portion.names if self._failures[name] >= _FAILURES_LIMIT}
        self._left |= hopeless
        for name in hopeless:
            del self._failures[name]
            self._pins.pop(str(name), None)

    def _look_around(self, reader: Reader) -> None:
        """See what came, and count anew where something was purged."""
        self._newest = reader.newest_number(EPISODES)
        if self._below is None:
            self._through = self._newest
            self._below = block_of(self._newest) + 1
        gaps = self._newest - reader.count(EPISODES)
        if gaps != self._gaps:
            self._gaps = gaps
            self.counted = counted_by(reader, self.tokenizer)
            self._left = {
                one for one in self._left if isinstance(one, str) or reader.has(EPISODES, one)
            }

    # --- Pins

    def _look_for_pins(self, reader: Reader) -> None:
        """Find the pins that are not counted, of all projects or of those whose pins changed."""
        projects = set[str]()
        is_sure = self._watched is not None
        while True:
            found = changed_pins(reader, self._watched)
            is_sure = is_sure and not found.missed
            projects.update(found.project_ids)
            is_last = self._watched in (None, found.position) or found.missed
            self._watched = found.position
            if is_last:
                break
        costs: dict[str, Mapping[str, store_pb2.StoredPinCount]] = {}
        for project_id in projects if is_sure else (None,):
            for pin in pins_in_force(reader, project_id):
                if isinstance(pin, TamperedError) or pin.pin_id in self._left:
                    continue
                if pin.project_id not in costs:
                    costs[pin.project_id] = read_costs(reader, pin.project_id)
                kept = costs[pin.project_id].get(pin.pin_id)
                if kept is None or (kept.tokenizer, kept.kind) != (self.tokenizer, pin.kind):
                    self._pins[pin.pin_id] = pin

    def _of_pins(self) -> Portion:
        portion = Portion()
        for pin in self._pins.values():
            size_bytes, is_suspect = len(pin.rendered.encode()), pin.pin_id in self._failures
            if not portion.has_room(size_bytes, is_suspect=is_suspect):
                break
            portion.pins.append(pin)
            portion.add(pin.rendered, size_bytes, is_suspect=is_suspect)
        return portion

    # --- Episodes

    def _of_new(self, reader: Reader) -> Portion:
        portion = Portion()
        last = block_of(self._newest)
        for number in range(block_of(self._through + 1), last + 1)[:_BLOCKS_AT_ONCE]:
            if not self._gather(reader, number, portion):
                break
            if not portion.texts:
                self._through = min(self._newest, seqs_of_block(number)[-1])
        return portion

    def _of_old(self, reader: Reader) -> Portion:
        portion = Portion()
        for number in range((self._below or 0) - 1, -1, -1)[:_BLOCKS_AT_ONCE]:
            if not self._gather(reader, number, portion):
                break
            if not portion.texts:
                self._below = number
        return portion

    def _gather(self, reader: Reader, number: int, portion: Portion) -> bool:
        """Take what is not counted of the block, newest first. False where there is no room."""
        counted = read_block(reader, number).get(self.tokenizer, {})
        if len(counted) == BLOCK_SEQS:
            return True
        for seq in reversed(seqs_of_block(number)):
            if not 0 < seq <= self._newest or seq in counted or seq in self._left:
                continue
            size_bytes = self._size_of(reader, seq)
            if size_bytes is None:
                continue
            is_suspect = seq in self._failures
            if not portion.has_room(size_bytes, is_suspect=is_suspect):
                return False
            try:
                text = read_content(reader, seq)
            except TamperedError:
                self._left.add(seq)
                continue
            portion.seqs.append(seq)
            portion.add(text, size_bytes, is_suspect=is_suspect)
        return True

    def _size_of(self, reader: Reader, seq: int) -> int | None:
        """The episode's size; None where it is gone, or stays estimated."""
        try:
            episode = reader.get(EPISODES, seq)
            if episode is None or seq <= purged_through(reader, episode.project_id):
                return None
        except TamperedError:
            episode = None
        if episode is None or episode.content_bytes > RECOUNT_LIMIT_BYTES:
            self._left.add(seq)
            return None
        return episode.content_bytes
