"""Searches rejected lines, and returns them as an Arrow table."""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import date as Date  # noqa: N812 - `date` is an argument
from itertools import islice
from typing import Any

import pyarrow as pa

from compactor.api.arguments import Place, day_of, settings_of
from compactor.core.errors import RecordUnreadable, SettingsError
from compactor.ndjson.inspection import REASONS
from compactor.ops.rejects import Query, RejectedLine, RejectsOf, RejectsSearch
from compactor.settings.places import parse_place
from compactor.settings.settings import Settings
from compactor.wiring.app import App


def rejects_search(settings: Settings, *, reason: str | None, file: str | None, day: str | None) -> RejectsSearch:
    """Make a search.

    Args:
        settings: Name the places.
        reason: Only lines that were rejected for this reason.
        file: Only lines of this file: its URI or path, or the end of it.
        day: Only manifests of this day, as `yyyy-mm-dd`.

    Raises:
        SettingsError: There is no such reason, or the file name is invalid.
    """
    if reason is not None and reason not in REASONS:
        raise SettingsError([f"--reason: {reason!r} -> expected one of {', '.join(REASONS)}"])
    return RejectsSearch(App(settings).state, Query(reason, _file(file), day))


def _file(name: str | None) -> str | None:
    """A path relative to the current folder as a URI; any other name unchanged."""
    try:
        return parse_place(name, any_name=True) if name and name.startswith(("./", "../")) else name
    except ValueError as exc:
        raise SettingsError([f"--file: {name!r} -> expected {exc}"]) from exc


SCHEMA = pa.schema(
    [
        pa.field("source_uri", pa.string(), nullable=False),
        pa.field("line_number", pa.int64(), nullable=False),
        pa.field("column", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("raw", pa.binary(), nullable=False),
        pa.field("kept", pa.string()),
        pa.field("length_bytes", pa.int64(), nullable=False),
        pa.field("byte_offset", pa.int64(), nullable=False),
        pa.field("is_sample", pa.bool_(), nullable=False),
        pa.field("manifest_id", pa.string(), nullable=False),
        pa.field("date", pa.string(), nullable=False),
    ]
)

CHUNK_LINES = 10_000
CHUNK_BYTES = 64 * 1024 * 1024
"""The most lines, and bytes of lines, in one chunk of a table. A single line may have more bytes."""


def rejects(
    dst: Place,
    *,
    reason: str | None = None,
    file: Place | None = None,
    date: str | Date | None = None,
    limit: int | None = None,
    on_unreadable: Callable[[str], None] | None = None,
) -> pa.Table:
    """Read rejected lines, as `compactor rejects` does, with their places and faults.

    The table holds all of them in memory, ordered by day, manifest, file and line. Its columns: `source_uri`;
    `line_number` and `column` from 1, the second in characters and null if the place in the line is unknown; `reason`;
    `message`, what was found and expected there; `raw`, the exact bytes of the line, or the first ones of a line that
    is too long; `kept`, the values that `input.keep` would have carried into it, as JSON; `length_bytes` of the
    complete line; `byte_offset` of the line in the decoded file; `is_sample`, whether its complete file was
    quarantined; `manifest_id`; and `date` as `yyyy-mm-dd`. It excludes lines that were redriven since, and lines that
    were only counted (`unkept_rejects` of `verify`).

    Args:
        dst: DST of `compact`, the place of its state, or a settings file.
        reason: Only lines that were rejected for this reason, such as `invalid_json`.
        file: Only lines of this file: its URI or path, or the end of one.
        date: Only lines of manifests of this day: `yyyy-mm-dd` or a `datetime.date`.
        limit: At most this many lines, the first ones; None for all.
        on_unreadable: Called with the fault of each unreadable record or rejects file; the others are read. None raises
            the first fault.

    Raises:
        SettingsError: There are no settings at `dst`, or the other arguments are wrong.
        RecordUnreadable: A record or a rejects file is damaged or missing.
        AccessError: Something may not be read.
        StoreUnavailable: The store fails; repeat the call.
    """
    if limit is not None and limit < 0:
        raise SettingsError([f"limit: {limit} -> expected 0 or more, or None for all"])
    file_name = None if file is None else os.fspath(file)
    search = rejects_search(settings_of(dst), reason=reason, file=file_name, day=day_of(date))
    table = pa.Table.from_batches(_batches(islice(search.lines(None), limit)), SCHEMA)
    for fault in search.unreadable:
        if on_unreadable is None:
            raise RecordUnreadable(fault)
        on_unreadable(fault)
    return table


def _batches(lines: Iterable[tuple[RejectsOf, RejectedLine]]) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    size_bytes = 0
    for found, line in lines:
        if rows and (len(rows) == CHUNK_LINES or size_bytes + len(line.head) > CHUNK_BYTES):
            yield pa.RecordBatch.from_pylist(rows, SCHEMA)
            rows, size_bytes = [], 0
        rows.append(_row(found, line))
        size_bytes += len(line.head)
    if rows:
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)


def _row(found: RejectsOf, line: RejectedLine) -> dict[str, Any]:
    return {
        "source_uri": line.source_uri,
        "line_number": line.line_number,
        "column": line.column,
        "reason": line.reason,
        "message": line.fault.message,
        "raw": line.head,
        "kept": line.kept,
        "length_bytes": line.length_bytes,
        "byte_offset": line.byte_offset,
        "is_sample": line.source_uri in found.samples,
        "manifest_id": found.commit.manifest_id,
        "date": found.commit.date,
    }
