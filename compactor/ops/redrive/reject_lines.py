"""Writes rejected lines that are now valid to new input files: byte for byte, each with its own line number."""

import gzip
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.documents.changes import Commit
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileStatus, RedrivenInput
from compactor.core.errors import StagingError, StoreUnavailable
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import DAMAGED, open_parquet
from compactor.ndjson.files.rejects import REJECTS_SCHEMA
from compactor.ndjson.files.scratch import scratch_errors, scratch_folder
from compactor.ndjson.grok import OpenDecoder
from compactor.ndjson.inspection import refusals
from compactor.ndjson.lines import rejected_record


class RedrivenLineNumbers:
    """The rejected lines taken by redrives.

    Args:
        inputs: The files of redriven lines.
    """

    def __init__(self, inputs: Iterable[RedrivenInput] = ()) -> None:
        ranges = defaultdict[tuple[str, str], list[tuple[int, int]]](list)
        for each in inputs:
            ranges[each.source_uri, each.reason] += each.numbers
        self._ranges = {key: sorted(found) for key, found in ranges.items()}

    def has(self, source_uri: str, reason: str, number: int) -> bool:
        """Whether a file's line that was rejected for this reason was taken."""
        ranges = self._ranges.get((source_uri, reason), [])
        at = bisect_right(ranges, number, key=itemgetter(0))
        return bool(at) and number <= ranges[at - 1][1]


@dataclass(frozen=True, slots=True)
class Recheck:
    """The current rules for lines.

    Attributes:
        has_one_parser: Whether the engine and inspection use the same parser, so that they cannot disagree.
        grok: Reads lines as records; None if they are JSON.
    """

    max_line_bytes: int
    has_one_parser: bool
    grok: OpenDecoder | None = None

    def fault_of(self, line: bytes, reason: str) -> str | None:
        """Why a line would be rejected now; None if it would become a row.

        Args:
            line: The line's bytes. For one that is too long, any number of bytes above `max_line_bytes` will do.
            reason: Why it was rejected.
        """
        if len(line) > self.max_line_bytes:
            return "line_too_long"
        if reason == "no_records" or (reason == "parsers_disagree" and not self.has_one_parser):
            return reason
        if self.grok is not None:
            return next((fault for *_, fault in self.grok.open().decode(line + b"\n", 0).refused), None)
        return next((fault for _, fault in refusals([line])), None)


_COLUMNS = ["source_uri", "line_number", "byte_offset", "reason", "raw", "kept"]
_SOURCE = REJECTS_SCHEMA.get_field_index("source_uri")
_BATCH_ROWS = 1_000  # a row group, which is in memory anyway, has 16 MiB of lines or one line
_PADDING = b"\n" * (1 << 20)


class RejectRow(NamedTuple):
    """A rejected line, or a piece of one that is too long.

    Attributes:
        byte_offset: Offset of `raw` in the decoded file.
        raw: The exact bytes.
        kept: A JSON object of what was carried into it; None for nothing.
    """

    source_uri: str
    line_number: int
    byte_offset: int
    reason: str
    raw: bytes
    kept: str | None

    @property
    def record(self) -> bytes:
        """The line as inspection saw it."""
        return rejected_record(self.raw, self.kept[1:-1].encode() if self.kept else b"")


@dataclass(frozen=True, slots=True)
class WrittenLines:
    """The new input files.

    Attributes:
        inputs: The source of each file's lines.
        unchanged: Lines that would be rejected again, by the reason of their rejection. They are in no file.
    """

    files: list[ManifestFile] = field(default_factory=list)
    inputs: list[RedrivenInput] = field(default_factory=list)
    unchanged: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> Counter[str]:
        """The lines in the files, by the reason of their rejection."""
        return sum((Counter({each.reason: each.lines}) for each in self.inputs), Counter())

    @property
    def sources(self) -> int:
        """The number of source files."""
        return len({each.source_uri for each in self.inputs})


