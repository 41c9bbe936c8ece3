"""Stages the files of a commit again, without the lines to erase. Reads the files, not the input."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit, Erased, StagedFile
from compactor.core.documents.records import Accepted, Attempt, FileReport, FileStatus
from compactor.core.errors import StagingError
from compactor.core.partitions import folders, parse_fields
from compactor.engines.parquet_files import open_parquet, parquet_facts
from compactor.engines.rows_place import RowsPlace
from compactor.ledger.accounts.reading import Detail, account_of, redriven_lines
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ndjson.files.rejects import RejectsWriter
from compactor.ndjson.files.scratch import scratch_folder
from compactor.ops.erase.search import RejectFound, RowSearch, rejects_found
from compactor.ops.redrive.reject_lines import RedrivenLineNumbers
from compactor.schema.schema import METADATA_COLUMNS
from compactor.table.merging.committed_rows import OpenedRows


def erased_reports(
    files: Sequence[FileReport], found: Sequence[RejectFound], redriven: RedrivenLineNumbers
) -> list[FileReport]:
    """The reports without these lines.

    Args:
        files: The reports on compacted files; several may have redriven lines of one file.
        found: Lines whose stored bytes are erased.
        redriven: Lines that are rows, or rejects of a different manifest. Their bytes are erased from the rejects, but
            they count as before: the other manifest has the line.
    """
    reports, places = list(files), defaultdict[str, list[int]](list)
    for number, file in enumerate(files):
        places[file.origin_uri].append(number)
    for line in found:
        at = next((at for at in places[line.source_uri] if _counts(reports[at], line)), None)
        if at is None:  # a sample of a quarantined file
            continue
        report = reports[at]
        update: dict[str, object] = {"reject_rows": report.reject_rows - line.rows}
        if not redriven.has(line.source_uri, line.reason, line.line_number):
            left = report.rejects[line.reason] - 1
            rejects = {**report.rejects, line.reason: left}
            update |= {
                "rejected_lines": report.rejected_lines - 1,
                "erased_rejects": report.erased_rejects + 1,
                "rejects": {reason: lines for reason, lines in rejects.items() if lines},
            }
        reports[at] = report.model_copy(update=update)
    return reports


def _counts(report: FileReport, line: RejectFound) -> bool:
    """Whether a line may be among those that a report counts and whose bytes were stored."""
    kept = report.rejects.get(line.reason, 0) - report.unkept_rejects.get(line.reason, 0)
    return kept > 0 and report.reject_rows >= line.rows


_BATCH_ROWS = 1_000  # of rejects, whose rows may be long


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasingStager:
    """Stages one commit without the rows and rejected lines that contain a value.

    Attributes:
        commit: The valid commit, whose files are published.
        erasure: The id of the erasure.
        compression: The Parquet codec of files with rows.
        in_place: Whether files of rows are written under their final names, for a table that lists them.
    """

    state: State
    search: RowSearch
    commit: Commit
    erasure: str
    compression: str
    in_place: bool = False
    on_crash_point: OnCrashPoint = ignore_crash_point

    def stage(self, accepted: Accepted, attempt: Attempt) -> Commit:
        """Stage every file of the commit; see `compactor.ops.rebuild.rebuilder.Stage`.

        Raises:
            StagingError: A file is missing or damaged, or was not written correctly.
        """
        commit, layout = self.commit, self.state.layout
        staging = layout.staging_of_attempt(attempt.manifest_id, attempt.number, attempt.generation)
        place = RowsPlace(f"{staging}out/")
        if self.in_place:
            place = RowsPlace.final(layout.in_place(commit.key, attempt.number, attempt.generation), self.compression)
        fields = parse_fields(commit.partition_by)
        outputs = [
            self._output(file, place, place.uri(f"{number:05d}", folders(fields, tuple(file.partition))))
            for number, file in enumerate(sorted(commit.outputs, key=lambda each: each.final))
        ]
        expired = Visible(self.state).deletion("rejects", commit.key, commit.generation) is not None
        rejects, found = [], list[RejectFound]()
        for number, file in enumerate(sorted(() if expired else commit.rejects, key=lambda each: each.final)):
            hits = list(rejects_found(self.state.store, file.final, self.search.wanted))
            rejects.append(self._rejects(file, f"{staging}rejects/{number:05d}.parquet", hits))
            found += hits
        self.on_crash_point(CrashPoint.CONVERTED, accepted.manifest_id)
        compacted = [file for file in commit.files if file.status is FileStatus.COMPACTED]
        if expired:  # no later generation has the bytes of these lines either
            compacted = [
                file.model_copy(update={"reject_rows": 0, "unkept_rejects": file.rejects}) for file in compacted
            ]
        before = commit.erased or Erased(erasures=[], rows=0)
        gone = sum(file.rows for file in commit.outputs) - sum(file.rows for file in outputs)
        update = {
            "generation": attempt.generation,
            "attempt": attempt.number,
            "run_id": self.state.ledger.run_id,
            "outputs": [file for file in outputs if file.rows],
            "rejects": [file for file in rejects if file.rows],
            "files": self._reports(compacted, found),
            "decided_at": self.state.clock.now(),
            "erased": Erased(erasures=[*before.erasures, self.erasure], rows=before.rows + gone),
        }
        return commit.model_copy(update=update)

    def _reports(self, files: Sequence[FileReport], found: Sequence[RejectFound]) -> list[FileReport]:
        if not found:
            return list(files)
        account = account_of(self.state, self.commit.manifest_id, Detail.LINEAGE)
        return erased_reports(files, found, RedrivenLineNumbers(redriven_lines(self.state, account).inputs))

    def _output(self, file: StagedFile, place: RowsPlace, staged: str) -> StagedFile:
        """Stage a file without the erased rows."""
        opened = self.search.rows.open(self.commit.date, file)
        masks = self.search.masks_of(self.commit, file, opened)
        gone = sum(mask.true_count for _, mask in masks if mask is not None)
        made = file.model_copy(
            update={
                "staged": staged,
                "final": staged if place.in_place else file.final,
                "rows": file.rows - gone,
                "schema_version": file.version_in(self.commit),
            }
        )
        if not gone and not opened.is_moved:
            place.take(self.state.store, file.final, staged)
            return made
        if not made.rows:
            return made
        names = self._columns_of(file, opened)
        with self._local_file() as path:
            schema = pa.schema([opened.parquet.schema_arrow.field(name) for name in names])
            # Without Arrow's own copy of the schema, as both engines write.
            options = {"compression": self.compression, "store_schema": False, "write_page_checksum": True}
            with pq.ParquetWriter(path, schema, **options) as writer:
                for at, mask in masks:
                    table = opened.table(at, names)
                    kept = table if mask is None else table.filter(pc.invert(mask))
                    if kept.num_rows:
                        writer.write_table(kept)
            return self._uploaded(made, path, place)

    def _columns_of(self, file: StagedFile, opened: OpenedRows) -> list[str]:
        """The columns to write: a merged file also has columns of other files."""
        found = list(opened.parquet.schema_arrow.names)
        if not opened.is_moved:
            return found
        own = {column.name for column in self.search.registry.version(file.version_in(self.commit)).columns}
        return [name for name in found if name in own or name in METADATA_COLUMNS]

    def _rejects(self, file: StagedFile, staged: str, found: Sequence[RejectFound]) -> StagedFile:
        """Stage a file of rejects without the erased lines, and without samples of quarantined files."""
        lines = {(each.source_uri, each.line_number) for each in found}
        kept = {each.origin_uri for each in self.commit.files if each.status is FileStatus.COMPACTED}
        parquet, _ = open_parquet(self.state.store, file.final)
        with self._local_file() as path:
            with RejectsWriter(path) as writer:
                for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
                    named = zip(
                        *(batch.column(name).to_pylist() for name in ("source_uri", "line_number")), strict=True
                    )
                    stays = [uri in kept and (uri, number) not in lines for uri, number in named]
                    if any(stays):
                        writer.write(batch.filter(pa.array(stays)))
            made = file.model_copy(update={"staged": staged, "rows": writer.rows})
            return self._uploaded(made, path, RowsPlace("")) if made.rows else made

    @contextmanager
    def _local_file(self) -> Iterator[Path]:
        with scratch_folder() as folder:
            yield folder / "rewritten.parquet"

    def _uploaded(self, made: StagedFile, path: Path, place: RowsPlace) -> StagedFile:
        place.upload(self.state.store, made.staged, path)
        facts = parquet_facts(self.state.store, made.staged)
        if facts.rows != made.rows:
            raise StagingError(f"{made.staged}: found {facts.rows} rows, expected {made.rows}")
        return made.model_copy(update={"size_bytes": facts.size_bytes})
