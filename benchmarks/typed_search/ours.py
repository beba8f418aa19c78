"""Typed search of this project, over records held in memory."""

from __future__ import annotations

import json
import time

from google.protobuf.timestamp_pb2 import Timestamp

from benchmarks.typed_search.answers import Answer
from benchmarks.typed_search.data import Question, Record
from muniment.kit.index.lexical import Document, LexicalIndex, Progress
from muniment.memory.records.naming import index_key, kind_name, partition_of
from muniment.memory.records.search import Dense, Found, search_records
from muniment.memory.records.texts import RecordText, record_text
from muniment.v1 import records_pb2
from muniment.workflows.verdicts import code_name

__all__ = ["Ours", "kind_of", "text_of"]


def kind_of(name: str) -> records_pb2.RecordKind.ValueType:
    """The kind that the tools call so."""
    return records_pb2.RecordKind.Value(f"RECORD_KIND_{name.upper()}")


def body_of(record: Record) -> object:
    """The body as it is kept."""
    if record.kind == "journal":
        acted = {"kind": record.event_kind, "body": record.body}
        return {"evaluated": None, "acted": acted, "forward": None, "extra": record.more or None}
    if record.kind == "reference" or isinstance(record.body, dict | list):
        return record.body
    return {"value": record.body}


def key_of(record: Record) -> str:
    """The record's key in the index."""
    names = [record.category, record.key] if record.category is not None else [record.key]
    return index_key(kind_of(record.kind), *names)


def text_of(record: Record) -> str:
    """The text that is indexed of the record."""
    return _text(record).text


class Ours:
    """A store of records, and the search over it."""

    def __init__(self, records: list[Record], dense: Dense | None = None) -> None:
        self._index = LexicalIndex(None)
        self._dense = dense
        self._records = {key_of(record): record for record in records}
        documents = [_document(number, record) for number, record in enumerate(records, start=1)]
        self._index.apply(documents, Progress(1, "benchmark", 0))

    def ask(self, question: Question) -> Answer:
        """Search as `memory_search` does without tiers."""
        started = time.perf_counter()
        request = records_pb2.SearchRecordsRequest(query=question.text, limit=10)
        response = search_records(self._index, self._load, request, self._dense)
        seconds = time.perf_counter() - started
        rows = tuple(
            (kind_name(hit.kind), hit.category if hit.HasField("category") else None, hit.key)
            for hit in response.hits
        )
        verdict = response.verdict
        return Answer(code_name(verdict), rows, tuple(verdict.tokens), seconds)

    def _load(self, key: str) -> Found | None:
        record = self._records.get(key)
        if record is None:
            return None
        body = body_of(record)
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        return Found(kind_of(record.kind), record.key, record.category, text, Timestamp())


def _text(record: Record) -> RecordText:
    if record.kind == "journal":
        return record_text((), body_of(record), is_event=True)
    names = tuple(filter(None, (record.category, record.key)))
    return record_text(names, body_of(record), more=record.more)


def _document(number: int, record: Record) -> Document:
    text = _text(record)
    return Document(
        key_of(record),
        text.text,
        partition=partition_of(kind_of(record.kind)),
        place=number,
        number=number,
        series=record.category or ("journal" if record.kind == "journal" else ""),
        values=text.values,
    )
