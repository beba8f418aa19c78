"""The lines of an export: JSON, one object a line, as docs/export.md describes them.

Writing is deterministic: fixed keys in a fixed order, so that the same store gives the same lines.
Reading checks a line as a whole: every field, its type and limit, and the content's digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.errors import InvalidArgumentError
from muniment.kit.names import check_name
from muniment.memory.episodes import NewEpisode
from muniment.memory.limits import EPISODE_LIMIT_BYTES, PATHS_LIMIT, PIN_LIMIT_BYTES, ROOTS_LIMIT
from muniment.v1 import memory_pb2

__all__ = [
    "Closing",
    "Header",
    "Record",
    "episode_line",
    "pin_line",
    "project_line",
    "read_line",
    "tombstone_line",
]

_FORMAT = "muniment-export"
_VERSION = 1

_ROLES: dict[int, str] = {
    role: name.removeprefix("ROLE_").lower() for name, role in memory_pb2.Role.items() if role
}
_KINDS: dict[int, str] = {
    kind: name.removeprefix("PIN_KIND_").lower()
    for name, kind in memory_pb2.PinKind.items()
    if kind
}
_EPISODE_ID = re.compile(r"ep_[0-9a-f]{32}")
_PIN_ID = re.compile(r"pin_[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Object = dict[str, Any]


@dataclass(frozen=True)
class Header:
    """The first line: what the file is and where it comes from."""

    exporter: str
    incarnation: str
    position: int
    created_at: Timestamp

    def to_line(self) -> bytes:
        """The line."""
        return _line(
            {
                "type": "header",
                "format": _FORMAT,
                "version": _VERSION,
                "exporter": self.exporter,
                "incarnation": self.incarnation,
                "position": self.position,
                "created_at": self.created_at.ToJsonString(),
            }
        )


@dataclass(frozen=True)
class Closing:
    """The last line: what was before it, so that a file that was cut or edited is noticed."""

    lines: int
    projects: int
    episodes: int
    pins: int
    tombstones: int
    left_out: int
    sha256: bytes
    """Over the bytes of all lines before, ends of lines included."""

    def to_line(self) -> bytes:
        """The line."""
        return _line({"type": "end", **vars(self), "sha256": self.sha256.hex()})


Record = (
    Header
    | Closing
    | NewEpisode
    | memory_pb2.Project
    | memory_pb2.PinnedRule
    | memory_pb2.PurgedProject
)
"""What a line says."""


def project_line(project: memory_pb2.Project) -> bytes:
    """The line of a project. Its counts are those of the lines that follow."""
    return _line(
        {
            "type": "project",
            "project_id": project.project_id,
            "roots": list(project.roots),
            "created_at": project.created_at.ToJsonString(),
        }
    )


def tombstone_line(purged: memory_pb2.PurgedProject) -> bytes:
    """The line of a purged project."""
    return _line(
        {
            "type": "tombstone",
            "project_id": purged.project_id,
            "purged_at": purged.purged_at.ToJsonString(),
            "episodes": purged.episodes,
            "pins": purged.pins,
        }
    )


def pin_line(pin: memory_pb2.PinnedRule) -> bytes:
    """The line of a pin in force. What prompts show of it, and its cost, follow from it."""
    said: Object = {"type": "pin", "pin_id": pin.pin_id, "project_id": pin.project_id}
    if pin.HasField("session_id"):
        said["session_id"] = pin.session_id
    said["kind"] = _KINDS[pin.kind]
    said["created_at"] = pin.created_at.ToJsonString()
    said["content"] = pin.content
    return _line(said)


def episode_line(episode: memory_pb2.Episode, content: str) -> bytes:
    """The line of an episode, its content verbatim."""
    said: Object = {
        "type": "episode",
        "episode_id": episode.episode_id,
        "project_id": episode.project_id,
    }
    if episode.session_id:
        said["session_id"] = episode.session_id
    said["slot_id"] = episode.slot_id
    said["role"] = _ROLES[episode.role]
    if episode.HasField("tool_name"):
        said["tool_name"] = episode.tool_name
    said["created_at"] = episode.created_at.ToJsonString()
    if episode.HasField("corrects"):
        said["corrects"] = episode.corrects
    said["paths"] = list(episode.paths)
    said["tokens"] = {
        "count": episode.tokens.count_tokens,
        "tokenizer": episode.tokens.tokenizer,
        "exact": episode.tokens.exact,
    }
    said["content_bytes"] = episode.content_bytes
    said["content_sha256"] = episode.content_sha256.hex()
    said["content"] = content
    return _line(said)


def _line(said: Object) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_line(raw: bytes, *, first: bool) -> Record:
    """What the line says. `first`: it has to be the header, and no other may be.

    Raises:
        InvalidArgumentError: The line, or a field that it names, is not as it should be.
    """
    if first:
        return _read_header(raw)
    said = _parsed(raw)
    kind = said.pop("type", None)
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        _refuse("type", "must be one of project, tombstone, pin, episode, end")
    fields = _Fields(said)
    record = read(fields)
    fields.end()
    return record


def _read_header(raw: bytes) -> Header:
    try:
        said = _parsed(raw)
        known = said.pop("type", None) == "header" and said.pop("format", None) == _FORMAT
    except InvalidArgumentError:
        known = False
    if not known:
        raise InvalidArgumentError(
            "the file does not begin as an export does",
            reason="NOT_AN_EXPORT",
            fix=(
                "give a file that `muniment export` wrote; `muniment records import` takes records"
            ),
        )
    fields = _Fields(said)
    version = fields.number("version")
    if version != _VERSION:
        raise InvalidArgumentError(
            f"the file has version {version} of the format, this program reads {_VERSION}",
            reason="EXPORT_VERSION_UNKNOWN",
            field="version",
            fix="use the version of muniment that wrote it",
        )
    header = Header(
        exporter=fields.text("exporter"),
        incarnation=fields.text("incarnation"),
        position=fields.number("position"),
        created_at=fields.time("created_at"),
    )
    fields.end()
    return header


def _parsed(raw: bytes) -> Object:
    try:
        said = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        _refuse(None, f"is not UTF-8 at byte {error.start}")
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        _refuse(None, f"is not JSON{where}")
    if not isinstance(said, dict):
        _refuse(None, "is not a JSON object")
    return said


def _read_project(fields: _Fields) -> memory_pb2.Project:
    return memory_pb2.Project(
        project_id=fields.name("project_id"),
        roots=fields.texts("roots", ROOTS_LIMIT),
        created_at=fields.time("created_at"),
    )


def _read_tombstone(fields: _Fields) -> memory_pb2.PurgedProject:
    return memory_pb2.PurgedProject(
        project_id=fields.name("project_id"),
        purged_at=fields.time("purged_at"),
        episodes=fields.number("episodes"),
        pins=fields.number("pins"),
    )


def _read_pin(fields: _Fields) -> memory_pb2.PinnedRule:
    pin = memory_pb2.PinnedRule(
        pin_id=fields.matching("pin_id", _PIN_ID, "a pin's id"),
        project_id=fields.name("project_id"),
        kind=fields.one_of("kind", _KINDS),
        created_at=fields.time("created_at"),
        content=fields.text("content"),
    )
    if fields.has("session_id"):
        pin.session_id = fields.name("session_id")
    if not pin.content or pin.content != pin.content.strip():
        _refuse("content", "is empty, or has white space at its ends")
    if len(pin.content.encode()) > PIN_LIMIT_BYTES:
        _refuse("content", f"is longer than {PIN_LIMIT_BYTES} bytes")
    return pin


def _read_episode(fields: _Fields) -> NewEpisode:
    content = fields.text("content")
    raw = content.encode()
    if not 0 < len(raw) <= EPISODE_LIMIT_BYTES:
        _refuse("content", f"takes {len(raw)} bytes; an episode holds 1 to {EPISODE_LIMIT_BYTES}")
    digest = hashlib.sha256(raw).digest()
    if fields.number("content_bytes") != len(raw):
        _refuse("content_bytes", f"is not {len(raw)}, which the content takes")
    if fields.matching("content_sha256", _SHA256, "64 hex digits") != digest.hex():
        _refuse("content_sha256", "is not that of the content, which was changed")
    tokens = _Fields(fields.take("tokens", dict, "an object"), within="tokens.")
    # That was exact of the model that served there. Here it is a count that somebody made.
    tokens.take("exact", bool, "true or false")
    episode = memory_pb2.Episode(
        episode_id=fields.matching("episode_id", _EPISODE_ID, "an episode's id"),
        project_id=fields.name("project_id"),
        session_id=fields.name("session_id") if fields.has("session_id") else "",
        slot_id=fields.number("slot_id", bits=32),
        role=fields.one_of("role", _ROLES),
        tokens=memory_pb2.TokenCount(
            count_tokens=tokens.number("count"),
            tokenizer=tokens.name("tokenizer"),
        ),
        content_bytes=len(raw),
        content_sha256=digest,
        created_at=fields.time("created_at"),
        paths=fields.texts("paths", PATHS_LIMIT),
    )
    tokens.end()
    if fields.has("tool_name"):
        episode.tool_name = check_name("tool_name", fields.text("tool_name"))
    if fields.has("corrects"):
        episode.corrects = fields.matching("corrects", _EPISODE_ID, "an episode's id")
    return NewEpisode(episode, content)


def _read_closing(fields: _Fields) -> Closing:
    counts = ("lines", "projects", "episodes", "pins", "tombstones", "left_out")
    return Closing(
        **{name: fields.number(name) for name in counts},
        sha256=bytes.fromhex(fields.matching("sha256", _SHA256, "64 hex digits")),
    )


_READERS: dict[str, Callable[[_Fields], Record]] = {
    "project": _read_project,
    "tombstone": _read_tombstone,
    "pin": _read_pin,
    "episode": _read_episode,
    "end": _read_closing,
}


class _Fields:
    """An object's fields, each taken once and checked."""

    def __init__(self, said: Object, within: str = "") -> None:
        self._said = said
        self._within = within

    def has(self, name: str) -> bool:
        return name in self._said

    def take(self, name: str, kind: type[Any], called: str) -> Any:
        value = self._said.pop(name, None)
        # A bool is an int to Python, and not to JSON.
        if type(value) is not kind:
            _refuse(self._within + name, f"must be {called}")
        return value

    def text(self, name: str) -> str:
        value: str = self.take(name, str, "a text")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            _refuse(self._within + name, f"is not Unicode at character {error.start}")
        return value

    def texts(self, name: str, limit: int) -> list[str]:
        values: list[object] = self.take(name, list, "a list of texts")
        if len(values) > limit:
            _refuse(name, f"has more than {limit} entries")
        return [_Fields({name: value}).text(name) for value in values]

    def name(self, name: str) -> str:
        value = check_name(self._within + name, self.text(name))
        return value or _refuse(self._within + name, "is empty")

    def matching(self, name: str, pattern: re.Pattern[str], called: str) -> str:
        value = self.text(name)
        return value if pattern.fullmatch(value) else _refuse(name, f"must be {called}")

    def one_of(self, name: str, names: dict[int, str]) -> Any:
        value = self.text(name)
        number = next((number for number, known in names.items() if known == value), None)
        return number or _refuse(name, f"must be one of {', '.join(names.values())}")

    def number(self, name: str, *, bits: int = 64) -> int:
        value: int = self.take(name, int, "a whole number")
        if not 0 <= value < 1 << bits:
            _refuse(self._within + name, f"must be from 0 to 2^{bits} - 1")
        return value

    def time(self, name: str) -> Timestamp:
        moment = Timestamp()
        try:
            moment.FromJsonString(self.text(name))
        except ValueError:
            _refuse(name, "must be a time such as 2026-01-31T09:30:00.25Z")
        return moment

    def end(self) -> None:
        """Refuse what is left: a field that is not read would be lost without a word."""
        for name in self._said:
            _refuse(self._within + name, "is no field of such a line")


def _refuse(field: str | None, message: str) -> NoReturn:
    raise InvalidArgumentError(
        message,
        reason="EXPORT_LINE_INVALID",
        field=field,
        fix="export again, or mend the line as docs/export.md describes it",
    )
