"""Logs are events with fields: readable lines on a terminal, one JSON object a line elsewhere. Never row contents."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import orjson

LOGGER = logging.getLogger("compactor")

Level = Literal["debug", "info", "warning", "error"]


def log_event(event: str, *, level: Level = "info", **fields: Any) -> None:
    """Log one event.

    Args:
        event: What happened, as `noun.past_participle`.
        level: How much it matters.
        fields: What it happened to. Values that JSON does not know are written as text.
    """
    LOGGER.log(logging.getLevelNamesMapping()[level.upper()], event, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """One JSON object a line, for CloudWatch Logs Insights and the like."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _moment(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(entry, default=str).decode()


class ReadableLines(logging.Formatter):
    """Time, event and fields, for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        shown = " ".join(f"{name}={value}" for name, value in fields.items())
        line = f"{_moment(record):%H:%M:%S} {record.levelname.lower():7} {record.getMessage()} {shown}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def configure_logs(*, as_json: bool, level: Level = "info", stream: TextIO | None = None) -> None:
    """Send the compactor's events to a stream, in one of the two forms; called once, by an entry point."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if as_json else ReadableLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False
