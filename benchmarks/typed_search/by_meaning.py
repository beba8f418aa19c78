"""A dense index in memory, by any embedder of `muniment.kit.index.embedding`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.typed_search.data import Record
from benchmarks.typed_search.ours import key_of, kind_of, text_of
from muniment.memory.records.meaning import Near
from muniment.v1 import records_pb2

__all__ = ["ByMeaning"]


class ByMeaning:
    """Compares the question with every record."""

    def __init__(self, embedder: Any, records: list[Record]) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}
        self._keys = [key_of(record) for record in records]
        self._kinds = [kind_of(record.kind) for record in records]
        self._vectors = embedder.embed([text_of(record) for record in records])

    def nearest(
        self, text: str, limit: int, kinds: Sequence[records_pb2.RecordKind.ValueType]
    ) -> Sequence[Near]:
        """The records nearest to the text."""
        cosines = self._vectors @ self._embedder.embed([text])[0]
        order = sorted(range(len(self._keys)), key=lambda at: -cosines[at])
        wanted = [at for at in order if self._kinds[at] in kinds][:limit]
        return [Near(self._keys[at], float(cosines[at])) for at in wanted]

    def similarities(self, asked: Sequence[str], texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The cosine of each pair."""
        new = [text for text in dict.fromkeys([*asked, *texts]) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        return [[float(self._known[one] @ self._known[other]) for other in texts] for one in asked]
