"""Proves from what is stored that every line of a manifest is where the ledger says: `compactor verify`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from compactor.core.documents.counts import Counts, counts_of
from compactor.core.documents.records import Commit, DeadLetter, FileStatus
from compactor.core.errors import ObjectNotFound, OperatorError, RecordUnreadable, StoreUnavailable
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.account import Account, DeadLetterManifest, QuarantinedFile, letter_of, quarantined_files
from compactor.ledger.accounts.reading import Listed, Scope, accounts
from compactor.ledger.accounts.reading import listed as listed_in
from compactor.ledger.accounts.settling import Settling, open_file
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.unsummarised import Found, Unsummarised, read_unsummarised
from compactor.ledger.state import State
from compactor.ledger.visible import expired_seen
from compactor.ndjson.grok import DecoderOf, no_decoder
from compactor.ops.verify.doubled import add_versions, doubled_files, doubled_versions
from compactor.ops.verify.files import CommitFiles, surplus, surplus_of_manifest
from compactor.ops.verify.grouping import GroupedOnDisk
from compactor.ops.verify.landed import faults_of_landed, unwritten
from compactor.ops.verify.records import lost_of_accepted, lost_of_archived, read_records
from compactor.ops.verify.report import Discrepancy, ExpiredFiles, Finding, VerifyResult, result_of
from compactor.schema.registry import SchemaRegistry
from compactor.table.standing import ListedTable

if TYPE_CHECKING:
    from compactor.ops.verify.native_sums import NewDigestKernel
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
    new_kernel: "NewDigestKernel | None" = None  # makes what adds up rows, where it is installed
    on_manifest: OnManifest | None = None
    compared: ComparedBytes | None = None
    _files: CommitFiles = field(init=False)  # one for all threads, because it collects faults

    def __post_init__(self) -> None:
        object.__setattr__(self, "_files", CommitFiles(state=self.state, registry=self.registry))

    def verify_manifest(self, key: ManifestKey) -> VerifyResult:
        """Verify one manifest, and that no file that is named after it is surplus."""
        return self.verify_manifests([key])

    def verify_manifests(self, keys: Sequence[ManifestKey]) -> VerifyResult:
        """Verify some manifests, and that no file that is named after one of them is surplus.

        Of a single manifest its own lines count, also if they are redriven ones.
        """
        table = self._table(keys=frozenset(keys))
        of_manifests = self._manifests(Scope(keys=keys), with_source=False, table=table)
        return result_of(chain(of_manifests, self._surplus_of(keys), _of_table(table)))

    def verify_date(self, date: str) -> VerifyResult:
        """Verify all manifests of a date and its folders, even if the ledger has no record of that date."""
        table = self._table(dates=frozenset({date}))
        return result_of(chain(self._manifests(Scope(date=date), table=table), self._folders(date), _of_table(table)))

    def verify_all(self, *, closed: bool = False) -> VerifyResult:
        """Verify everything. Of closed dates the summaries are believed, unless `closed` asks for their records, too.

        To compare values, the records of all dates are read.
        """
        return result_of(self._everything(closed=closed))

    def verify_for_summary(self, date: str | None, keys: Sequence[ManifestKey], on_found: OnFound) -> VerifyResult:
        """Verify manifests that go into a summary, except that no file version of theirs is compacted twice.

        Args:
            date: The date, if it is to be closed: its folders are searched, too.
            keys: The manifests; those of a closed date are searched for surplus files one by one.
            on_found: Called with the outcome of each that is done.
        """
        of_manifests = self._manifests(Scope(keys=keys), on_found=on_found, with_doubled=False)
        return result_of(chain(of_manifests, self._surplus_of(keys) if date is None else self._folders(date)))

    def _everything(self, *, closed: bool) -> Iterator[Finding]:
        found = superseded = unreadable = None
        if not (self.deep or closed):
            try:
                if (found := read_unsummarised(self.state)) is not None:
                    superseded = superseded_counts(self.state, found.superseded)
            except RecordUnreadable as exc:
                expected = "summaries of closed dates, and the earlier commits in them, that can be read"
                unreadable = Discrepancy("", self.state.layout.closed_folder, expected, str(exc))
        if found is not None and superseded is not None:
            yield from self._unsummarised(found, superseded)
        else:
            yield from self._all_records()
        if unreadable is not None:
            yield unreadable
        if self.deep or closed:
            yield from _faults_of_summaries(self.state)
        yield from unwritten(self.state)  # guard: a planned manifest that is lost is found
        yield from faults_of_landed(self.state)
        seen = expired_seen(self.state)
        yield VerifyResult(retired_dates=seen.retired_dates, expiring=seen.expiring)

    def _all_records(self) -> Iterator[Finding]:
        """Verify all manifests and all folders, and that no accepted manifest was forgotten."""
        table = self._table()
        yield from self._manifests(Scope(), table=table)
        yield from surplus(self.state, has_table=self.table is not None)
        yield from lost_of_archived(self.state, self.state.layout.archive_folder)
        yield from lost_of_accepted(self.state)
        yield from _of_table(table)

    def _unsummarised(self, found: Unsummarised, superseded: Counts) -> Iterator[Finding]:
        """Verify what is in no summary, and add the summaries."""
        closed, summed = found.totals.dates.keys(), found.totals.sums - superseded
        table = self._table(summed_dates=closed, fresh=frozenset(found.keys))
        yield VerifyResult(**summed.by_name, closed_dates=len(closed), output_files_summed=summed.output_files)
        yield from self._left_open(found)
        yield from self._manifests(Scope(keys=found.keys), found=found, table=table)
        for date in found.open_dates:
            yield from self._folders(date)
        yield from self._surplus_of(key for key in found.keys if key.date in closed)
        if table is not None:
            compared = table.result()
            yield compared
            if not compared.table_error and table.summed != (summed.output_files, summed.rows):
                yield from self._table_of_dates(frozenset(closed))

    def _left_open(self, found: Unsummarised) -> Iterator[Finding]:
        """What of the summaries still waits for a person."""
        totals, rebuilt = found.totals, {key.id for key, _ in found.superseded}
        letters = list(map(letter_of, totals.letters))
        files = [open_file(each) for each in totals.quarantined if each.manifest_id not in rebuilt]
        yield _settled(Settling(self.state, found=found), files, letters)
        yield from filter(None, map_ordered(lambda each: doubled_versions(self.state, *each.keys), totals.doubled))

    def _table(self, **scope: Collection[Any]) -> "TableFiles | None":
        """The files of the table that are in a `TableScope`, read now; None without a table."""
        if self.table is None:
            return None
        from compactor.ops.verify.table_files import TableFiles, TableScope  # noqa: PLC0415 - few outputs are in a table

        return TableFiles(state=self.state, table=self.table, scope=TableScope(**scope), deep=self.deep)

    def _table_of_dates(self, dates: Collection[str]) -> Iterator[VerifyResult]:
        """Compare the table with the records of closed dates, whose sums differ, to find the files or that none is."""
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
        found: Unsummarised | None = None,
        on_found: OnFound = lambda *_: None,
        with_doubled: bool = True,
        table: "TableFiles | None" = None,
    ) -> Iterator[Finding]:
        """Verify manifests, and compare their files with those that the table lists.

        Args:
            scope: The manifests.
            with_source: Whether the manifests that rejected redriven lines are among them, as they are for a date.
            found: What is in no summary, if it was read before.
            on_found: As for `verify_for_summary`.
            with_doubled: Whether to look for file versions that two of them have compacted.
            table: The table.
        """
        if self.deep and self.compared is not None:
            self.compared.expect(sum(map(_input_bytes, accounts(self.state, scope))))
        files, letters = list[QuarantinedFile](), list[DeadLetterManifest]()
        with GroupedOnDisk(ManifestKey) as versions:
            verified = partial(self._verified, with_source=with_source)
            for account, findings in map_ordered(verified, listed_in(self.state, scope)):
                yield from findings
                commit, letter = account.commit, account.letter
                # An outcome in the wrong place is a discrepancy by itself.
                if with_doubled and commit is not None and commit.key == account.key:
                    add_versions(versions, commit)  # guard: a file whose rows are there twice is found
                if table is not None:
                    table.note(account)
                if account.outcome is not None and account.is_done:
                    on_found(account.key, account.outcome)
                    files += quarantined_files(commit) if commit is not None else ()
                if letter is not None and account.is_done:
                    letters.append(letter_of(letter))
                if self.deep and commit is not None and account.is_done:
                    yield from self._compared(commit, findings, with_source=with_source)
                if self.on_manifest is not None:
                    self.on_manifest()
            yield from doubled_files(self.state, versions)
        for uri, fault in self._files.visible.faults.items():
            yield Discrepancy("", uri, "a record that can be read", fault)
        yield replace(_settled(Settling(self.state, found=found), files, letters), deep=self.deep)

    def _verified(self, listed: Listed, *, with_source: bool) -> tuple[Account, list[Finding]]:
        """What is found about a manifest, apart from its values."""
        account, faults = read_records(self.state, listed)
        findings: list[Finding] = [*faults]
        if account.commit is not None:
            check = self._files.published if account.is_done else self._files.staged
            findings += check(account.commit)
        if not account.is_done:
            findings.append(VerifyResult(unfinished=1))
        elif account.outcome is not None:
            findings.append(VerifyResult(**counts_of(account.outcome, with_source=with_source).by_name))
        return account, findings

    def _compared(self, commit: Commit, findings: Sequence[Finding], *, with_source: bool) -> Iterator[Finding]:
        """Compare the values of a commit, as far as its files are there."""
        gone = {each.part for each in findings if isinstance(each, ExpiredFiles)}
        if "rows" in gone or any(self._files.lost_schemas(commit)):
            return
        if commit.erased is not None:  # the sums of what is left tell nothing of the lines that it is from
            compacted = [file for file in commit.files if file.status is FileStatus.COMPACTED]
            yield VerifyResult(inputs_erased=sum(not (with_source and file.source_uri) for file in compacted))
            return
        # Few calls compare values, and what does so takes a tenth of a second to load.
        from compactor.ops.verify.contents import DeepVerifier  # noqa: PLC0415

        verifier = DeepVerifier(
            state=self.state,
            registry=self.registry,
            visible=self._files.visible,
            decoder_of=self.decoder_of,
            new_kernel=self.new_kernel,
            on_read=self.compared.read if self.compared is not None else lambda _: None,
        )
        try:
            yield from verifier.check(commit, with_source=with_source, with_rejects="rejects" not in gone)
        except (OperatorError, StoreUnavailable):
            raise
        except Exception as exc:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
            found = f"{type(exc).__name__}: {str(exc)[:_SHOWN_CHARACTERS]}"
            yield Discrepancy(commit.manifest_id, "contents", "contents that can be read", found)


def superseded_counts(state: State, superseded: Sequence[Found]) -> Counts:
    """What the summaries have of manifests that were rebuilt since.

    Raises:
        RecordUnreadable: One of the earlier commits is damaged or gone.
    """

    def earlier(summarised: Found) -> Counts:
        try:
            return counts_of(state.ledger.outcome_of(*summarised))
        except ObjectNotFound as exc:
            uri = state.layout.outcome(*summarised)
            raise RecordUnreadable(f"{uri}: it is gone; expected the commit that a summary has") from exc

    return sum(map_ordered(earlier, superseded), Counts())


def _faults_of_summaries(state: State) -> Iterator[Discrepancy]:
    """Summaries of closed dates that are damaged or gone: no other date can be closed until they are made again."""
    dates = ClosedDates(state.store, state.layout)

    def fault(place: int) -> Discrepancy | None:
        try:
            dates.check(place)
        except RecordUnreadable as exc:
            return Discrepancy("", state.layout.summary(place), "a whole summary of a closed date", str(exc))
        return None

    return filter(None, map_ordered(fault, dates.places_to_check()))


def _settled(
    settling: Settling, files: Sequence[QuarantinedFile], letters: Sequence[DeadLetterManifest]
) -> VerifyResult:
    """Quarantined files and dead letters, with what settled each."""
    return VerifyResult(
        quarantined_files=[replace(each, redriven=bool(each.redriven)) for each in settling.files(files)],
        dead_letter_manifests=[replace(each, redriven=bool(each.redriven)) for each in settling.letters(letters)],
    )


def _of_table(table: "TableFiles | None") -> Iterator[Finding]:
    if table is not None:
        yield table.result()


def _input_bytes(account: Account) -> int:
    """The stored bytes of the inputs of a manifest that are to be compared."""
    found = account.commit
    if found is None or found.erased is not None:
        return 0
    return sum(file.size_bytes for file in found.files if file.status is FileStatus.COMPACTED)
