"""Counts of episodes and pins by the serving model's tokenizer, and showing them to who reads.

They stand beside what they count, and are derived from it: a count that is missing, or cannot be
believed, gives way to the estimate with which the text was stored. A count is exact only where
the tokenizer that made it is known to be the serving model's, and that is asked at each reading.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from muniment.kit.errors import TamperedError
from muniment.kit.store import Reader, Writer
from muniment.memory.schema import EPISODES, PIN_COUNTS, PIN_SCOPES, TOKEN_COUNTS
from muniment.v1 import memory_pb2, store_pb2

__all__ = [
    "BLOCK_SEQS",
    "NewestCounts",
    "Progress",
    "Serving",
    "block_of",
    "counted_by",
    "counts_in",
    "forget_cost",
    "forget_costs",
    "forget_counts",
    "keep_costs",
    "keep_counts",
    "read_block",
    "read_costs",
    "seqs_of_block",
]

BLOCK_SEQS = 256
"""Counts are kept by the block: a listing reads few rows for many episodes."""

_KNOWN_BLOCKS = 512
"""Blocks that are kept in mind, of about 1 KiB each."""

_Block = tuple[tuple[str, bytes], ...]
"""Who counted, and the counts as they are stored."""

_KEPT = struct.Struct("<I")
"""One more than a count."""

BlockCounts = dict[str, dict[int, int]]
"""By tokenizer and seq what it counts. An episode is counted by one of them only."""


@dataclass(frozen=True)
class Progress:
    """Which tokenizer serves, and how far the episodes are counted by it."""

    tokenizer: str
    exact_episodes: int
    uncountable_episodes: int
    """They stay estimated."""


def block_of(seq: int) -> int:
    """The block in which the episode's count is kept."""
    return seq // BLOCK_SEQS


def seqs_of_block(block: int) -> range:
    """The seqs whose counts are kept there."""
    return range(block * BLOCK_SEQS, (block + 1) * BLOCK_SEQS)


# --- Reading


class NewestCounts:
    """The counts of one moment of the store, for who shows episodes and pins of it."""

    def __init__(
        self,
        reader: Reader,
        serving: str | None,
        read: Callable[[Reader, int], _Block],
    ) -> None:
        """`serving` is the tokenizer that is exact; None where none is known to be."""
        self._reader = reader
        self._serving = serving
        self._read = read
        self._blocks: dict[int, _Block] = {}
        self._costs: dict[str, Mapping[str, store_pb2.StoredPinCount]] = {}

    def show(self, episode: memory_pb2.Episode) -> memory_pb2.Episode:
        """The same episode, with its newest count."""
        number, place = divmod(episode.seq, BLOCK_SEQS)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._read(self._reader, number)
        tokens = episode.tokens
        # An estimate may have come from elsewhere as more than that.
        tokens.exact = False
        for tokenizer, counts in block:
            kept = _KEPT.unpack_from(counts, 4 * place)[0] if 4 * place < len(counts) else 0
            if kept:
                tokens.count_tokens = kept - 1
                tokens.tokenizer = tokenizer
                tokens.exact = tokenizer == self._serving
        return episode

    def show_cost(self, pin: memory_pb2.PinnedRule) -> memory_pb2.PinnedRule:
        """The same pin, with the newest count of what prompts show of it."""
        if pin.project_id not in self._costs:
            self._costs[pin.project_id] = read_costs(self._reader, pin.project_id)
        kept = self._costs[pin.project_id].get(pin.pin_id)
        if kept is not None and kept.kind == pin.kind:
            pin.token_cost.count_tokens = kept.count_tokens
            pin.token_cost.tokenizer = kept.tokenizer
            pin.token_cost.exact = kept.tokenizer == self._serving
        return pin


class Serving:
    """What is known of the serving model's tokenizer: told by who counts, asked by who reads."""

    def __init__(self) -> None:
        self.progress: Progress | None = None
        """None where no model is known to serve."""
        self._blocks: dict[int, tuple[bytes, _Block]] = {}

    def counts(self, reader: Reader) -> NewestCounts:
        """The counts of that moment of the store."""
        tokenizer = self.progress.tokenizer if self.progress else None
        return NewestCounts(reader, tokenizer, self._block)

    def _block(self, reader: Reader, number: int) -> _Block:
        """Who counted what in the block. What has the same bytes as before is not opened again."""
        raw = reader.unopened(TOKEN_COUNTS, number)
        if raw is None:
            return ()
        known = self._blocks.get(number)
        if known is None or known[0] != raw:
            row = _row(reader, number)
            known = raw, tuple((one.tokenizer, one.counts) for one in row.by_tokenizer)
            if len(self._blocks) >= _KNOWN_BLOCKS:
                self._blocks.clear()
            self._blocks[number] = known
        return known[1]


def read_costs(reader: Reader, project_id: str) -> dict[str, store_pb2.StoredPinCount]:
    """By pin the counts that are kept of the project; none where they cannot be believed."""
    try:
        row = reader.get(PIN_COUNTS, project_id)
    except TamperedError:
        row = None
    return {one.pin_id: one for one in row.pins} if row else {}