@dataclass(frozen=True, slots=True)
class LinesToRedrive:
    """The rejected lines of a commit to redrive.

    Attributes:
        reasons: Why they were rejected.
        redriven: Those already redriven.
    """

    commit: Commit
    reasons: Collection[str]
    redriven: RedrivenLineNumbers
    recheck: Recheck


def write_lines(store: ObjectStore, wanted: LinesToRedrive, folder: str | None) -> WrittenLines:
    """Write lines to new files, one for each source and reason.

    Rejects of quarantined files are omitted: they are samples, whose lines come with the whole file.

    Args:
        store: Source of the rejects, and destination of the files.
        wanted: The lines.
        folder: The destination folder; ends with `/`. None to only count the lines.

    Raises:
        StagingError: The rejects cannot be read, or are not ordered by file and line.
        StoreUnavailable: The store or the local disk failed temporarily.
    """
    written, seen = WrittenLines(), set[str]()
    reports = {each.origin_uri: each for each in wanted.commit.files if each.status is FileStatus.COMPACTED}
    takes = lambda source_uri, reason: source_uri in reports and reason in wanted.reasons  # noqa: E731
    asked = (row for file in wanted.commit.rejects for row in reject_rows(store, file.final, takes))
    with scratch_errors(), scratch_folder() as scratch:
        for source_uri, rows in groupby(asked, key=lambda row: row[0]):
            # A commit of redriven lines may have a file's rejects in several places.
            if source_uri in seen and not wanted.commit.rejects_of:
                raise StagingError(f"rejects of {source_uri} are in two places; expected them in one")
            seen.add(source_uri)
            with ExitStack() as open_files:
                targets = _sorted_out(wanted, source_uri, rows, written.unchanged, scratch, open_files)
            for target in filter(attrgetter("lines"), targets):
                uri = f"{folder}{len(written.files):06d}.ndjson.gz"
                named = ManifestFile(
                    uri=uri,
                    source_uri=source_uri,
                    rejected_as=target.reason,
                    path_columns=reports[source_uri].path_columns or None,
                )
                written.files.append(named if folder is None else _uploaded(store, named, target.path))
                written.inputs.append(target.as_input(uri, source_uri))
    return written


def _sorted_out(
    wanted: LinesToRedrive,
    source_uri: str,
    rows: Iterator[RejectRow],
    unchanged: Counter[str],
    scratch: Path,
    open_files: ExitStack,
) -> list["_Target"]:
    """Write the valid lines of one source, by reason, and count the others."""
    targets: dict[str, _Target] = {}
    for (number, reason), pieces in groupby(_in_order(rows), key=lambda row: (row[1], row[3])):
        line = _joined(pieces, wanted.recheck.max_line_bytes)
        if wanted.redriven.has(source_uri, reason, number):
            continue
        if reason not in targets:
            targets[reason] = _Target(scratch / reason, reason, open_files)
        target = targets[reason]
        if wanted.recheck.fault_of(line, reason) is None:
            target.write(number, line)
        else:
            unchanged[reason] += 1
            target.end_range()
        if wanted.commit.rejects_of:  # lines in between may come elsewhere
            target.end_range()
    return list(targets.values())


def _uploaded(store: ObjectStore, named: ManifestFile, path: Path) -> ManifestFile:
    store.upload(named.uri, path)
    info = store.stat(named.uri)
    if info is None:
        raise StoreUnavailable(f"{named.uri}: missing right after it was written")
    found = {"size_bytes": info.size_bytes, "etag": info.etag, "event_time": info.modified_at}
    return named.model_copy(update=found)


