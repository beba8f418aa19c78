"""The labelled questions and their records, and LoCoMo's conversations as records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "Question", "Record", "Talk", "read_questions", "read_records", "read_talks"]

FOLDER = Path(__file__).resolve().parents[2] / "tests/data/typed_search"


@dataclass(frozen=True)
class Record:
    """A record of any kind."""

    kind: str
    category: str | None
    key: str
    body: Any
    more: Any = None
    """Of a reference: its metadata. Of an event: its category and name."""
    event_kind: str = ""

    @property
    def label(self) -> tuple[str, str | None, str]:
        """How the labels name it."""
        return self.kind, self.category, self.key


@dataclass(frozen=True)
class Question:
    """A question and what is right."""

    id: str
    text: str
    group: str
    relevant: frozenset[tuple[str, str | None, str]]
    """Empty where no record answers."""
    causes: frozenset[str]


@dataclass(frozen=True)
class Talk:
    """A conversation of LoCoMo, with its answerable questions."""

    records: list[Record]
    questions: list[Question]


def read_records() -> list[Record]:
    """The records of the set, in order."""
    records, events = [], 0
    for line in (FOLDER / "records.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] == "entity":
            records.append(Record("entity", row["category"], row["name"], row["body"]))
        elif row["kind"] == "journal":
            about = {name: row[name] for name in ("category", "name") if name in row}
            records.append(
                Record("journal", None, str(events), row["body"], about, row["event_kind"])
            )
            events += 1
        else:
            records.append(Record(row["kind"], None, row["key"], row["body"], row.get("metadata")))
    return records


def read_questions(half: str) -> list[Question]:
    """The questions of that half alone."""
    questions = []
    for line in (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["half"] != half:
            continue
        questions.append(
            Question(
                row["id"],
                row["question"],
                row["class"],
                frozenset((kind, category, key) for kind, category, key in row.get("relevant", [])),
                frozenset(row.get("causes", [])),
            )
        )
    return questions


def read_talks(path: Path) -> Iterator[Talk]:
    """LoCoMo's ten conversations: a turn is an entity, its session the category.

    Questions of categories 1 to 4 that have evidence; the fifth is of those without an answer.
    """
    for sample in json.loads(path.read_text(encoding="utf-8")):
        talk = sample["conversation"]
        records = []
        for session, turns in talk.items():
            if not re.fullmatch(r"session_\d+", session):
                continue
            for turn in turns:
                body = {
                    "speaker": turn["speaker"],
                    "text": turn["text"],
                    "date": talk.get(f"{session}_date_time", ""),
                }
                if turn.get("blip_caption"):
                    body["image"] = turn["blip_caption"]
                records.append(Record("entity", session, turn["dia_id"], body))
        categories = {record.key: record.category for record in records}
        questions = []
        for row in sample["qa"]:
            found = re.findall(r"D:?(\d+):(\d+)", " ".join(row.get("evidence") or []))
            named = [f"D{int(session)}:{int(turn)}" for session, turn in found]
            if row["category"] != 5 and named:
                relevant = frozenset(("entity", categories.get(key), key) for key in named)
                group = f"locomo {row['category']}"
                questions.append(Question("", row["question"], group, relevant, frozenset()))
        yield Talk(records, questions)
