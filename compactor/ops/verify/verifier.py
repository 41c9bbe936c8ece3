"""Verifies from the stored data that every line of a manifest is where the ledger says: `compactor verify`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.counts import Counts, counts_of
from compactor.core.documents.records import FileStatus
from compactor.core.errors import ObjectNotFound, OperatorError, RecordUnreadable, StoreUnavailable
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.account import Account, letter_of, quarantined_files
from compactor.ledger.accounts.reading import Listed, Scope, accounts
from compactor.ledger.accounts.reading import listed as listed_in
from compactor.ledger.accounts.replaced import replaced_files
from compactor.ledger.accounts.settling import Settling, open_file
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.unsummarised import Found, Unsummarised, read_unsummarised
from compactor.ledger.state import State
from compactor.ledger.visible import expired_seen
from compactor.ops.verify.doubled import add_versions, doubled_files, doubled_versions
from compactor.ops.verify.files import CommitFiles, surplus, surplus_of_manifest
from compactor.ops.verify.grouping import GroupedOnDisk
from compactor.ops.verify.landed import faults_of_landed, unwritten
from compactor.ops.verify.records import lost_of_accepted, lost_of_archived, read_records
from compactor.ops.verify.report import Discrepancy, ExpiredFiles, Finding, VerifyResult, result_of
from compactor.table.standing import ListedTable

if TYPE_CHECKING:
    from compactor.ops.verify.contents import DeepVerifier
    from compactor.ops.verify.table_files import TableFiles

_SHOWN_CHARACTERS = 500


OnFound = Callable[[ManifestKey, Commit | DeadLetter], object]


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """Compares the ledger with output and rejects.

    Memory does not grow with the number of manifests, except for the names of the table's files, without those of
    closed dates.
    """

    state: State
    files: CommitFiles  # one for all threads, because it collects faults
    table: ListedTable | None = None  # lists the output
    contents: "DeepVerifier | None" = None  # compares values as well

    def verify_manifests(self, keys: Sequence[ManifestKey]) -> VerifyResult:
        """Verify some manifests, and that no file with one of their names is surplus.

        Redriven lines count in the manifest that contains them.
        """
        table = self._table(keys=frozenset(keys))
        of_manifests = self._manifests(Scope(keys=keys), with_source=False, table=table)
        replaced = VerifyResult(quarantined_files=replaced_files(self.state, {key.id for key in keys}))
        return self._result(chain(of_manifests, self._surplus_of(keys), _of_table(table), [replaced]))

    def verify_date(self, date: str) -> VerifyResult:
        """Verify all manifests of a date and its folders, even if the ledger has no record of that date."""
        table = self._table(dates=frozenset({date}))
        of_manifests = self._manifests(Scope(date=date), table=table)
        ids = {key.id for key in self.state.ledger.manifests(date)}
        replaced = VerifyResult(quarantined_files=replaced_files(self.state, ids))
        return self._result(chain(of_manifests, self._folders(date), _of_table(table), [replaced]))

    def verify_all(self, *, closed: bool = False) -> VerifyResult:
        """Verify everything. Closed dates count by their summaries, except with `closed`, and with `deep`."""
        found, unreadable, superseded = None, list[Finding](), Counts()
        reads_all = closed or self.contents is not None
        try:
            found = None if reads_all else read_unsummarised(self.state)
            superseded = superseded_counts(self.state, found.superseded if found is not None else ())
        except RecordUnreadable as exc:
            expected = "summaries of closed dates, and the earlier commits in them, that can be read"
            found, unreadable = None, [Discrepancy("", self.state.layout.closed_folder, expected, str(exc))]
        findings = self._all_records() if found is None else self._unsummarised(found, superseded)
        faults = _faults_of_summaries(self.state) if reads_all else ()
        return self._result(chain(findings, unreadable, faults, self._of_everything()), found)

    def verify_for_summary(self, date: str | None, keys: Sequence[ManifestKey], on_found: OnFound) -> VerifyResult:
        """Verify manifests for a summary, without looking for file versions that were compacted twice.

        Args:
            date: The date to close, whose folders are searched; None to search for surplus files of each manifest.
            keys: The manifests.
            on_found: Called with each finished outcome.
        """
        of_manifests = self._manifests(Scope(keys=keys), on_found=on_found)
        return self._result(chain(of_manifests, self._surplus_of(keys) if date is None else self._folders(date)))

    def _result(self, findings: Iterable[Finding], found: Unsummarised | None = None) -> VerifyResult:
        """Add up findings, and read what settled each quarantined file and each dead letter."""
        result, settling = result_of(findings), Settling(self.state, found=found)
        files, letters = settling.files(result.quarantined_files), settling.letters(result.dead_letter_manifests)
        return replace(
            result,
            deep=self.contents is not None,
            quarantined_files=[replace(each, redriven=bool(each.redriven)) for each in files],
            dead_letter_manifests=[replace(each, redriven=bool(each.redriven)) for each in letters],
        )

    def _of_everything(self) -> Iterator[Finding]:
        yield from unwritten(self.state)  # guard: a planned manifest that is lost is found
        yield from faults_of_landed(self.state)
        yield from self.files.faults_of_columns()
        seen = expired_seen(self.state)
        yield VerifyResult(
            expired_dates=seen.expired_dates, expiring=seen.expiring, quarantined_files=replaced_files(self.state)
        )

    def _all_records(self) -> Iterator[Finding]:
        table = self._table()
        yield from self._manifests(Scope(), table=table)
        yield from surplus(self.state, has_table=self.table is not None)
        yield from lost_of_archived(self.state, self.state.layout.archive_folder)
        yield from lost_of_accepted(self.state)
        yield from _of_table(table)

    def _unsummarised(self, found: Unsummarised, superseded: Counts) -> Iterator[Finding]:
        closed, summed = found.totals.dates.keys(), found.totals.sums - superseded
        table = self._table(summed_dates=closed, fresh=frozenset(found.keys))
        yield VerifyResult(**summed.by_name, closed_dates=len(closed), output_files_summed=summed.output_files)
        rebuilt = {key.id for key, _ in found.superseded}
        yield VerifyResult(
            quarantined_files=[open_file(each) for each in found.totals.quarantined if each.manifest_id not in rebuilt],
            dead_letter_manifests=list(map(letter_of, found.totals.letters)),
        )
        doubled = map_ordered(lambda each: doubled_versions(self.state, *each.keys), found.totals.doubled)
        yield from filter(None, doubled)
        yield from self._manifests(Scope(keys=found.keys), table=table)
        for date in found.open_dates:
            yield from self._folders(date)
        yield from self._surplus_of(key for key in found.keys if key.date in closed)
        if table is not None:
            compared = table.result()
            yield compared
            if not compared.table_error and table.summed != (summed.output_files, summed.rows):
                yield from self._table_of_dates(frozenset(closed))

    def _table(self, **scope: Any) -> "TableFiles | None":
        """Read the table's files in a scope, see `TableFiles`; None without a table."""
        if self.table is None:
            return None
        from compactor.ops.verify.table_files import TableFiles  # noqa: PLC0415 - few outputs are in a table

        return TableFiles(state=self.state, table=self.table, deep=self.contents is not None, **scope)

    def _table_of_dates(self, dates: Collection[str]) -> Iterator[VerifyResult]:
        """Find the files that make the sums of the table and of closed dates differ, from these dates' records."""
        table = self._table(dates=dates)
        if table is not None:
            for date in sorted(dates):
                for account in accounts(self.state, Scope(date=date)):
                    table.note(account)
            found = table.result()
            yield found if found.table_error else replace(found, table=None)

    def _surplus_of(self, keys: Iterable[ManifestKey]) -> Iterator[Finding]:
        for key in keys:
            yield from surplus_of_manifest(self.state, key, has_table=self.table is not None)

    def _folders(self, date: str) -> Iterator[Finding]:
        yield from surplus(self.state, date, has_table=self.table is not None)
        yield from lost_of_archived(self.state, self.state.layout.archive_folder_of(date))

    def _manifests(
        self,
        scope: Scope,
        *,
        with_source: bool = True,
        on_found: OnFound | None = None,
        table: "TableFiles | None" = None,
    ) -> Iterator[Finding]:
        """Verify manifests, and compare their files with those of the table.

        Args:
            scope: The manifests.
            with_source: Whether the manifests that rejected redriven lines are verified with them.
            on_found: As for `verify_for_summary`; without it, file versions that were compacted twice are looked for.
            table: The files of the table.
        """
        meter = self.state.meter
        if self.contents is not None:
            work = meter.work("byte", self.contents.input_bytes(meter.each("manifest", accounts(self.state, scope))))
        else:
            work = meter.work("manifest", len(scope.keys) if isinstance(scope.keys, Sized) else None)
        with work as is_counted, GroupedOnDisk(ManifestKey) as versions:
            verified = partial(self._verified, with_source=with_source)
            for account, findings in map_ordered(verified, listed_in(self.state, scope)):
                yield from findings
                commit = account.commit
                # reported as a separate discrepancy
                if on_found is None and commit is not None and commit.key == account.key:
                    add_versions(versions, commit)  # guard: a file with duplicated rows is found
                if table is not None:
                    table.note(account)
                if on_found is not None and account.outcome is not None and account.is_done:
                    on_found(account.key, account.outcome)
                if self.contents is not None and commit is not None and account.is_done:
                    yield from self._compared(self.contents, commit, findings, with_source=with_source)
                if is_counted:
                    meter.add("manifest")
            yield from doubled_files(self.state, versions)
        for uri, fault in self.files.visible.faults.items():
            yield Discrepancy("", uri, "a record that can be read", fault)

    def _verified(self, listed: Listed, *, with_source: bool) -> tuple[Account, list[Finding]]:
        account, faults = read_records(self.state, listed)
        findings: list[Finding] = [*faults]
        if account.commit is not None:
            check = self.files.published if account.is_done else self.files.staged
            findings += check(account.commit)
        if not account.is_done:
            findings.append(VerifyResult(unfinished=1))
        elif account.outcome is not None:
            findings.append(
                VerifyResult(
                    **counts_of(account.outcome, with_source=with_source).by_name,
                    quarantined_files=quarantined_files(account.commit) if account.commit is not None else [],
                    dead_letter_manifests=[letter_of(account.letter)] if account.letter is not None else [],
                )
            )
        return account, findings

    def _compared(
        self, contents: "DeepVerifier", commit: Commit, findings: Sequence[Finding], *, with_source: bool
    ) -> Iterator[Finding]:
        gone = {each.part for each in findings if isinstance(each, ExpiredFiles)}
        if "rows" in gone or any(self.files.lost_schemas(commit)):
            return
        if commit.erased is not None:  # its rows are fewer than its inputs'
            compacted = [file for file in commit.files if file.status is FileStatus.COMPACTED]
            yield VerifyResult(inputs_erased=sum(not (with_source and file.source_uri) for file in compacted))
            return
        try:
            yield from contents.check(commit, with_source=with_source, with_rejects="rejects" not in gone)
        except (OperatorError, StoreUnavailable):
            raise
        except Exception as exc:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
            found = f"{type(exc).__name__}: {str(exc)[:_SHOWN_CHARACTERS]}"
            yield Discrepancy(commit.manifest_id, "contents", "contents that can be read", found)


def superseded_counts(state: State, superseded: Sequence[Found]) -> Counts:
    """Add up the summaries' share of manifests that were rebuilt since.

    Raises:
        RecordUnreadable: One of the earlier commits is damaged or missing.
    """

    def earlier(summarised: Found) -> Counts:
        try:
            return counts_of(state.ledger.outcome_of(*summarised))
        except ObjectNotFound as exc:
            uri = state.layout.outcome(*summarised)
            raise RecordUnreadable(f"{uri}: missing; expected the commit in a summary") from exc

    return sum(map_ordered(earlier, superseded), Counts())


def _faults_of_summaries(state: State) -> Iterator[Discrepancy]:
    """Damaged or missing summaries of closed dates: no other date can be closed until they are recreated."""
    dates = ClosedDates(state.store, state.layout)

    def fault(place: int) -> Discrepancy | None:
        try:
            dates.check(place)
        except RecordUnreadable as exc:
            return Discrepancy("", state.layout.summary(place), "a whole summary of a closed date", str(exc))
        return None

    return filter(None, map_ordered(fault, dates.places_to_check()))


def _of_table(table: "TableFiles | None") -> Iterator[Finding]:
    if table is not None:
        yield table.result()
