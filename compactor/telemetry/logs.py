"""Logs events with fields: readable lines on a terminal, otherwise one JSON object per line. Never logs row data."""

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
from compactor.core.text.safe_text import visible, visible_json
from compactor.telemetry.error_text import described
from compactor.telemetry.log_events import CATALOGUE, OF_THE_ERROR, Level

LOGGER = logging.getLogger("compactor")
LOGGER.addHandler(logging.NullHandler())  # a program that imports the package configures its own logging

_RUNS: list[str] = []
"""The ids of this process's runs; the first one is in every event, because batches run in several threads.

The first one is the job's, followed by those of its streams.
"""


def log_event(event: str, /, **fields: Any) -> None:
    """Log an event from the catalogue, which defines its level, fields and next action.

    Pass errors as exceptions: they are described without data. An unknown event, or a value that JSON cannot represent,
    is still logged: a log line must not fail a batch.
    """
    known = CATALOGUE.get(event)
    level = known.level if known else "warning"
    error = next((value for value in fields.values() if isinstance(value, BaseException)), None)
    described_fields = {
        name: described(value) if isinstance(value, BaseException) else value for name, value in fields.items()
    }
    is_unforeseen = level == "error" and error is not None and not isinstance(error, CompactorError)
    next_move = known.next_move if known else ""
    if next_move == OF_THE_ERROR:
        next_move = error.next_move if isinstance(error, CompactorError) else CompactorError.next_move
    LOGGER.log(
        logging.getLevelNamesMapping()[level.upper()],
        event,
        exc_info=error if is_unforeseen else None,
        extra={"fields": {**({"run_id": _RUNS[0]} if _RUNS else {}), **described_fields}, "next_move": next_move},
    )


@contextmanager
def run_in_log(run_id: str) -> Iterator[None]:
    """Add a run id to every event of this process within the context."""
    _RUNS.append(run_id)
    try:
        yield
    finally:
        _RUNS.remove(run_id)


class JsonLines(logging.Formatter):
    """One JSON object per line, for CloudWatch Logs Insights and similar tools."""

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
            options = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS  # names are shown as text
            return visible_json(orjson.dumps(entry, default=str, option=options).decode())
        except TypeError:  # a file name that is not Unicode, or a number beyond 64 bits
            return json.dumps(entry, default=str)


class ReadableLines(logging.Formatter):
    """Time, event, fields and next action on one line."""

    def format(self, record: logging.LogRecord) -> str:
        words = [f"{name}={_shown(value)}" for name, value in _fields(record).items()]
        words += [f"-> {next_move}"] if (next_move := _next_move(record)) else []
        moment = _moment(record).strftime("%Y-%m-%dT%H:%M:%SZ")
        # guard: the text log is escaped
        line = visible(" ".join([f"{moment} {record.levelname.lower():7} {record.getMessage()}", *words]))
        return f"{line}\n{way}" if (way := _way(record)) else line


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _next_move(record: logging.LogRecord) -> str:
    return str(getattr(record, "next_move", ""))


def _shown(value: object) -> str:
    """A value as one word, or quoted, so that it stays on one line with a visible end."""
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    is_word = bool(text) and visible(text) == text and not set(text) & {" ", '"', "="}
    return text if is_word else json.dumps(text, ensure_ascii=False)


def _way(record: logging.LogRecord) -> str:
    """The tracebacks of an error and its causes, without the values that Python's own traceback would quote."""
    error = record.exc_info[1] if record.exc_info else None
    ways: list[str] = []
    while error is not None and len(ways) < 10:  # noqa: PLR2004 - causes may form a cycle
        frames = "".join(traceback.format_tb(error.__traceback__))
        ways.append(f"Traceback (most recent call last):\n{frames}{visible(described(error))}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n\n".join(reversed(ways))


def configure_logs(*, as_json: bool, level: Level = "info", stream: TextIO | None = None) -> None:
    """Send the compactor's events to a stream as JSON or readable lines. Called once per entry point."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if as_json else ReadableLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False


def logs_json() -> bool:
    """Whether the log is JSON, so that a program reads stderr."""
    return any(isinstance(each.formatter, JsonLines) for each in LOGGER.handlers)
