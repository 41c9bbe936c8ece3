"""Compares every value: reads the inputs again line by line, and the Parquet files row by row.

The engine does not keep the order of rows. So each side is reduced to the number of its rows and the sum of their
128-bit digests: equal sums mean the same rows, each equally often. Memory does not grow with the number of rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event

from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import FileError, LinkRefused, ObjectChanged, ObjectNotFound, StagingError
from compactor.core.layout import redriven_owner
from compactor.core.partitions import PartitionField, parse_fields
from compactor.engines.parquet_files import DAMAGED, ParquetFacts
from compactor.engines.partitioned.counting import BATCH_ROWS
from compactor.engines.partitioned.row_partitions import RowPartitions, without_values
from compactor.ledger.accounts.account import Account
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ndjson.codecs import decode
from compactor.ndjson.files.object_reading import open_file, reading
from compactor.ndjson.grok import DecoderOf, GrokSplitter, no_decoder
from compactor.ndjson.kinds.formats import recorded_splitter
from compactor.ndjson.lines import Limits, Reject, Splitter, in_whole_file
from compactor.ops.redrive.reject_lines import reject_rows
from compactor.ops.verify.native_sums import NativeSums, NewDigestKernel, ParsersDifferError
from compactor.ops.verify.report import Discrepancy, ExpiredFiles, Finding, VerifyResult
from compactor.ops.verify.row_sums import SOURCE, FileColumns, LineSums, RowShape, RowSums, Sum
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import SchemaVersion, parquet_columns, parquet_types
from compactor.table.merging.committed_rows import CommittedRows, OpenedRows


def misplaced(rows: CommittedRows, registry: SchemaRegistry, commit: Commit) -> Iterator[Discrepancy]:
    """Files with rows of a different partition. Reads only the columns that determine the partition.

    A file with the rows of too many partitions has no values of its own and is skipped.
    """
    fields = parse_fields(commit.partition_by)
    for file in (each for each in commit.outputs if fields and not each.holds_others):
        try:
            opened = rows.open(commit.date, file)
            wrong = _misplaced_rows(opened, file, fields, registry.version(file.version_in(commit)))
        except StagingError as exc:
            yield Discrepancy(commit.manifest_id, file.final, "a readable Parquet file", str(exc))
            continue
        if wrong:
            yield Discrepancy(
                commit.manifest_id, file.final, f"{file.rows} rows of its partition", f"{wrong} of others"
            )


def _misplaced_rows(
    opened: OpenedRows, file: StagedFile, fields: tuple[PartitionField, ...], schema: SchemaVersion
) -> int:
    partitions, expected = RowPartitions(fields, schema), tuple(file.partition)
    if not partitions.columns:
        return 0 if expected == without_values(fields) else len(opened.numbers)
    wrong = 0
    try:
        for batch in opened.batches(BATCH_ROWS, partitions.columns):
            wrong += sum(rows for values, rows in partitions.of(batch).counts.items() if values != expected)
    except DAMAGED as exc:
        raise StagingError(f"{file.final}: {exc}; expected a complete Parquet file") from exc
    return wrong


@dataclass(frozen=True, kw_only=True)
class DeepVerifier:
    """Compares the contents of commits with their inputs."""

    state: State
    registry: SchemaRegistry
    visible: Visible  # expired parts, and the merged files with rows of removed ones
    decoder_of: DecoderOf = no_decoder  # makes decoders for lines of text
    new_kernel: NewDigestKernel | None = None  # None to add up rows in Python

    def input_bytes(self, found: Iterable[Account]) -> int:
        """The stored bytes of input that the commits of these manifests are compared with."""
        commits = (each.commit for each in found if each.commit is not None and each.commit.erased is None)
        compacted = (file for each in commits for file in each.files if file.status is FileStatus.COMPACTED)
        return sum(file.size_bytes for file in compacted)

    def check(self, commit: Commit, *, with_source: bool = False, with_rejects: bool = True) -> Iterator[Finding]:
        """Compare one commit.

        Args:
            commit: The commit.
            with_source: Whether not to count files of redriven lines, as for `file_counts`.
            with_rejects: Whether the rejects exist, which may have expired. Without them, only rows are compared,
                except in files with lines that only the rejects distinguish from rows.
        """
        shape = RowShape(self.registry.version(commit.schema_version))
        sums = RowSums(shape) if self.new_kernel is None else NativeSums(shape, self.new_kernel)
        rows = CommittedRows(self.state.store, self.visible)
        ended = Event()
        with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
            stack.callback(ended.set)  # an interruption waits only for the current file
            writing = pool.submit(self._written_rows, rows, commit, sums, ended)  # while inputs are read
            try:
                rejected, refused = self._staged_rejects(commit) if with_rejects else ({}, {})
                inputs = list(self._inputs(commit, sums, refused, with_rejects=with_rejects))
                written, by_source = writing.result()
            except StagingError as exc:
                yield Discrepancy(commit.manifest_id, "contents", "readable Parquet files", str(exc))
                return
        # guard: a row in the wrong partition's folder is a discrepancy
        yield from misplaced(rows, self.registry, commit)
        total, is_whole = Sum(), True
        # Several files may have redriven lines of one file.
        by_origin: dict[str, tuple[Sum, Sum] | None] = {}
        for file, is_counted, read in inputs:
            counted = int(not (with_source and file.source_uri))
            if read is None:
                why = self._why_gone(commit, file)
                gone = VerifyResult(inputs_gone=counted if is_counted else 0)
                yield ExpiredFiles(commit.date, "redriven", why) if why else gone
                is_whole = False
                by_origin[file.origin_uri] = None
                continue
            yield VerifyResult(inputs_compared=counted)
            total.merge(read[0])
            expected = by_origin.setdefault(file.origin_uri, (Sum(), Sum()))
            if expected is not None:
                expected[0].merge(read[0])
                expected[1].merge(read[1])
        for uri, expected in ((uri, expected) for uri, expected in by_origin.items() if expected is not None):
            if by_source:
                yield from _differing(commit, uri, "rows", expected[0], written.get(uri, Sum()))
            if with_rejects:
                yield from _differing(commit, uri, "rejects", expected[1], rejected.get(uri, Sum()))
        if not by_source and is_whole:
            yield from _differing(commit, "all inputs of the manifest", "rows", total, written.get("", Sum()))

    def _why_gone(self, commit: Commit, file: FileReport) -> str:
        """Why an input file expired; empty if it did not. Only files of redriven lines, the compactor's own, expire."""
        if redriven_owner(file.uri, self.state.layout.redriven_folder) != commit.manifest_id:
            return ""
        expired = self.visible.deletion("redriven", commit.key, commit.generation)
        return "" if expired is None else expired.words

    def _inputs(
        self, commit: Commit, sums: RowSums, refused: Mapping[str, frozenset[bytes]], *, with_rejects: bool
    ) -> Iterator[tuple[FileReport, bool, tuple[Sum, Sum] | None]]:
        """Each compacted input, whether its rows are distinguishable from its rejects, and the sums of both."""
        for file in commit.files:
            if file.status != FileStatus.COMPACTED:
                continue
            is_counted = with_rejects or "parsers_disagree" not in file.rejects
            known = refused.get(file.origin_uri, frozenset())
            if not is_counted:
                yield file, is_counted, None
                continue
            try:
                read = self._input_sums(commit, file, sums.lines(file.path_columns), known)
            except ParsersDifferError:
                read = self._input_sums(commit, file, sums.slow_lines(file.path_columns), known)
            yield file, is_counted, read

    def _input_sums(
        self, commit: Commit, file: FileReport, lines: LineSums, refused: frozenset[bytes]
    ) -> tuple[Sum, Sum] | None:
        """The expected rows and rejects of an input file; None if that version no longer exists."""
        rejects = Sum()
        limits = Limits(max_line_bytes=commit.max_line_bytes, max_decompressed_bytes=commit.max_decompressed_bytes)

        def on_reject(reject: Reject) -> None:
            if rejects.rows < file.reject_rows:  # the job kept no more
                rejects.add(_reject_row(*reject))

        try:
            opened = open_file(self.state.store, file.as_input(), any_version=False)
            split, refused = self._splitting(commit, file, refused)
            with reading(self.state.store, opened) as stored:
                pieces = decode(file.codec, self._counted(stored))
                on_line = in_whole_file(file.range, on_reject)
                found = lines.read(pieces, limits, split=split, refused=refused, on_reject=on_line)
            if found.rejects != file.rejects:
                rejects.add([f"{found.rejects}"])  # makes a difference, as these lines may only be counted
        except (LinkRefused, ObjectNotFound, ObjectChanged):
            return None
        except FileError as exc:
            if exc.status in {FileStatus.MISSING, FileStatus.CHANGED}:
                return None
            rejects.add([str(exc)])  # makes a difference, as the job could read it
        return lines.sum, rejects

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece
            self.state.meter.add("byte", len(piece))

    def _splitting(
        self, commit: Commit, file: FileReport, refused: frozenset[bytes]
    ) -> tuple[Splitter, frozenset[bytes]]:
        """The job's splitter for an input file, and the refused lines as it yields them."""
        decoder = self.decoder_of(commit.grok) if commit.grok else None
        split = recorded_splitter(file.place, decoder, may_have_hole=bool(file.hole_bytes))
        return split, GrokSplitter(decoder).records_of(refused) if decoder is not None else refused

    def _staged_rejects(self, commit: Commit) -> tuple[dict[str, Sum], dict[str, frozenset[bytes]]]:
        sums: dict[str, Sum] = {}
        refused: dict[str, set[bytes]] = {}
        for file in commit.rejects:
            for row in reject_rows(self.state.store, file.final):
                fields = row.kept[1:-1].encode() if row.kept else b""
                sums.setdefault(row.source_uri, Sum()).add(_reject_row(*row[1:5], fields))
                if row.reason == "parsers_disagree":
                    refused.setdefault(row.source_uri, set()).add(row.record.strip(b" \t\r"))
        return sums, {uri: frozenset(lines) for uri, lines in refused.items()}

    def _written_rows(
        self, rows: CommittedRows, commit: Commit, sums: RowSums, ended: Event
    ) -> tuple[dict[str, Sum], bool]:
        """The sums of the written rows by source file, or all under "" if rows do not have it; and whether they do."""
        found: dict[str, Sum] = {}
        by_source = True
        for file in commit.outputs:
            if ended.is_set():
                break
            opened = rows.open(commit.date, file)
            of_file = self.registry.version(file.version_in(commit))
            _check_types(opened.uri, opened.facts, of_file)
            by_source = not opened.lacks(SOURCE)
            columns = FileColumns.of(sums.shape, opened, of_file)
            try:
                for source, part in sums.written(opened, columns, by_source=by_source):
                    found.setdefault(source, Sum()).merge(part)
            except (ValueError, OverflowError, OSError) as exc:  # a value may be out of Python's range
                raise StagingError(f"{opened.uri}: {exc}; expected a complete Parquet file") from exc
        return found, by_source


def _check_types(uri: str, facts: ParquetFacts, schema: SchemaVersion) -> None:
    found = dict(zip(facts.columns, facts.types, strict=True))
    for name, expected in zip(parquet_columns(schema, ()), parquet_types(schema, ()), strict=True):
        if name in found and found[name] != expected:
            raise StagingError(f"{uri}: column {name!r} is of type {found[name]}; expected {expected}")


def _reject_row(line_number: int, byte_offset: int, reason: str, raw: bytes, fields: bytes) -> list[object]:
    return [line_number, byte_offset, reason, raw.hex(), fields.hex()]


def _differing(commit: Commit, where: str, what: str, expected: Sum, found: Sum) -> Iterator[Discrepancy]:
    if expected != found:
        difference = "other values" if expected.rows == found.rows else f"{found.rows} {what}"
        yield Discrepancy(commit.manifest_id, where, f"{expected.rows} {what}", difference)
