"""Proves from what is stored that every line of a manifest is where the ledger says: `compactor verify`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from compactor.core.errors import (
    ObjectChanged,
    ObjectNotFound,
    OperatorError,
    StagingError,
    StoreUnavailable,
    StuckError,
)
from compactor.core.layout import Layout
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.core.records import Commit, DeadLetter, StagedFile
from compactor.engines.parquet_files import ParquetFacts, parquet_facts
from compactor.ledger.ledger import Ledger
from compactor.ndjson.rejects import REJECTS_SCHEMA
from compactor.ops.verify.ledger_records import RecordFindings, RecordVerifier
from compactor.ops.verify.report import Discrepancy, VerifyReport
from compactor.ops.verify.surplus import SurplusFinder
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import METADATA_COLUMNS

__all__ = ["DeepCheck", "Discrepancy", "Verifier", "VerifyReport"]

_SCHEMAS_HELD = 32
_SHOWN_CHARACTERS = 500
_TRIES = 3  # for a file that another driver publishes once more while it is read

DeepCheck = Callable[[Commit, VerifyReport], None]
"""Compares the contents of a commit's inputs and outputs, and adds to the report."""


@dataclass(slots=True)
class _Examined:
    """What was found about one manifest, apart from its contents.

    Attributes:
        lost_schema: The schema version of its commit is missing, which many commits may share.
    """

    manifest_id: str
    records: RecordFindings
    discrepancies: list[Discrepancy] = field(default_factory=list)
    lost_schema: Discrepancy | None = None


