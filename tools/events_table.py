"""The tables of log events, errors and metrics in `docs/reference-logs.md`."""

from collections import Counter
from collections.abc import Iterator

from compactor.core.errors import CompactorError
from compactor.telemetry import metrics
from compactor.telemetry.log_events import CATALOGUE, COMMON_FIELDS, LogEvent
from tools import document_tables

_MANY = 4
"""A field with the same meaning in this many events is described once."""


def with_tables(document: str) -> str:
    """A document with current tables between their marks; a ValueError if a mark is missing."""
    tables = {
        "events": _events_table(),
        "common fields": _fields_table(),
        "errors": _errors_table(),
        "metrics": _metrics_table(),
    }
    return document_tables.with_tables(document, tables)


def _events_table() -> str:
    """The catalogue in Markdown: a table for each level, errors first."""
    tables = []
    for level in ("error", "warning", "info", "debug"):
        events = {name: CATALOGUE[name] for name in sorted(CATALOGUE) if CATALOGUE[name].level == level}
        if not events:
            continue
        columns, rule = ("| next action |", "---|") if level in {"error", "warning"} else ("|", "")
        rows = [
            f"| `{name}` | {each.meaning} | {_fields(each)} |{f' {each.next_move} |' if each.next_move else ''}"
            for name, each in events.items()
        ]
        head = [f"### {level.capitalize()}", "", f"| event | meaning | fields {columns}", f"|---|---|---|{rule}"]
        tables.append("\n".join([*head, *rows]))
    return "\n\n".join(tables)


def _fields_table() -> str:
    """The fields that the logger adds to events, and those with the same meaning in many events, in Markdown."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in COMMON_FIELDS.items()]
    rows += [f"| `{name}` | {meaning}; on some events |" for name, meaning in _shared()]
    return "\n".join(["| field | meaning |", "|---|---|", *rows])


def _errors_table() -> str:
    """The errors that end commands, and their next actions, in Markdown."""
    rows = (f"| `{kind.__name__}` | {kind.next_move} |" for kind in _kinds(CompactorError))
    return "\n".join(["| error | next action |", "|---|---|", *rows])


def _metrics_table() -> str:
    rows = (f"| {name} | {each.unit} | {each.meaning} | {each.advice} |" for name, each in metrics.CATALOGUE.items())
    return "\n".join(["| metric | unit | meaning | when it moves |", "|---|---|---|---|", *rows])


def _kinds(kind: type[CompactorError]) -> Iterator[type[CompactorError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == CompactorError.__module__:  # others inherit the next action of their group
            yield from _kinds(below)


def _fields(event: LogEvent) -> str:
    shared = _shared()
    return "; ".join(f"`{each[0]}`" if each in shared else f"`{each[0]}` {each[1]}" for each in event.fields.items())


def _shared() -> list[tuple[str, str]]:
    """Fields with one meaning in many events, sorted."""
    counted = Counter(each for event in CATALOGUE.values() for each in event.fields.items())
    return sorted(each for each, events in counted.items() if events >= _MANY)
