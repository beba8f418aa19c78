"""Logs: structlog, one JSON object a line in files, readable lines on a terminal.

Always on stderr, which supervisord keeps in the service's log file; stdout is never written.
"""

from __future__ import annotations

import logging
import sys

import structlog
from google.protobuf.message import Message

from muniment.v1 import common_pb2

__all__ = ["configure_logging", "without_secrets"]


def configure_logging(service: str, level: str) -> None:
    """Set up logging for this process, the standard library's loggers included."""
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
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    structlog.contextvars.bind_contextvars(service=service)


def without_secrets(message: Message) -> Message:
    """A copy of the message in which fields that carry secrets are cleared, at any depth."""
    copy = type(message)()
    copy.CopyFrom(message)
    _clear_secrets(copy)
    return copy


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