class Verifier:
    """Holds the ledger against output and rejects. Memory does not grow with the number of days or manifests.

    Args:
        store: Where everything is.
        layout: The places.
        ledger: What should be.
        registry: The schema versions.
    """

    def __init__(self, store: ObjectStore, layout: Layout, ledger: Ledger, registry: SchemaRegistry) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._registry = registry
        self._records = RecordVerifier(store, layout, ledger)
        self._surplus = SurplusFinder(store, layout, ledger)
        self._columns = lru_cache(maxsize=_SCHEMAS_HELD)(self._read_columns)

    def verification(
        self,
        manifests: Iterable[ManifestKey],
        *,
        whole_days: bool,
        deep_check: DeepCheck | None = None,
        on_manifest: Callable[[str], None] = lambda _: None,
    ) -> VerifyReport:
        """Check manifests.

        Args:
            manifests: Date by date.
            whole_days: These are all manifests of their days, so any other file in the days' folders is one too many.
            deep_check: Compares contents as well.
            on_manifest: Told of each manifest that was checked.
        """
        report = VerifyReport()
        for date, of_date in groupby(manifests, key=attrgetter("date")):
            if whole_days:
                self._check_manifests(report, of_date, deep_check, on_manifest)
                self._check_date(report, date)
            else:
                named = list(of_date)
                self._check_manifests(report, named, deep_check, on_manifest)
                for key in named:
                    report.discrepancies.extend(self._surplus.of_manifest(key))
        return report

    def verify_date(
        self,
        date: str,
        *,
        deep_check: DeepCheck | None = None,
        on_manifest: Callable[[str], None] = lambda _: None,
    ) -> VerifyReport:
        """Check all manifests of a day and the folders of that day, also of one that the ledger knows nothing of."""
        report = VerifyReport()
        self._check_manifests(report, self._ledger.manifests(date), deep_check, on_manifest)
        self._check_date(report, date)
        return report

    def verify_all(
        self, *, deep_check: DeepCheck | None = None, on_manifest: Callable[[str], None] = lambda _: None
    ) -> VerifyReport:
        """Check everything: the manifests of all days, the folders of all days, and that no manifest was forgotten."""
        report = VerifyReport()
        self._check_manifests(report, self._ledger.manifests(), deep_check, on_manifest)
        report.discrepancies.extend(self._surplus.everywhere())
        report.discrepancies.extend(self._records.lost_of_archived(self._layout.archive_folder))
        for lost in self._records.lost_of_accepted():
            if lost is None:
                report.unfinished += 1
            else:
                report.discrepancies.append(lost)
        return report

    def _check_date(self, report: VerifyReport, date: str) -> None:
        report.discrepancies.extend(self._surplus.of_date(date))
        report.discrepancies.extend(self._records.lost_of_archived(self._layout.archive_folder_of(date)))

    def _check_manifests(
        self,
        report: VerifyReport,
        manifests: Iterable[ManifestKey],
        deep_check: DeepCheck | None,
        on_manifest: Callable[[str], None],
    ) -> None:
        for examined in map_ordered(self._examined, manifests):
            self._add(report, examined, deep_check)
            on_manifest(examined.manifest_id)

    def _examined(self, key: ManifestKey) -> _Examined:
        records = self._records.examine(key)
        found = _Examined(key.id, records, records.discrepancies)
        if isinstance(records.outcome, Commit):
            if records.is_done:
                self._examine_files(records.outcome, found)
            else:
                found.discrepancies += self._lost_staging(records.outcome)
        return found

    def _lost_staging(self, commit: Commit) -> Iterator[Discrepancy]:
        for file in (*commit.outputs, *commit.rejects):
            # In this order, for a job publishes a file before it removes it from staging.
            if all(self._store.stat(uri) is None for uri in (file.staged, file.final)):
                expected = f"{file.rows} rows, staged or published"
                yield Discrepancy(commit.manifest_id, file.staged, expected, "neither")

    def _add(self, report: VerifyReport, examined: _Examined, deep_check: DeepCheck | None) -> None:
        outcome = examined.records.outcome
        report.discrepancies += examined.discrepancies
        if examined.lost_schema is not None and examined.lost_schema not in report.discrepancies:
            report.discrepancies.append(examined.lost_schema)
        if not examined.records.is_done:
            report.unfinished += 1
        elif isinstance(outcome, DeadLetter):
            report.add_dead_letter(outcome, redriven=outcome.manifest_id in examined.records.redriven)
        elif outcome is not None:
            report.add_commit(outcome, redriven=examined.records.redriven)
            if deep_check is not None and examined.lost_schema is None:
                _compare(outcome, report, deep_check)

    def _examine_files(self, commit: Commit, found: _Examined) -> None:
        faults = found.discrepancies
        for file in commit.files:
            accounted = file.records + file.rejected_lines + file.blank_lines
            if accounted != file.lines:
                faults.append(
                    Discrepancy(commit.manifest_id, file.uri, f"{file.lines} lines", f"{accounted} accounted for")
                )
        for version in {commit.schema_version, *[output.version_in(commit) for output in commit.outputs]}:
            if self._columns(version) is None:
                where = self._layout.schema(version)
                found.lost_schema = Discrepancy(
                    "", where, "a schema version that commits name", "none that can be read"
                )
        for output in commit.outputs:
            faults += self._check_file(commit, output, self._columns(output.version_in(commit)))
        for rejects in commit.rejects:
            faults += self._check_file(commit, rejects, list(REJECTS_SCHEMA.names))
        faults += _check_sums(commit)

    def _read_columns(self, version: int) -> list[str] | None:
        try:
            return [column.name for column in self._registry.version(version).columns]
        except (ObjectNotFound, StuckError, ValueError):  # the last one: it holds something else
            return None

    def _check_file(self, commit: Commit, file: StagedFile, columns: list[str] | None) -> Iterator[Discrepancy]:
        expected = f"{file.rows} rows, {file.size_bytes} bytes"
        facts = self._facts(file.final)
        if isinstance(facts, str):
            yield Discrepancy(commit.manifest_id, file.final, expected, facts)
            return
        if (facts.rows, facts.size_bytes) != (file.rows, file.size_bytes):
            found_size = f"{facts.rows} rows, {facts.size_bytes} bytes"
            yield Discrepancy(commit.manifest_id, file.final, expected, found_size)
        found = [name for name in facts.columns if name not in METADATA_COLUMNS]
        if columns is not None and found != columns:
            yield Discrepancy(commit.manifest_id, file.final, f"columns {columns}", f"columns {found}")

    def _facts(self, uri: str) -> ParquetFacts | str:
        """What a footer says, or in words why there is none to be read."""
        fault = ""
        for _ in range(_TRIES):
            try:
                return parquet_facts(self._store, uri)
            except StagingError as exc:
                return str(exc).removeprefix(f"{uri}: ")
            except (ObjectChanged, ObjectNotFound) as exc:
                fault = str(exc).removeprefix(f"{uri}: ")
        return fault


def _compare(commit: Commit, report: VerifyReport, deep_check: DeepCheck) -> None:
    try:
        deep_check(commit, report)
    except (OperatorError, StoreUnavailable):
        raise
    except Exception as exc:  # noqa: BLE001 - damaged bytes make readers fail in ways that nobody foresaw
        found = f"{type(exc).__name__}: {str(exc)[:_SHOWN_CHARACTERS]}"
        report.discrepancies.append(Discrepancy(commit.manifest_id, "contents", "contents that can be read", found))


def _check_sums(commit: Commit) -> Iterator[Discrepancy]:
    for what, files, expected in (
        ("outputs", commit.outputs, sum(file.records for file in commit.files)),
        ("rejects", commit.rejects, sum(file.reject_rows for file in commit.files)),
    ):
        found = sum(file.rows for file in files)
        if found != expected:
            yield Discrepancy(commit.manifest_id, f"{what} of the commit", f"{expected} rows", f"{found} rows")
