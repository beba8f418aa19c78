"""Logs: structlog, one JSON object a line in files, readable lines on a terminal.

Always on stderr, which supervisord keeps in the service's log file; stdout is never written.

A home that is sealed has discreet logs: what the house itself says is written, everything else
(names, ids, what errors and other people's libraries quote) only as a pseudonym, or not at all.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType

import structlog
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from muniment.v1 import common_pb2

__all__ = ["Pseudonym", "configure_logging", "without_secrets"]

Pseudonym = Callable[[str], str]
"""Turns a text into a short name that is the same each time, and tells nothing about it."""

_OWN_WORDS = frozenset(
    {
        "caller",
        "connection",
        "doubt",
        "event",
        "exception",
        "kept",
        "level",
        "message",
        "method",
        "reason",
        "service",
        "socket",
        "store",
        "timestamp",
        "tool",
    }
)
"""What discreet logs write as it is: words and numbers of ours, and paths within the home."""

_CAUSES_LIMIT = 8


def configure_logging(service: str, level: str, *, pseudonym: Pseudonym | None = None) -> None:
    """Set up logging for this process: the standard library's loggers and uncaught errors too.

    With a pseudonym the logs are discreet.
    """
    discretion: list[structlog.typing.Processor] = (
        [] if pseudonym is None else [_Discretion(pseudonym)]
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendering: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer()]
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                *discretion,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *rendering,
            ],
        )
    )
    # It tells of every request, and a slot is looked at many times a second.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda told: _log_uncaught(
        told.exc_type, told.exc_value or told.exc_type(), told.exc_traceback
    )
    sys.unraisablehook = lambda told: _log_uncaught(
        told.exc_type, told.exc_value or told.exc_type(), told.exc_traceback
    )
    structlog.contextvars.bind_contextvars(service=service)


def _log_uncaught(
    kind: type[BaseException], error: BaseException, places: TracebackType | None
) -> None:
    if not issubclass(kind, KeyboardInterrupt | SystemExit):
        structlog.get_logger().critical("uncaught error", exc_info=(kind, error, places))


class _Discretion:
    """Keeps of a log entry what tells nothing of what was said to the house."""

    def __init__(self, pseudonym: Pseudonym) -> None:
        self._pseudonym = pseudonym

    def __call__(
        self, logger: object, method: str, entry: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        record: logging.LogRecord = entry["_record"]
        kept: structlog.typing.EventDict = {
            name: entry.pop(name) for name in ("_record", "_from_structlog")
        }
        error = entry.pop("exc_info", None) or record.exc_info
        # The formatter would add it as the standard library writes it.
        record.exc_info = record.exc_text = record.stack_info = None
        if not kept["_from_structlog"]:
            entry["event"] = f"{record.name} at {record.filename}:{record.lineno}"
        for name, value in entry.items():
            if value is None or isinstance(value, bool | int | float) or name in _OWN_WORDS:
                kept[name] = value
            else:
                kept[name] = self._pseudonym(str(value)) if value else value
        if error:
            kept["exception"] = _places(error)
        return kept


def _places(error: object) -> str:
    """The types of an error and its causes, and where they came from, without their words."""
    if isinstance(error, tuple):
        error = error[1]
    if not isinstance(error, BaseException):
        error = sys.exc_info()[1]
    told: list[str] = []
    while error is not None and len(told) < _CAUSES_LIMIT:
        frames = traceback.extract_tb(error.__traceback__)
        places = ", ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
        told.append(f"{type(error).__qualname__} at {places}")
        error = error.__cause__ or error.__context__
    return "; after ".join(told)


def without_secrets(message: Message) -> Message:
    """A copy of the message in which fields that carry secrets are cleared, at any depth."""
    copy = type(message)()
    copy.CopyFrom(message)
    if _may_hold_secrets(message.DESCRIPTOR, frozenset()):
        _clear_secrets(copy)
    return copy


@lru_cache
def _may_hold_secrets(kind: Descriptor, outer: frozenset[Descriptor]) -> bool:
    """Whether a field of such a message, at any depth, carries a secret."""
    if kind in outer:
        return False
    within = outer | {kind}
    return any(
        field.GetOptions().Extensions[common_pb2.secret]
        or (field.message_type is not None and _may_hold_secrets(field.message_type, within))
        for field in kind.fields
    )


def _clear_secrets(message: Message) -> None:
    for field, value in message.ListFields():
        if field.GetOptions().Extensions[common_pb2.secret]:
            message.ClearField(field.name)
        elif field.message_type is None:
            continue
        elif field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for entry in value.values():
                    _clear_secrets(entry)
        elif field.is_repeated:
            for item in value:
                _clear_secrets(item)
        else:
            _clear_secrets(value)
