"""Proves from what is stored that every line of a manifest is where the ledger says: `compactor verify`."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from compactor.core.documents.closed_dates import ManifestSums
from compactor.core.documents.records import Commit, DeadLetter, FileReport, FileStatus
from compactor.core.errors import OperatorError, RecordUnreadable, StoreUnavailable
from compactor.core.layout import ManifestKey, redriven_owner
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Listed, Scope, accounts
from compactor.ledger.accounts.reading import listed as listed_in
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.history.unsummarised import Unsummarised, read_unsummarised
from compactor.ledger.state import State
from compactor.ledger.visible import expired_seen
from compactor.ndjson.grok import DecoderOf, no_decoder
from compactor.ops.verify.doubled import DoubledFiles
from compactor.ops.verify.files import (
    CommitFiles,
    CommitFindings,
    surplus_everywhere,
    surplus_of_date,
    surplus_of_manifest,
)
from compactor.ops.verify.landed import faults_of_landed
from compactor.ops.verify.planned.unwritten import unwritten
from compactor.ops.verify.records import (
    RecordFindings,
    checked_letters,
    faults_of_summaries,
    lost_of_accepted,
    lost_of_archived,
    summarised_report,
    superseded_sums,
    verify_records,
)
from compactor.ops.verify.report import Discrepancy, VerifyResult
from compactor.ops.verify.values.ports import NewDigestKernel
from compactor.schema.registry import SchemaRegistry
from compactor.table.listed import ListedTable

if TYPE_CHECKING:
    from compactor.ops.verify.table_files import TableFiles

_SHOWN_CHARACTERS = 500

OnManifest = Callable[[], None]  # called after each manifest that was verified


class ComparedBytes(Protocol):
    """Is told how far a comparison of values has come."""

    def expect(self, total_bytes: int) -> None:
        """So many stored bytes of inputs are about to be compared."""

    def read(self, stored_bytes: int) -> None:
        """Further bytes of them were read."""


OnFound = Callable[[ManifestKey, Commit | DeadLetter], object]


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """Compares the ledger with output and rejects. Memory does not grow with the number of manifests.

    With a table it holds the names of the files that the table lists, without those of closed dates.
    """

    state: State
    registry: SchemaRegistry
    decoder_of: DecoderOf = no_decoder  # makes what reads lines of text again
    table: ListedTable | None = None  # lists the output
    deep: bool = False  # compare values as well
    new_kernel: NewDigestKernel | None = None  # makes what adds up rows, where it is installed
    on_manifest: OnManifest | None = None
    compared: ComparedBytes | None = None
    _files: CommitFiles = field(init=False)  # one for all threads, because it collects faults

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", CommitFiles(state=self.state, registry=self.registry))

    def verify_manifest(self, key: ManifestKey) -> VerifyResult:
        """Verify one manifest, and that no file that is named after it is surplus."""
        return self.verify_manifests([key])

    def verify_manifests(self, keys: Sequence[ManifestKey]) -> VerifyResult:
        """Verify some manifests, and that no file that is named after one of them is surplus."""
        listed = self._listed(keys=frozenset(keys))
        report = self._verified_manifests(Scope(keys=keys), with_sources=False, table=listed)
        self._add_surplus(report, keys)
        if listed is not None:
            listed.add_to(report)
        return report

    def verify_date(self, date: str) -> VerifyResult:
        """Verify all manifests of a date and its folders, even if the ledger has no record of that date."""
        listed = self._listed(dates=frozenset({date}))
        report = self._verified_manifests(Scope(date=date), table=listed)
        self._add_folders(report, date)
        if listed is not None:
            listed.add_to(report)
        return report

    def verify_all(self, *, closed: bool = False) -> VerifyResult:
        """Verify everything. Of closed dates the summaries are believed, unless `closed` asks for their records, too.

        To compare values, the records of all dates are read.
        """
        report = self._verified_all(closed=closed)
        report.discrepancies += unwritten(self.state)  # guard: a planned manifest that is lost is found
        report.discrepancies += faults_of_landed(self.state)
        seen = expired_seen(self.state)
        report.retired_dates, report.expiring = seen.retired_dates, seen.expiring
        return report

    def _verified_all(self, *, closed: bool) -> VerifyResult:
        if self.deep or closed:
            report = self._verify_records()
            report.discrepancies += faults_of_summaries(self.state)
            return report
        try:
            found = read_unsummarised(self.state)
            superseded = ManifestSums() if found is None else superseded_sums(self.state, found)
        except RecordUnreadable as exc:
            report = self._verify_records()
            expected = "summaries of closed dates, and the earlier commits in them, that can be read"
            report.discrepancies.append(Discrepancy("", self.state.layout.closed_folder, expected, str(exc)))
            return report
        return self._verify_records() if found is None else self._verify_unsummarised(found, superseded)

    def _verify_unsummarised(self, found: Unsummarised, superseded: ManifestSums) -> VerifyResult:
        """Verify what is in no summary, and add the summaries."""
        listed = self._listed(summed_dates=found.totals.dates.keys(), fresh=frozenset(found.keys))
        report = summarised_report(self.state, found, superseded)
        summed = (report.output_files, report.rows)
        self._add_manifests(report, Scope(keys=found.keys), found=found, table=listed)
        for date in found.open_dates:
            self._add_folders(report, date)
        self._add_surplus(report, (key for key in found.keys if key.date in found.totals.dates))
        if listed is not None:
            listed.add_to(report)
            if not listed.found.error and (listed.summed_files, listed.summed_rows) != summed:
                self._add_listed_of(report, frozenset(found.totals.dates))
        return report

    def _listed(self, **scope: Collection[Any]) -> "TableFiles | None":
        """The files of the table that are in a `TableScope`, read now; None without a table."""
        if self.table is None:
            return None
        from compactor.ops.verify.table_files import TableFiles, TableScope  # noqa: PLC0415 - few outputs are in a table

        return TableFiles(state=self.state, table=self.table, scope=TableScope(**scope), deep=self.deep)

    def _add_listed_of(self, report: VerifyResult, dates: Collection[str]) -> None:
        """Compare the table with the records of closed dates, whose sums differ, to find the files or that none is."""
        listed, known = self._listed(dates=dates), report.table
        if listed is None:
            return
        for account in chain.from_iterable(accounts(self.state, Scope(date=date)) for date in sorted(dates)):
            if account.outcome is not None:
                listed.note(account.key, account.outcome, is_done=account.is_done)
        listed.add_to(report)
        if known is not None and not listed.found.error:
            report.table = known

    def _add_surplus(self, report: VerifyResult, keys: Iterable[ManifestKey]) -> None:
        for key in keys:
            report.add_surplus(surplus_of_manifest(self.state, key, has_table=self.table is not None))

    def _add_folders(self, report: VerifyResult, date: str) -> None:
        report.add_surplus(surplus_of_date(self.state, date, has_table=self.table is not None))
        report.discrepancies += lost_of_archived(self.state, self.state.layout.archive_folder_of(date))

    def verify_for_summary(self, date: str | None, keys: Sequence[ManifestKey], on_found: OnFound) -> VerifyResult:
        """Verify manifests that go into a summary, except that no file version of theirs is compacted twice.

        Args:
            date: The date, if it is to be closed: its folders are searched, too.
            keys: The manifests; those of a closed date are searched for surplus files one by one.
            on_found: Called with the outcome of each that is done.
        """
        report = VerifyResult(deep=self.deep)
        self._add_manifests(report, Scope(keys=keys), on_found=on_found, with_doubled=False)
        if date is not None:
            self._add_folders(report, date)
        else:
            self._add_surplus(report, keys)
        return report

    def _verify_records(self) -> VerifyResult:
        """Verify all manifests and all folders, and that no accepted manifest was forgotten."""
        listed = self._listed()
        report = self._verified_manifests(Scope(), table=listed)
        report.add_surplus(surplus_everywhere(self.state, has_table=self.table is not None))
        report.discrepancies += lost_of_archived(self.state, self.state.layout.archive_folder)
        for lost in lost_of_accepted(self.state):
            if lost is None:
                report.unfinished += 1
            else:
                report.discrepancies.append(lost)
        if listed is not None:
            listed.add_to(report)
        return report

    def _verified_manifests(
        self, scope: Scope, *, with_sources: bool = True, table: "TableFiles | None" = None
    ) -> VerifyResult:
        """Verify manifests.

        A redrive has the date of the manifest that rejected its lines, so both are among those of a date. Of a single
        manifest its own lines count.
        """
        report = VerifyResult(deep=self.deep)
        if self.deep and self.compared is not None:
            self.compared.expect(sum(map(_input_bytes, accounts(self.state, scope))))
        self._add_manifests(report, scope, with_sources=with_sources, table=table)
        return report

    def _add_manifests(
        self,
        report: VerifyResult,
        scope: Scope,
        *,
        with_sources: bool = True,
        found: Unsummarised | None = None,
        on_found: OnFound = lambda *_: None,
        with_doubled: bool = True,
        table: "TableFiles | None" = None,
    ) -> None:
        """Verify manifests, add them to a report, and compare their files with those that the table lists.

        `found` is what is in no summary, if it was read before.
        """
        known, report.quarantined_files = report.quarantined_files, []
        known_letters, report.dead_letter_manifests = report.dead_letter_manifests, []
        with DoubledFiles(self.state) as doubled:
            for key, records, files in map_ordered(self._verified, listed_in(self.state, scope)):
                self._add(report, records, files, with_source=with_sources)
                # An outcome in the wrong place is a discrepancy by itself.
                if with_doubled and isinstance(records.outcome, Commit) and records.outcome.key == key:
                    doubled.add(records.outcome)  # guard: a file whose rows are there twice is found
                if table is not None and records.outcome is not None:
                    table.note(key, records.outcome, is_done=records.is_done)
                if records.outcome is not None and records.is_done:
                    on_found(key, records.outcome)
                if self.on_manifest is not None:
                    self.on_manifest()
            report.discrepancies += doubled.found()
        for uri, fault in self._files.visible.faults.items():
            damaged = Discrepancy("", uri, "a record that can be read", fault)
            report.discrepancies += [] if damaged in report.discrepancies else [damaged]
        settling = Settling(self.state, found=found)
        checked = settling.files(report.quarantined_files)
        report.quarantined_files = [*known, *(replace(each, redriven=bool(each.redriven)) for each in checked)]
        report.dead_letter_manifests = [*known_letters, *checked_letters(settling, report.dead_letter_manifests)]

    def _verified(self, listed: Listed) -> tuple[ManifestKey, RecordFindings, CommitFindings]:
        """What is found about a manifest, apart from its values."""
        records = verify_records(self.state, listed)
        files = CommitFindings()
        if isinstance(records.outcome, Commit):
            check = self._files.published if records.is_done else self._files.staged
            files = check(records.outcome)
        return listed.key, records, files

    def _why_gone(self, commit: Commit, file: FileReport) -> str:
        """Why an input file expired; empty if no rule says so: only redriven lines are the compactor's own."""
        if redriven_owner(file.uri, self.state.layout.redriven_folder) != commit.manifest_id:
            return ""
        expired = self._files.visible.taken("redriven", commit.key, commit.generation)
        return "" if expired is None else expired.words

    def _add(self, report: VerifyResult, records: RecordFindings, files: CommitFindings, *, with_source: bool) -> None:
        outcome = records.outcome
        if outcome is not None:
            for (part, why), number in files.expired.items():
                report.add_expired(outcome.date, part, why, number)
        report.discrepancies += [*records.discrepancies, *files.discrepancies]
        if files.lost_schema is not None and files.lost_schema not in report.discrepancies:
            report.discrepancies.append(files.lost_schema)
        if not records.is_done:
            report.unfinished += 1
        elif isinstance(outcome, DeadLetter):
            report.add_dead_letter(outcome)
        elif outcome is not None:
            report.add_commit(outcome, with_source=with_source)
            report.output_files_verified += files.verified
            report.output_files_missing += files.missing
            gone = {part for part, _ in files.expired}
            if self.deep and files.lost_schema is None and "rows" not in gone:
                self._compare(outcome, report, with_source=with_source, with_rejects="rejects" not in gone)

    def _compare(self, commit: Commit, report: VerifyResult, *, with_source: bool, with_rejects: bool) -> None:
        if commit.erased is not None:  # the sums of what is left tell nothing of the lines that it is from
            compacted = [file for file in commit.files if file.status is FileStatus.COMPACTED]
            report.inputs_erased += sum(not (with_source and file.source_uri) for file in compacted)
            return
        # Few calls compare values, and what does so takes a tenth of a second to load.
        from compactor.ops.verify.values.contents import DeepVerifier  # noqa: PLC0415
        from compactor.table.merging.committed_rows import CommittedRows  # noqa: PLC0415

        try:
            verifier = DeepVerifier(
                store=self.state.store,
                registry=self.registry,
                rows=CommittedRows(self.state.store, self._files.visible),
                decoder_of=self.decoder_of,
                new_kernel=self.new_kernel,
                on_read=self.compared.read if self.compared is not None else lambda _: None,
                why_gone=self._why_gone,
            )
            verifier.check(commit, report, with_source=with_source, with_rejects=with_rejects)
        except (OperatorError, StoreUnavailable):
            raise
        except Exception as exc:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
            found = f"{type(exc).__name__}: {str(exc)[:_SHOWN_CHARACTERS]}"
            report.discrepancies.append(Discrepancy(commit.manifest_id, "contents", "contents that can be read", found))


def _input_bytes(account: Account) -> int:
    """The stored bytes of the inputs of a manifest that are to be compared."""
    found = account.commit
    if found is None or found.erased is not None:
        return 0
    return sum(file.size_bytes for file in found.files if file.status is FileStatus.COMPACTED)
