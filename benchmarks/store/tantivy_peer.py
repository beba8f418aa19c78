"""tantivy on the same terms, filters and questions. Runs in an environment of its own.

It commits once, after everything: how it would take a few rows at a time is another question.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tantivy

from benchmarks.store.recall import CANDIDATES
from muniment.kit.index.analysis import analyse, stem

__all__ = ["TantivyEngine"]

_HEAP_BYTES = 128 * 1024 * 1024
_STEM_BOOST = 0.6


class TantivyEngine:
    """Exact terms and stems in fields, the project as a required term without weight."""

    def __init__(self, folder: Path) -> None:
        """Make it in the folder."""
        self._folder = folder
        builder = tantivy.SchemaBuilder()
        builder.add_unsigned_field("number", stored=True)
        builder.add_text_field("project", tokenizer_name="words", index_option="basic")
        for field in ("exact", "stems"):
            builder.add_text_field(field, tokenizer_name="words", index_option="freq")
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema, path=str(folder))
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer("words", words)
        self._writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        self._searcher: Any = None

    def add(self, project: int, first: int, texts: Sequence[str]) -> None:
        """Take texts, numbered from `first` in their project."""
        for number, text in enumerate(texts, first):
            found = analyse(text)
            document = tantivy.Document()
            document.add_unsigned("number", number)
            document.add_text("project", f"project{project}")
            for field, counts in (("exact", found.exact), ("stems", found.stems)):
                repeated = (term for term, count in counts.items() for _ in range(count))
                document.add_text(field, " ".join(repeated))
            self._writer.add_document(document)

    def finish(self) -> None:
        """Be done with adding."""
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, project: int, terms: Sequence[str]) -> list[int]:
        """Numbers of the best texts of the project."""
        query, occur = tantivy.Query, tantivy.Occur
        words = []
        for term in terms:
            exact = query.term_query(self._schema, "exact", term, "freq")
            by_stem = query.term_query(self._schema, "stems", stem(term), "freq")
            words.append((occur.Should, exact))
            words.append((occur.Should, query.boost_query(by_stem, _STEM_BOOST)))
        own = query.term_query(self._schema, "project", f"project{project}", "basic")
        wanted = query.boolean_query(
            [
                (occur.Must, query.boolean_query(words)),
                (occur.Must, query.boost_query(own, 0.0)),
            ]
        )
        hits = self._searcher.search(wanted, CANDIDATES, count=False).hits
        return [self._searcher.doc(address)["number"][0] for _, address in hits]

    def size_bytes(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self._folder.iterdir())
