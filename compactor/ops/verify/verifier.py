"""Proves from what is stored that every line of a manifest is where the ledger says: `compactor verify`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from compactor.core.errors import OperatorError, StoreUnavailable
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.records import Commit, DeadLetter
from compactor.ledger.state import State
from compactor.ops.verify.commit_files import CommitFiles, CommitFindings
from compactor.ops.verify.doubled import DoubledFiles
from compactor.ops.verify.ledger_records import RecordFindings, RecordVerifier
from compactor.ops.verify.report import Discrepancy, VerifyReport
from compactor.ops.verify.surplus import SurplusFinder
from compactor.schema.registry import SchemaRegistry

__all__ = ["DeepCheck", "Discrepancy", "Verifier", "VerifyReport"]

_SHOWN_CHARACTERS = 500

DeepCheck = Callable[[Commit, VerifyReport], None]
"""Compares the values of a commit's inputs and outputs, and adds to the report."""

OnManifest = Callable[[str], None]  # called with the id of each manifest that was verified


def _ignore_manifest(_manifest_id: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """Compares the ledger with output and rejects. Memory does not grow with the number of manifests.

    Every method takes a `deep_check`, which compares values as well, and `on_manifest` to report progress.
    """

    state: State
    registry: SchemaRegistry

    def verify(
        self,
        manifests: Iterable[ManifestKey],
        *,
        whole_dates: bool,
        deep_check: DeepCheck | None = None,
        on_manifest: OnManifest = _ignore_manifest,
    ) -> VerifyReport:
        """Verify manifests, which come date by date.

        With `whole_dates` they are all of their dates, so that every other file in the folders is surplus.
        """
        report = VerifyReport()
        with DoubledFiles(self.state) as doubled:
            for date, of_date in groupby(manifests, key=attrgetter("date")):
                if whole_dates:
                    self._add_manifests(report, of_date, doubled, deep_check, on_manifest)
                    self._add_folders(report, date)
                else:
                    named = list(of_date)
                    self._add_manifests(report, named, doubled, deep_check, on_manifest)
                    for key in named:
                        report.discrepancies.extend(self._surplus.of_manifest(key))
            report.discrepancies.extend(doubled.found())
        return report

    def verify_date(
        self, date: str, *, deep_check: DeepCheck | None = None, on_manifest: OnManifest = _ignore_manifest
    ) -> VerifyReport:
        """Verify all manifests of a date and its folders, even if the ledger has no record of that date."""
        report = VerifyReport()
        with DoubledFiles(self.state) as doubled:
            self._add_manifests(report, self.state.ledger.manifests(date), doubled, deep_check, on_manifest)
            report.discrepancies.extend(doubled.found())
        self._add_folders(report, date)
        return report

    def verify_all(
        self, *, deep_check: DeepCheck | None = None, on_manifest: OnManifest = _ignore_manifest
    ) -> VerifyReport:
        """Verify all manifests and all folders, and that no accepted manifest was forgotten."""
        report = VerifyReport()
        with DoubledFiles(self.state) as doubled:
            self._add_manifests(report, self.state.ledger.manifests(), doubled, deep_check, on_manifest)
            report.discrepancies.extend(doubled.found())
        report.discrepancies.extend(self._surplus.everywhere())
        report.discrepancies.extend(self._records.lost_of_archived(self.state.layout.archive_folder))
        for lost in self._records.lost_of_accepted():
            if lost is None:
                report.unfinished += 1
            else:
                report.discrepancies.append(lost)
        return report

    @cached_property
    def _records(self) -> RecordVerifier:
        return RecordVerifier(state=self.state)

    @cached_property
    def _surplus(self) -> SurplusFinder:
        return SurplusFinder(state=self.state)

    @cached_property
    def _files(self) -> CommitFiles:
        return CommitFiles(state=self.state, registry=self.registry)

    def _add_folders(self, report: VerifyReport, date: str) -> None:
        report.discrepancies.extend(self._surplus.of_date(date))
        report.discrepancies.extend(self._records.lost_of_archived(self.state.layout.archive_folder_of(date)))

    def _add_manifests(
        self,
        report: VerifyReport,
        manifests: Iterable[ManifestKey],
        doubled: DoubledFiles,
        deep_check: DeepCheck | None,
        on_manifest: OnManifest,
    ) -> None:
        for manifest_id, records, files in map_ordered(self._verified, manifests):
            _add(report, records, files, deep_check)
            # An outcome in the wrong place is a discrepancy by itself.
            if isinstance(records.outcome, Commit) and records.outcome.manifest_id == manifest_id:
                doubled.add(records.outcome)
            on_manifest(manifest_id)

    def _verified(self, key: ManifestKey) -> tuple[str, RecordFindings, CommitFindings]:
        """What is found about a manifest, apart from its values."""
        records = self._records.verify(key)
        files = CommitFindings()
        if isinstance(records.outcome, Commit):
            check = self._files.published if records.is_done else self._files.staged
            files = check(records.outcome)
        return key.id, records, files


def _add(report: VerifyReport, records: RecordFindings, files: CommitFindings, deep_check: DeepCheck | None) -> None:
    outcome = records.outcome
    report.discrepancies += [*records.discrepancies, *files.discrepancies]
    if files.lost_schema is not None and files.lost_schema not in report.discrepancies:
        report.discrepancies.append(files.lost_schema)
    if not records.is_done:
        report.unfinished += 1
    elif isinstance(outcome, DeadLetter):
        report.add_dead_letter(outcome, redriven=outcome.manifest_id in records.redriven)
    elif outcome is not None:
        report.add_commit(outcome, redriven=records.redriven)
        if deep_check is not None and files.lost_schema is None:
            _compare(outcome, report, deep_check)


def _compare(commit: Commit, report: VerifyReport, deep_check: DeepCheck) -> None:
    try:
        deep_check(commit, report)
    except (OperatorError, StoreUnavailable):
        raise
    except Exception as exc:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
        found = f"{type(exc).__name__}: {str(exc)[:_SHOWN_CHARACTERS]}"
        report.discrepancies.append(Discrepancy(commit.manifest_id, "contents", "contents that can be read", found))
