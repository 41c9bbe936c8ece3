"""Compares every value: reads the inputs again line by line, and the Parquet files row by row.

Both sides are compared as canonical text. The text of an input becomes the value of its column's type, and that value
its canonical text; the value in the Parquet file becomes canonical text as well.

The engine does not keep the order of rows. So each side is the number of its rows and the sum of their 128-bit digests:
if both agree, the same rows are there, each equally often. Memory does not grow with the number of rows.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import Commit, FileReport, FileStatus
from compactor.core.errors import FileError, LinkRefused, ObjectChanged, ObjectNotFound, StagingError
from compactor.core.kafka.ports import NoKafka, OpenKafka
from compactor.core.kafka.ranges import is_kafka
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import ParquetFacts
from compactor.ndjson.codecs import decode
from compactor.ndjson.files.file_walk import Input
from compactor.ndjson.files.object_reading import RANGES_AHEAD, open_file
from compactor.ndjson.files.range_reading import OpenedRange, open_range
from compactor.ndjson.files.record_values import WithRecordValues, redriven_values
from compactor.ndjson.grok.matched_lines import GrokSplitter
from compactor.ndjson.grok.ports import DecoderOf, no_decoder
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.kinds.formats import recorded_splitter
from compactor.ndjson.lines import Limits, Reject, Splitter
from compactor.ndjson.rawjson import texts
from compactor.ops.redrive.rejected_lines.writing import reject_rows
from compactor.ops.verify.partitions import misplaced
from compactor.ops.verify.report import Discrepancy, VerifyReport
from compactor.schema.column_types import ColumnType, canonical_text, value_of
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import NO_NEW_KEYS, SchemaVersion, parquet_columns, parquet_types
from compactor.table.merging.committed_rows import CommittedRows, OpenedRows

BATCH_BYTES = 32 * 1024 * 1024  # of uncompressed Parquet values, as Python objects in memory at once
_DIGEST_BYTES = 16
_MODULUS = 1 << (8 * _DIGEST_BYTES)


@dataclass(slots=True)
class Sum:
    """A fingerprint of many rows that does not depend on their order."""

    rows: int = 0
    total: int = 0

    def add(self, row: Sequence[object]) -> None:
        """Add one row of JSON values."""
        digest = hashlib.blake2b(orjson.dumps(row), digest_size=_DIGEST_BYTES).digest()
        self.rows += 1
        self.total = (self.total + int.from_bytes(digest, "big")) % _MODULUS

    def merge(self, other: "Sum") -> None:
        """Add all rows of another sum."""
        self.rows += other.rows
        self.total = (self.total + other.total) % _MODULUS


@dataclass(frozen=True, kw_only=True)
class DeepVerifier:
    """Compares the contents of commits with their inputs."""

    store: ObjectStore
    registry: SchemaRegistry
    rows: CommittedRows
    kafka: OpenKafka = NoKafka()  # noqa: RUF009 - it is frozen
    decoder_of: DecoderOf = no_decoder
    why_gone: Callable[[Commit, FileReport], str] = lambda _commit, _file: ""  # under which rule an input file expired

    def check(
        self, commit: Commit, report: VerifyReport, *, with_source: bool = False, with_rejects: bool = True
    ) -> None:
        """Compare one commit, and add the result to the report.

        `with_source` is as in `VerifyReport.add_commit`: files of redriven lines are then no further input files.
        Without the rejects, which may have expired, only rows are compared; and not those of a file with lines that
        only the rejects tell from rows.
        """
        schema = self.registry.version(commit.schema_version)
        try:
            rejected, refused = self._staged_rejects(commit) if with_rejects else ({}, {})
            written, by_source = self._written_rows(commit, schema)
        except StagingError as exc:
            report.discrepancies.append(Discrepancy(commit.manifest_id, "contents", "readable Parquet files", str(exc)))
            return
        report.discrepancies += misplaced(self.rows, self.registry, commit)
        total, is_whole = Sum(), True
        # Several files may have redriven lines of one file.
        by_origin: dict[str, tuple[Sum, Sum] | None] = {}
        limits = Limits(max_line_bytes=commit.max_line_bytes, max_decompressed_bytes=commit.max_decompressed_bytes)
        for file in commit.files:
            if file.status != FileStatus.COMPACTED:
                continue
            is_told = with_rejects or "parsers_disagree" not in file.rejects
            known = refused.get(file.origin_uri, frozenset())
            read = self._input_sums(commit, file, schema, limits, known) if is_told else None
            counted = int(not (with_source and file.source_uri))
            if read is None:
                self._add_gone(commit, file, report, counted if is_told else 0)
                is_whole = False
                by_origin[file.origin_uri] = None
                continue
            report.inputs_compared += counted
            rows, rejects = read
            total.merge(rows)
            expected = by_origin.setdefault(file.origin_uri, (Sum(), Sum()))
            if expected is not None:
                expected[0].merge(rows)
                expected[1].merge(rejects)
        for uri, expected in ((uri, expected) for uri, expected in by_origin.items() if expected is not None):
            if by_source:
                _compare(commit, report, uri, "rows", expected[0], written.get(uri, Sum()))
            if with_rejects:
                _compare(commit, report, uri, "rejects", expected[1], rejected.get(uri, Sum()))
        if not by_source and is_whole:
            _compare(commit, report, "all inputs of the manifest", "rows", total, written.get("", Sum()))

    def _add_gone(self, commit: Commit, file: FileReport, report: VerifyReport, counted: int) -> None:
        """Add an input file that could not be compared: it expired, or else it is gone."""
        if why := self.why_gone(commit, file):
            report.add_expired(commit.date, "redriven", why, 1)
        else:
            report.inputs_gone += counted

    def _input_sums(
        self, commit: Commit, file: FileReport, schema: SchemaVersion, limits: Limits, refused: frozenset[bytes]
    ) -> tuple[Sum, Sum] | None:
        """The expected rows and rejects of an input file; None if that version of it is gone."""
        rows, rejects = Sum(), Sum()
        keys = [column.key for column in schema.columns if column.key is not None]
        types = {
            column.key: column.column_type for column in schema.columns if column.key is not None and column.is_typed
        }
        known = frozenset(keys)

        def on_good(block: bytes) -> None:
            for line in block.split(b"\n")[:-1]:
                values: dict[str, str | None] = {**file.path_columns, **texts(line)}
                rescued = [(key, value) for key, value in values.items() if key not in known and value is not None]
                rescued += _replace_typed(values, types)
                rows.add([*map(values.get, keys), sorted(rescued)])

        def on_reject(reject: Reject) -> None:
            if rejects.rows < file.reject_rows:  # all others were too many to keep
                rejects.add(_reject_row(reject.line_number, reject.byte_offset, reject.reason, reject.raw))

        try:
            opened = self._opened(_named(file))
            split, refused = self._splitting(commit, file, opened, refused)
            with ThreadPoolExecutor(RANGES_AHEAD) as pool, closing(opened.pieces(self.store, pool)) as stored:
                pieces = decode(file.codec, stored)
                found = inspect_lines(
                    pieces,
                    limits,
                    on_reject=on_reject,
                    on_good=on_good,
                    refused=refused,
                    split=split,
                    key_limits=NO_NEW_KEYS,
                )
            if file.kafka is not None and opened.read is not None and opened.read.absent > file.kafka.absent:
                return None  # compaction of the topic has removed some of its records since
            if found.rejects != file.rejects:
                rejects.add([f"{found.rejects}"])  # a difference, also among lines that are only counted
        except (LinkRefused, ObjectNotFound, ObjectChanged):
            return None
        except FileError as exc:
            if exc.status in {FileStatus.MISSING, FileStatus.CHANGED}:
                return None
            rejects.add([str(exc)])  # the job could read it, so this must be a difference
        return rows, rejects

    def _splitting(
        self, commit: Commit, file: FileReport, opened: Input, refused: frozenset[bytes]
    ) -> tuple[Splitter, frozenset[bytes]]:
        """What divides an input file as the job did, and its refused lines as that gives them."""
        split = recorded_splitter(file.format, self.decoder_of(commit.grok) if commit.grok else None)
        values = opened.values if isinstance(opened, OpenedRange) else redriven_values(_named(file))
        if values is not None:
            if isinstance(split, GrokSplitter):
                refused = split.records_of(refused)
            return WithRecordValues(split, values, refused), frozenset()
        return split, split.records_of(refused) if isinstance(split, GrokSplitter) else refused

    def _opened(self, named: ManifestFile) -> Input:
        if is_kafka(named.uri):
            return open_range(self.kafka, named)
        return open_file(self.store, named, any_version=False)

    def _staged_rejects(self, commit: Commit) -> tuple[dict[str, Sum], dict[str, frozenset[bytes]]]:
        sums: dict[str, Sum] = {}
        refused: dict[str, set[bytes]] = {}
        for file in commit.rejects:
            for uri, line_number, byte_offset, reason, raw in reject_rows(self.store, file.final):
                sums.setdefault(uri, Sum()).add(_reject_row(line_number, byte_offset, reason, raw))
                if reason == "parsers_disagree":
                    refused.setdefault(uri, set()).add(raw.strip(b" \t\r"))
        return sums, {uri: frozenset(lines) for uri, lines in refused.items()}

    def _written_rows(self, commit: Commit, schema: SchemaVersion) -> tuple[dict[str, Sum], bool]:
        """Sums of the written rows by source file, or all under "" if rows do not name it; and whether they do."""
        names = [column.name for column in schema.columns if column.key is not None]
        places = {key: at for at, key in enumerate(each.key for each in schema.columns if each.key is not None)}
        rescued_name = [column.name for column in schema.columns if column.key is None]
        types = {column.name: column.column_type for column in schema.columns if column.is_typed}
        sums: dict[str, Sum] = {}
        by_source = True
        for file in commit.outputs:
            opened = self.rows.open(commit.date, file)
            of_file = self.registry.version(file.version_in(commit))
            _check_types(opened.uri, opened.facts, of_file)
            later = frozenset({column.name for column in schema.columns} - {column.name for column in of_file.columns})
            by_source = not opened.lacks("_source_file")
            source_name = ["_source_file"] if by_source else []
            retired = {column.name: column.key for column in of_file.columns if column.name in _retired_names(schema)}
            read = [*names, *retired, *rescued_name, *source_name]
            moved = {key: at for key, at in places.items() if key not in of_file.keys}
            for row in _rows(opened, read, types, later):
                values = list(row[: len(names)])
                rescued = list(row[len(names) + len(retired)] or ()) if rescued_name else []
                gone = zip(retired.values(), row[len(names) :], strict=False)
                rescued += [(key, text) for key, text in gone if text is not None]
                source = row[-1] if by_source else ""
                rescued = _in_place(values, rescued, moved)
                sums.setdefault(source, Sum()).add([*values, sorted(rescued)])
        return sums, by_source


def _retired_names(schema: SchemaVersion) -> frozenset[str]:
    return frozenset(column.name for column in schema.retired)


def _in_place(values: list[Any], rescued: Sequence[tuple[str, str]], moved: Mapping[str, int]) -> list[tuple[str, str]]:
    """Move rescued values of keys that got a column only after the file was written there; return the others."""
    for key, text in rescued:
        if key in moved:
            values[moved[key]] = text
    return [(key, text) for key, text in rescued if key not in moved]


def _replace_typed(values: dict[str, str | None], types: Mapping[str, ColumnType]) -> list[tuple[str, str]]:
    """Replace the texts of typed columns by canonical ones, or by null where they do not fit; returns those."""
    misfits: list[tuple[str, str]] = []
    for key, column_type in types.items():
        text = values.get(key)
        if text is not None:
            value = value_of(text, column_type)
            values[key] = None if value is None else canonical_text(value, column_type)
            if value is None:
                misfits.append((key, text))
    return misfits


def _check_types(uri: str, facts: ParquetFacts, schema: SchemaVersion) -> None:
    found = dict(zip(facts.columns, facts.types, strict=True))
    for name, expected in zip(parquet_columns(schema, ()), parquet_types(schema, ()), strict=True):
        if name in found and found[name] != expected:
            raise StagingError(f"{uri}: column {name!r} is of type {found[name]}; expected {expected}")


def _rows(
    opened: OpenedRows, names: Sequence[str], types: Mapping[str, ColumnType], later: frozenset[str]
) -> Iterator[tuple[Any, ...]]:
    """The values of some columns row by row: canonical text for typed columns, nulls for columns in `later`."""
    file, uri = opened.parquet, opened.uri
    present = later.union(file.schema_arrow.names)  # Arrow makes the schema anew each time it is asked for
    missing = [name for name in names if name not in present]
    if missing:
        raise StagingError(f"{uri}: no columns {missing}; expected all of its schema version")
    try:
        # Zipping columns is several times as fast as building a dictionary for each row.
        for batch in opened.batches(_batch_rows(file.metadata)):
            if names:
                columns = [
                    itertools.repeat(None, batch.num_rows)
                    if name in later
                    else _values(batch.column(name), types.get(name))
                    for name in names
                ]
                yield from zip(*columns, strict=True)
            else:
                yield from itertools.repeat((), batch.num_rows)
    except (ValueError, OverflowError, OSError) as exc:  # a value may be out of Python's range
        raise StagingError(f"{uri}: {exc}; expected a whole Parquet file") from exc


def _values(column: pa.Array, column_type: ColumnType | None) -> Iterable[Any]:
    values: list[Any] = column.to_pylist()
    if column_type is None:
        return values
    return [None if value is None else canonical_text(value, column_type) for value in values]


def _batch_rows(metadata: Any) -> int:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    bytes_a_row = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(8_192, int(BATCH_BYTES / max(bytes_a_row, 1))))


def _reject_row(line_number: int, byte_offset: int, reason: str, raw: bytes) -> list[object]:
    return [line_number, byte_offset, reason, raw.hex()]


def _compare(commit: Commit, report: VerifyReport, where: str, what: str, expected: Sum, found: Sum) -> None:
    if expected != found:
        difference = "other values" if expected.rows == found.rows else f"{found.rows} {what}"
        report.discrepancies.append(Discrepancy(commit.manifest_id, where, f"{expected.rows} {what}", difference))


def _named(file: FileReport) -> ManifestFile:
    """An input file, as far as it matters for how it is read."""
    return ManifestFile(
        uri=file.uri,
        etag=file.etag,
        source_uri=file.source_uri or None,
        record_columns=file.record_columns or None,
        kafka_values=file.kafka_values,
    )