class _Target:
    """The lines of one source rejected for one reason, in a local file, and their number ranges."""

    def __init__(self, path: Path, reason: str, open_files: ExitStack) -> None:
        self.path, self.reason, self.lines = path, reason, 0
        file = open_files.enter_context(path.open("wb"))
        self._packed = open_files.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
        self._ranges: list[tuple[int, int]] = []
        self._goes_on = False
        self._next_number = 1

    def write(self, number: int, line: bytes) -> None:
        """Write a line under its number. Blank lines, which compress well, stand for all others."""
        missing = number - self._next_number
        while missing:
            self._packed.write(_PADDING[:missing])
            missing -= min(missing, len(_PADDING))
        self._packed.write(line + b"\n")
        self._next_number = number + 1
        self.lines += 1
        first = self._ranges.pop()[0] if self._goes_on else number
        self._ranges.append((first, number))
        self._goes_on = True

    def end_range(self) -> None:
        """Let the next line start a new range."""
        self._goes_on = False

    def as_input(self, uri: str, source_uri: str) -> RedrivenInput:
        return RedrivenInput(uri=uri, source_uri=source_uri, lines=self.lines, reason=self.reason, numbers=self._ranges)


def _in_order(rows: Iterator[RejectRow]) -> Iterator[RejectRow]:
    """Yield the rows of a source; raises a `StagingError` if they are not in file order."""
    previous = (0, -1)
    for row in rows:
        source_uri, line_number, byte_offset, *_ = row
        if (line_number, byte_offset) <= previous:
            raise StagingError(
                f"rejects of {source_uri}: line {line_number}, byte {byte_offset} comes after line {previous[0]}, "
                f"byte {previous[1]}; expected file order"
            )
        previous = line_number, byte_offset
        yield row


def _joined(pieces: Iterator[RejectRow], most_bytes: int) -> bytes:
    """The line from these pieces, or a beginning of it that is longer than `most_bytes`."""
    first = next(pieces)
    parts, length = [first.raw], len(first.raw)
    for piece in pieces:
        if length <= most_bytes:
            parts.append(piece.raw)
            length += len(piece.raw)
    return first._replace(raw=b"".join(parts)).record


def reject_rows(
    store: ObjectStore,
    uri: str,
    takes: Callable[[str, str], bool] | None = None,
    *,
    source_uri: str = "",
    chosen: Callable[[pa.RecordBatch], Sequence[int]] | None = None,
) -> Iterator[RejectRow]:
    """Yield the rows of one Parquet file of rejects. Skips row groups without matches.

    Args:
        store: Has the Parquet file.
        uri: The Parquet file.
        takes: Whether to yield the lines of an input file with a reason; None for all.
        source_uri: The only input file whose lines to yield; empty for all.
        chosen: The numbers of the rows of a batch to yield; None for all.

    Raises:
        StagingError: The file is missing, truncated, or not a rejects file.
    """
    file, _ = open_parquet(store, uri)
    try:
        for number in range(file.num_row_groups):
            if not _may_have(file, number, takes, source_uri):
                continue
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[number], columns=_COLUMNS):
                batch = batch if chosen is None else batch.take(pa.array(chosen(batch), pa.int64()))  # noqa: PLW2901
                columns: list[list[Any]] = [batch.column(name).to_pylist() for name in _COLUMNS]
                for row in map(RejectRow._make, zip(*columns, strict=True)):
                    if source_uri in {"", row.source_uri} and (takes is None or takes(row.source_uri, row.reason)):
                        yield row
    except (*DAMAGED, KeyError) as exc:
        raise StagingError(f"{uri}: {exc}; expected a complete Parquet file of rejects") from exc


def _may_have(file: pq.ParquetFile, number: int, takes: Callable[[str, str], bool] | None, source_uri: str) -> bool:
    """Whether a row group may have matching rows. Names and reasons are cheap to read."""
    if source_uri:
        found = file.metadata.row_group(number).column(_SOURCE).statistics
        return found is None or not found.has_min_max or found.min <= source_uri <= found.max
    if takes is None:
        return True
    names = file.read_row_group(number, columns=_COLUMNS[:1] + _COLUMNS[3:4])
    return any(takes(*each) for each in set(zip(*(column.to_pylist() for column in names.columns), strict=True)))
