"""Files through the native kernel, and what comes out of it; and the same by inspection in Python."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq

from compactor.adapters.local.native.kernel import NativeKernel
from compactor.engines.engine import EngineRules, RowPlan
from compactor.engines.native.kernel import Kernel
from compactor.ndjson.files.file_walk import OnChangedFile
from compactor.ndjson.inspection import inspect_lines, refusals
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.line_splitting import split_lines
from compactor.ndjson.lines import Judged, Limits, Receiver, Reject
from compactor.ndjson.rawjson import texts
from compactor.schema.registry import EMPTY_SCHEMA
from compactor.schema.schema import DeclaredColumn, KeyLimits, SchemaVersion, extend

WIDE = Limits(max_line_bytes=1 << 24, max_decompressed_bytes=1 << 30)
ALL_LINES = Formats()
WITHOUT_LIMITS = KeyLimits(max_new_columns=1 << 20, max_key_characters=1 << 20)
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@dataclass(frozen=True)
class Taken:
    """What became of some files.

    Attributes:
        rows: By key; what is null is left out. In the order of the lines.
        rejects: In the order of the lines.
        keys: Keys that had no column beforehand, as first seen.
        has_further: Whether other such keys were not collected.
        records: Lines that are neither rejects nor blank.
    """

    rows: list[dict[str, Any]]
    rejects: list[Reject]
    keys: list[str]
    has_further: bool
    records: int


def schema_of(columns: Mapping[str, str], *, rescued: bool = False) -> SchemaVersion:
    """A schema version with these keys and types; the rescued data comes with types, or on demand."""
    declared = [
        DeclaredColumn(key=key, name=f"c{number}", type=kind) for number, (key, kind) in enumerate(columns.items())
    ]
    overflow = {"overflow": "x"} if rescued else {}
    return extend(
        EMPTY_SCHEMA, overflow, declared=declared, names="safe", max_columns=len(columns), manifest_id="m", now=NOW
    )


def plan_of(
    schema: SchemaVersion,
    *,
    rescues: bool = False,
    metadata: Sequence[str] = (),
    held_bytes: int = 1 << 24,
    pages_bytes: int = 1 << 25,
    key_limits: KeyLimits = WITHOUT_LIMITS,
    target_file_bytes: int = 1 << 27,
) -> RowPlan:
    return RowPlan(
        schema=schema,
        metadata_columns=metadata,
        manifest_id="m-1",
        processed_at=NOW,
        date=NOW.date(),
        rescues_unknown=rescues,
        key_limits=key_limits,
        compression="snappy",
        target_file_bytes=target_file_bytes,
        held_bytes=held_bytes,
        pages_bytes=pages_bytes,
    )


def rules_of(
    limits: Limits = WIDE,
    *,
    formats: Formats = ALL_LINES,
    on_changed_file: OnChangedFile = "skip",
) -> EngineRules:
    """The settings of an engine of tests."""
    return EngineRules(limits, on_changed_file, (), 1 << 27, "snappy", formats)


def feed(kernel: Kernel, data: bytes, limits: Limits = WIDE, *, block_bytes: int = 1 << 20) -> tuple[list[Reject], int]:
    """Have the kernel read the lines of a file. Returns its rejects, and how many records it has."""
    rejects: list[Reject] = []

    def judge(block: bytes) -> Judged:
        lines, blank_lines, refused = kernel.read(block)
        # A reason of its own is compared with that of inspection; elsewhere it says none.
        found = [
            (number, start, reason or dict(refusals([block[start:end]])).get(0, "accepted!"), block[start:end])
            for number, start, end, reason in refused
        ]
        return Judged(lines, blank_lines, found)

    counts = split_lines([data], Receiver(limits, judge, rejects.append, block_bytes))
    return rejects, counts.records


def ended(kernel: Kernel) -> bytes:
    """End the Parquet file of a kernel, and take all of it that was not taken."""
    kernel.finish_output()
    return b"".join(iter(kernel.take, b""))


def by_kernel(
    data: bytes,
    schema: SchemaVersion,
    *,
    rescues: bool = False,
    key_limits: KeyLimits = WITHOUT_LIMITS,
    block_bytes: int = 1 << 20,
) -> Taken:
    """One file through the kernel."""
    kernel = NativeKernel(plan_of(schema, rescues=rescues, key_limits=key_limits))
    kernel.begin_file("file")
    rejects, records = feed(kernel, data, block_bytes=block_bytes)
    keys, has_further = kernel.end_file()
    return Taken(parquet_rows(ended(kernel), schema), rejects, keys, has_further, records)


def by_inspection(
    data: bytes, *, known_keys: frozenset[str] = frozenset(), key_limits: KeyLimits = WITHOUT_LIMITS
) -> Taken:
    """The same by inspection: all values are text, whatever the schema."""
    rejects: list[Reject] = []
    blocks: list[bytes] = []
    found = inspect_lines(
        [data],
        WIDE,
        on_reject=rejects.append,
        on_good=blocks.append,
        known_keys=known_keys,
        key_limits=key_limits,
    )
    lines = b"".join(blocks).split(b"\n")[:-1]
    rows = [{key: value for key, value in texts(line).items() if value is not None} for line in lines]
    return Taken(rows, rejects, list(found.keys), found.has_further_keys, found.records)


def parquet_rows(data: bytes, schema: SchemaVersion) -> list[dict[str, Any]]:
    """The rows of a Parquet file by key, rescued ones included; nothing for no file."""
    if not data:
        return []
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    merged = [
        {column.key: row[column.name] for column in schema.columns if column.key is not None}
        | {key: value for column in schema.columns if column.key is None for key, value in row[column.name] or ()}
        for row in rows
    ]
    return [{key: value for key, value in row.items() if value is not None} for row in merged]
