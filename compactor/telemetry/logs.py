"""Logs are events with fields: readable lines on a terminal, one JSON object a line elsewhere. Never row contents."""

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

from compactor.core.errors import CompactorError
from compactor.telemetry.error_text import described
from compactor.telemetry.log_events import CATALOGUE, OF_THE_ERROR, EventName, Level

LOGGER = logging.getLogger("compactor")

_OF_THIS_RUN: dict[str, str] = {}
"""Fields of every event while a run is at work. Of the process, not of a thread: batches have threads of their own."""


def log_event(event: EventName, /, **fields: Any) -> None:
    """Log one event of the catalogue. Whatever it is called with, it is logged: no log line is worth a batch.

    Args:
        event: What happened; the catalogue says how much it matters and what to do next.
        fields: Those of the catalogue. Errors are given as they are, and told without what they quote of the data;
            other values that JSON does not know are written as text.
    """
    known = CATALOGUE.get(event)
    level = known.level if known else "warning"
    error = next((value for value in fields.values() if isinstance(value, BaseException)), None)
    told = {name: described(value) if isinstance(value, BaseException) else value for name, value in fields.items()}
    is_unforeseen = level == "error" and error is not None and not isinstance(error, CompactorError)
    next_move = known.next_move if known else ""
    if next_move == OF_THE_ERROR:
        next_move = error.next_move if isinstance(error, CompactorError) else CompactorError.next_move
    LOGGER.log(
        logging.getLevelNamesMapping()[level.upper()],
        event,
        exc_info=error if is_unforeseen else None,
        extra={"fields": {**_OF_THIS_RUN, **told}, "next_move": next_move},
    )


@contextmanager
def run_in_log(run_id: str) -> Iterator[None]:
    """Put a run's id on every event of this process meanwhile."""
    before = dict(_OF_THIS_RUN)
    _OF_THIS_RUN["run_id"] = run_id
    try:
        yield
    finally:
        _OF_THIS_RUN.clear()
        _OF_THIS_RUN.update(before)


class JsonLines(logging.Formatter):
    """One JSON object a line, for CloudWatch Logs Insights and the like."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _moment(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_fields(record),
        }
        if next_move := _next_move(record):
            entry["next"] = next_move
        if way := _way(record):
            entry["traceback"] = way
        try:
            return orjson.dumps(entry, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except TypeError:  # a name on a disk that is no Unicode text, or a number beyond 64 bits
            return json.dumps(entry, default=str)


class ReadableLines(logging.Formatter):
    """Time, event, fields and the next move, for people."""

    def format(self, record: logging.LogRecord) -> str:
        words = [f"{name}={_shown(value)}" for name, value in _fields(record).items()]
        words += [f"-> {next_move}"] if (next_move := _next_move(record)) else []
        moment = _moment(record).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = " ".join([f"{moment} {record.levelname.lower():7} {record.getMessage()}", *words])
        return f"{line}\n{way}" if (way := _way(record)) else line


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _next_move(record: logging.LogRecord) -> str:
    return str(getattr(record, "next_move", ""))


def _shown(value: object) -> str:
    """A value as one word, or in quotation marks: a line stays a line, and it can be seen where a value ends."""
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    is_word = bool(text) and text.isprintable() and not set(text) & {" ", '"', "="}
    return text if is_word else json.dumps(text, ensure_ascii=False)


def _way(record: logging.LogRecord) -> str:
    """The traceback of an error and of what led to it. Python's own would quote the data."""
    error = record.exc_info[1] if record.exc_info else None
    ways: list[str] = []
    while error is not None and len(ways) < 10:  # noqa: PLR2004 - errors may lead to themselves
        frames = "".join(traceback.format_tb(error.__traceback__))
        ways.append(f"Traceback (most recent call last):\n{frames}{described(error)}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n\n".join(reversed(ways))


def configure_logs(*, as_json: bool, level: Level = "info", stream: TextIO | None = None) -> None:
    """Send the compactor's events to a stream, in one of the two forms; called once, by an entry point."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if as_json else ReadableLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False