def read_block(reader: Reader, number: int) -> BlockCounts:
    """The counts of the block; none where they cannot be believed."""
    return counts_in(number, _row(reader, number))


def counts_in(number: int, row: store_pb2.StoredTokenCounts) -> BlockCounts:
    """What the block's row says."""
    seqs = seqs_of_block(number)
    return {
        one.tokenizer: {seqs[place]: kept - 1 for place, kept in enumerate(_numbers(one)) if kept}
        for one in row.by_tokenizer
    }


def counted_by(reader: Reader, tokenizer: str) -> int:
    """How many episodes the tokenizer has counted."""
    total = 0
    for _, row in reader.survey(TOKEN_COUNTS):
        for one in () if isinstance(row, TamperedError) else row.by_tokenizer:
            if one.tokenizer == tokenizer:
                numbers = _numbers(one)
                total += len(numbers) - numbers.count(0)
    return total


def _numbers(one: store_pb2.StoredCountsOfTokenizer) -> tuple[int, ...]:
    return struct.unpack(f"<{len(one.counts) // 4}I", one.counts)


def _row(reader: Reader, number: int) -> store_pb2.StoredTokenCounts:
    try:
        row = reader.get(TOKEN_COUNTS, number)
    except TamperedError:
        row = None
    return row or store_pb2.StoredTokenCounts()


# --- Writing


def keep_counts(writer: Writer, tokenizer: str, counts: Mapping[int, int]) -> int:
    """Keep by seq what the tokenizer counts, of the episodes that are still there.

    How many of them it had not counted before.
    """
    there = {seq: count for seq, count in counts.items() if writer.has(EPISODES, seq)}
    added = 0
    for number, seqs in _by_block(there).items():
        kept = _without(read_block(writer, number), seqs, but=tokenizer)
        own = kept.setdefault(tokenizer, {})
        added += len(seqs - own.keys())
        own |= {seq: there[seq] for seq in seqs}
        _put_block(writer, number, kept)
    return added


def forget_counts(writer: Writer, seqs: Iterable[int]) -> None:
    """Let nothing be kept of the episodes' counts."""
    for number, gone in _by_block(seqs).items():
        _put_block(writer, number, _without(read_block(writer, number), gone))


def _by_block(seqs: Iterable[int]) -> dict[int, set[int]]:
    blocks: defaultdict[int, set[int]] = defaultdict(set)
    for seq in seqs:
        blocks[block_of(seq)].add(seq)
    return blocks


def _without(kept: BlockCounts, seqs: Set[int], *, but: str | None = None) -> BlockCounts:
    """The counts without those of the seqs, save those of one tokenizer."""
    return {
        tokenizer: {
            seq: count for seq, count in counts.items() if tokenizer == but or seq not in seqs
        }
        for tokenizer, counts in kept.items()
    }


def _put_block(writer: Writer, number: int, kept: BlockCounts) -> None:
    row = store_pb2.StoredTokenCounts()
    for tokenizer, counts in kept.items():
        if counts:
            places = range(number * BLOCK_SEQS, max(counts) + 1)
            by_place = [counts[seq] + 1 if seq in counts else 0 for seq in places]
            packed = struct.pack(f"<{len(by_place)}I", *by_place)
            row.by_tokenizer.add(tokenizer=tokenizer, counts=packed)
    if row.by_tokenizer:
        writer.put(TOKEN_COUNTS, number, value=row)
    else:
        writer.delete(TOKEN_COUNTS, number)


def keep_costs(
    writer: Writer, tokenizer: str, counted: Sequence[tuple[memory_pb2.PinnedRule, int]]
) -> None:
    """Keep what the tokenizer counts of the pins, of those that are still in force."""
    by_project: defaultdict[str, dict[str, store_pb2.StoredPinCount]] = defaultdict(dict)
    for pin, count in counted:
        by_project[pin.project_id][pin.pin_id] = store_pb2.StoredPinCount(
            pin_id=pin.pin_id, kind=pin.kind, tokenizer=tokenizer, count_tokens=count
        )
    for project_id, fresh in by_project.items():
        in_force = {
            reference.pin_id
            for _, reference in writer.survey(PIN_SCOPES, project_id)
            if not isinstance(reference, TamperedError)
        }
        kept = read_costs(writer, project_id) | fresh
        _put_costs(writer, project_id, [one for id_, one in kept.items() if id_ in in_force])


def forget_cost(writer: Writer, project_id: str, pin_id: str) -> None:
    """Let nothing be kept of the pin's count."""
    costs = read_costs(writer, project_id)
    if costs.pop(pin_id, None) is not None:
        _put_costs(writer, project_id, list(costs.values()))


def forget_costs(writer: Writer, project_id: str) -> None:
    """Let nothing be kept of the counts of the project's pins."""
    writer.delete(PIN_COUNTS, project_id)


def _put_costs(writer: Writer, project_id: str, costs: Sequence[store_pb2.StoredPinCount]) -> None:
    if costs:
        writer.put(PIN_COUNTS, project_id, value=store_pb2.StoredPinCounts(pins=costs))
    else:
        writer.delete(PIN_COUNTS, project_id)
