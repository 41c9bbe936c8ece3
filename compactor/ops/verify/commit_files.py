"""Compares the files of one commit with its figures: footers, columns and sums, without reading values."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from compactor.core.documents.expired import Part
from compactor.core.documents.records import Commit, StagedFile
from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import ObjectChanged, ObjectNotFound, StagingError, StuckError
from compactor.core.partitions import folders, parse_fields
from compactor.engines.parquet_files import ParquetFacts, parquet_facts
from compactor.ledger.history.expired_log import ExpiredParts
from compactor.ledger.state import State
from compactor.ledger.table.moved_rows import Moved, MovedRows
from compactor.ndjson.files.range_reading import range_fault
from compactor.ndjson.files.rejects import REJECTS_SCHEMA
from compactor.ops.verify.report import Discrepancy
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import METADATA_COLUMNS

_SCHEMAS_HELD = 32
_TRIES = 3  # a driver may publish a file again while it is read


@dataclass(slots=True)
class CommitFindings:
    """What is wrong with the files of a commit."""

    discrepancies: list[Discrepancy] = field(default_factory=list)  # those of this commit alone
    expired: Counter[tuple[Part, str]] = field(default_factory=Counter)  # files that are gone under a rule, with words
    lost_schema: Discrepancy | None = None  # the commit's schema version is missing; many commits may share it
    verified: int = 0  # files of rows that are as the ledger says, in place or merged
    missing: int = 0  # files of rows that are gone, without a rule


@dataclass(frozen=True, kw_only=True)
class CommitFiles:
    """Checks the files of commits. Safe for many threads."""

    state: State
    registry: SchemaRegistry
    # Made at once: from Python 3.12 on, threads that first ask for a `cached_property` may make one each.
    expired: ExpiredParts = field(init=False)  # what expired, as it is on record when it is first asked
    moved: MovedRows = field(init=False)  # where the rows of files are that are gone
    _columns: Callable[[int], list[str] | None] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "expired", ExpiredParts(self.state))
        object.__setattr__(self, "moved", MovedRows(self.state))
        object.__setattr__(self, "_columns", lru_cache(maxsize=_SCHEMAS_HELD)(self._read_columns))

    def published(self, commit: Commit) -> CommitFindings:
        """Check the files of a commit whose manifest is done."""
        found = CommitFindings(list(_contradictions(commit)))
        for version in {commit.schema_version, *[output.version_in(commit) for output in commit.outputs]}:
            if self._columns(version) is None:
                uri = self.state.layout.schema(version)
                found.lost_schema = Discrepancy("", uri, "a schema version that commits name", "none that can be read")
        for output in commit.outputs:
            faults = self._check_file(commit, output, self._columns(output.version_in(commit)))
            self._add(found, commit, output, "rows", faults)
        for rejects in commit.rejects:
            faults = self._check_file(commit, rejects, list(REJECTS_SCHEMA.names))
            self._add(found, commit, rejects, "rejects", faults)
        return found

    def _add(
        self, found: CommitFindings, commit: Commit, file: StagedFile, part: Part, faults: Iterator[Discrepancy]
    ) -> None:
        """Add what is wrong with a file, unless it is gone and expired."""
        known = list(faults)
        is_gone = bool(known) and self.state.store.stat(file.final) is None
        if is_gone:
            expired = self.expired.of(part, commit.key, commit.generation)
            if expired is not None:  # guard: a file that is gone without a record is missing
                found.expired[part, expired.words] += 1
                return
        found.discrepancies += known
        if part == "rows":
            found.verified += not known
            found.missing += is_gone

    def staged(self, commit: Commit) -> CommitFindings:
        """Check the files of a commit whose manifest is not done yet."""
        lost = [
            Discrepancy(commit.manifest_id, file.staged, f"{file.rows} rows, staged or published", "neither")
            for file in (*commit.outputs, *commit.rejects)
            # In this order: a job publishes a file before it deletes it from staging.
            if all(self.state.store.stat(uri) is None for uri in (file.staged, file.final))
        ]
        return CommitFindings(lost)

    def _read_columns(self, version: int) -> list[str] | None:
        try:
            return [column.name for column in self.registry.version(version).columns]
        except (ObjectNotFound, StuckError, ValueError):  # ValueError: the object is not a schema version
            return None

    def _check_file(self, commit: Commit, file: StagedFile, columns: list[str] | None) -> Iterator[Discrepancy]:
        expected = f"{file.rows} rows, {file.size_bytes} bytes"
        facts = self._facts(file.final)
        if isinstance(facts, str):
            moved = self._moved(commit, file)
            # guard: rows are verified in the merged file that alone has them
            fault = facts if moved is None else self._merged_fault(moved.file, columns)
            if fault:
                yield Discrepancy(commit.manifest_id, file.final, expected, fault)
            return
        if (facts.rows, facts.size_bytes) != (file.rows, file.size_bytes):
            yield Discrepancy(commit.manifest_id, file.final, expected, f"{facts.rows} rows, {facts.size_bytes} bytes")
        # A key may have the name of a metadata column, from a release that had no such column.
        found = [name for name in facts.columns if name not in METADATA_COLUMNS or name in (columns or ())]
        if columns is not None and found != columns:
            yield Discrepancy(commit.manifest_id, file.final, f"columns {columns}", f"columns {found}")

    def _moved(self, commit: Commit, file: StagedFile) -> Moved | None:
        """Where the rows of a file are that is gone because it was merged."""
        if self.state.store.stat(file.final) is not None:
            return None
        found = self.moved.of(commit.date, file.final)
        return found if found is not None and found.rows == file.rows else None

    def _merged_fault(self, merged: MergedFile, columns: list[str] | None) -> str:
        """What is wrong with a merged file that alone has the rows; empty if nothing is."""
        facts = self._facts(merged.uri)
        if isinstance(facts, str):
            return f"its rows are in {merged.uri} alone: {facts}"
        if (facts.rows, facts.size_bytes) != (merged.rows, merged.size_bytes):
            return f"its rows are in {merged.uri} alone, with {facts.rows} rows, {facts.size_bytes} bytes"
        lost = [name for name in columns or () if name not in facts.columns]
        return f"its rows are in {merged.uri} alone, without columns {lost}" if lost else ""

    def _facts(self, uri: str) -> ParquetFacts | str:
        """The footer of a file, or why it cannot be read."""
        fault = ""
        for _ in range(_TRIES):
            try:
                return parquet_facts(self.state.store, uri)
            except (ObjectChanged, ObjectNotFound, StagingError) as exc:
                fault = str(exc).removeprefix(f"{uri}: ")
                if isinstance(exc, StagingError):
                    break
        return fault


def _contradictions(commit: Commit) -> Iterator[Discrepancy]:
    """The figures of a commit that do not add up by themselves."""
    for file in commit.files:
        accounted = file.records + file.rejected_lines + file.blank_lines + file.erased_rejects
        if accounted != file.lines:
            yield Discrepancy(commit.manifest_id, file.uri, f"{file.lines} lines", f"{accounted} accounted for")
        if fault := range_fault(file):
            yield Discrepancy(commit.manifest_id, file.uri, "a line for each offset, and proof of the end", fault)
    for what, files, expected in (
        ("outputs", commit.outputs, sum(file.records for file in commit.files) - commit.erased_rows),
        ("rejects", commit.rejects, sum(file.reject_rows for file in commit.files)),
    ):
        found = sum(file.rows for file in files)
        if found != expected:
            yield Discrepancy(commit.manifest_id, f"{what} of the commit", f"{expected} rows", f"{found} rows")
    yield from _misnamed(commit)


def _misnamed(commit: Commit) -> Iterator[Discrepancy]:
    """Files whose folders are not those of their partition, by the record of the commit alone."""
    fields = parse_fields(commit.partition_by)
    for file in commit.outputs:
        expected = folders(fields, tuple(file.partition)) if len(file.partition) == len(fields) else None
        if expected is None or not file.final.rpartition("/")[0].endswith(f"/{expected}"[:-1]):
            named = f"the folders of its {len(fields)} partition values"
            yield Discrepancy(commit.manifest_id, file.final, named, "others")
