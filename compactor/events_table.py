"""The catalogue of events, and the next moves of errors: `python -m compactor.events_table FILE` puts them into it."""

import sys
from collections.abc import Iterator
from pathlib import Path

from compactor.document_tables import with_table
from compactor.errors import CompactorError
from compactor.log_events import CATALOGUE, COMMON_FIELDS, LogEvent

_MADE = "made by python -m compactor.events_table docs/reference-logs.md"
EVENTS = (f"<!-- events: {_MADE} -->", "<!-- events end -->")
FIELDS = (f"<!-- common fields: {_MADE} -->", "<!-- common fields end -->")
ERRORS = (f"<!-- errors: {_MADE} -->", "<!-- errors end -->")


def with_tables(document: str) -> str:
    """A document with the tables of today between their marks.

    Raises:
        ValueError: The marks are not there.
    """
    for marks, table in ((EVENTS, events_table()), (FIELDS, fields_table()), (ERRORS, errors_table())):
        document = with_table(document, *marks, table)
    return document


def events_table() -> str:
    """The catalogue in Markdown, what matters most first."""
    order = ("error", "warning", "info", "debug")
    events = sorted(CATALOGUE.values(), key=lambda event: (order.index(event.level), event.name))
    rows = (
        f"| `{each.name}` | {each.level} | {each.meaning} | {_fields(each)} | {each.next_move} |" for each in events
    )
    return "\n".join(["| event | level | meaning | fields | next move |", "|---|---|---|---|---|", *rows])


def fields_table() -> str:
    """What the log itself adds to events, in Markdown."""
    rows = (f"| `{name}` | {meaning} |" for name, meaning in COMMON_FIELDS.items())
    return "\n".join(["| field | meaning |", "|---|---|", *rows])


def errors_table() -> str:
    """The errors that commands end with, and their next moves, in Markdown."""
    rows = (f"| `{kind.__name__}` | {kind.next_move} |" for kind in _kinds(CompactorError))
    return "\n".join(["| error | next move |", "|---|---|", *rows])


def _kinds(kind: type[CompactorError]) -> Iterator[type[CompactorError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == CompactorError.__module__:  # others have the next move of their group
            yield from _kinds(below)


def _fields(event: LogEvent) -> str:
    return "; ".join(f"`{name}` {meaning}" for name, meaning in event.fields.items())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(with_tables(Path(name).read_text()))
