"""Redrives dead letters, quarantined files and rejected lines as new manifests, so that no line is lost or doubled.

First the files are claimed for the new manifest. Then its record is created, which holds the manifest: from here on the
redrive takes effect. Last the manifest is written. If that is interrupted, the next redrive writes it from the record.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from compactor.core.crash_points import OnRedriveCrashPoint, RedriveCrashPoint, ignore_redrive_crash_point
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Commit, FileStatus, Redrive, RedrivenInput
from compactor.core.errors import InputError, ManifestError, StagingError, StuckError
from compactor.core.layout import MANIFEST_ID, ManifestKey, redriven_id
from compactor.core.text.formatting import by_name, count
from compactor.ledger.accounts.account import Account, Kind
from compactor.ledger.accounts.reading import Detail, account_of
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State
from compactor.ops.redrive.planner import Draft, RedrivePlanner
from compactor.ops.redrive.redrivable import Redrivable, Refused, Source
from compactor.ops.redrive.reject_lines import Recheck, Wanted, WrittenLines, numbers_of, write_lines
from compactor.telemetry.logs import log_event

_DRAFTS_AT_ONCE = 64  # they share one search of the ledger


@dataclass(frozen=True, slots=True)
class Redriven:
    """One new manifest."""

    source: str  # the manifest that it redrives
    manifest_id: str | None  # the new manifest; None in a dry run, which takes no id
    kind: Kind
    counts: Mapping[str, int]  # what it redrives, by reason: files, or lines for rejects
    files: int


@dataclass(frozen=True, slots=True)
class RedriveReport:
    """What a redrive did. With `--dry-run` nothing is written."""

    kind: Kind  # what was to be redriven
    dry_run: bool = False  # whether nothing was written
    # Rejected lines that are as wrong as before, by reason: they were left where they are
    unchanged: Mapping[str, int] = field(default_factory=dict)
    redriven: tuple[Redriven, ...] = ()
    refused: tuple[Refused, ...] = ()
    # Manifests of earlier redrives that were interrupted before they wrote them
    healed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Healed:
    """The manifest of an earlier redrive, which is written now."""

    manifest_id: str


_Part = Redriven | Refused | _Healed | Counter[str]
"""A part of a report; a counter has lines that are as wrong as before."""


@dataclass(frozen=True, slots=True)
class _Call:
    """What one call is asked for."""

    kind: Kind
    reason: str | None
    dry_run: bool

    def redriven(self, source_id: str, new_id: str, counts: Mapping[str, int], files: int) -> Redriven:
        return Redriven(source_id, None if self.dry_run else new_id, self.kind, counts, files)


@dataclass(frozen=True, slots=True)
class _NextRedrive:
    """The next redrive of a manifest, as the log has it now."""

    account: Account  # of the manifest, with its redrives as they are now
    root: ManifestKey
    left: Counter[str]  # how many manifests, files or lines are left to redrive, by reason
    number: int
    manifest_id: str

    def check_id(self) -> None:
        if not MANIFEST_ID.fullmatch(self.manifest_id):
            ending = self.manifest_id.removeprefix(self.root.id)
            raise ManifestError("bad_id", f"its id leaves no room for {ending}; expected its files under a shorter id")


def _or_refused(source: Source, parts: Iterable[_Part | Draft]) -> Iterator[_Part | Draft]:
    """What becomes of a manifest; if it cannot be redriven, the error is the reason."""
    try:
        yield from parts
    except ManifestError as exc:
        yield Refused(source.key.id, "", f"{exc.reason}: {exc.message}")
    except (InputError, StuckError, StagingError) as exc:
        yield Refused(source.key.id, "", str(exc))


@dataclass(frozen=True, kw_only=True)
class Redriver:
    """Redrives dead letters, files and rejects. Safe beside other redrives, planners and the job."""

    state: State
    redrive_planner: RedrivePlanner
    recheck: Recheck
    on_crash_point: OnRedriveCrashPoint = ignore_redrive_crash_point

    @property
    def _log(self) -> RedriveLog:
        return RedriveLog(state=self.state)

    def redrive(self, scan: Redrivable, *, dry_run: bool = False) -> RedriveReport:
        """Redrive what a scan found, except what was redriven since. A dry run claims and writes nothing."""
        parts = list(self._parts(_Call(scan.kind, scan.scope.reason, dry_run), scan.sources))
        report = RedriveReport(
            scan.kind,
            dry_run,
            unchanged=sum((each for each in parts if isinstance(each, Counter)), Counter[str]()),
            redriven=tuple(each for each in parts if isinstance(each, Redriven)),
            refused=(*scan.refused, *(each for each in parts if isinstance(each, Refused))),
            healed=tuple(dict.fromkeys(each.manifest_id for each in parts if isinstance(each, _Healed))),
        )
        for refused in report.refused:
            log_event("redrive.refused", manifest_id=refused.manifest_id, uri=refused.uri, why=refused.why)
        return report

    def _parts(self, call: _Call, sources: Iterable[Source]) -> Iterator[_Part]:
        left = iter(sources)
        while batch := list(islice(left, _DRAFTS_AT_ONCE)):
            drafts: list[Draft] = []
            of_each = self._of_lines if call.kind == "rejects" else self._drafted
            for source in batch:
                for part in _or_refused(source, of_each(call, source)):
                    if isinstance(part, Draft):
                        drafts.append(part)
                    else:
                        yield part
            yield from self._of_drafts(call, drafts)

    def _healed(self, call: _Call, root: ManifestKey) -> Iterator[_Healed]:
        """Write the manifests of earlier redrives that were interrupted before they wrote them."""
        for entry in self._log.entries(root):
            if entry.fate == "unwritten":
                manifest_id = entry.redrive.manifest.manifest_id
                if not call.dry_run:
                    self._log.deliver(entry.redrive)
                    log_event("redrive.healed", manifest_id=manifest_id, source=entry.redrive.source)
                yield _Healed(manifest_id)

    def _account(self, source: Source) -> Account:
        """The account of a manifest, of whose files only those are left that the scan found."""
        return replace(account_of(self.state, source.key.id, Detail.ACCEPTED), quarantined=source.files)

    def _next(self, call: _Call, root: ManifestKey, account: Account) -> _NextRedrive:
        while True:
            entries = self._log.entries(root)
            number = self._log.next_number(root, entries)
            if number is not None:
                now = account.with_lineage(entries)
                return _NextRedrive(now, root, now.left(call.kind, call.reason), number, redriven_id(root.id, number))

    def _drafted(self, call: _Call, source: Source) -> Iterator[_Part | Draft]:
        yield from self._healed(call, source.root)
        found = self._next(call, source.root, self._account(source))
        if found.left:
            found.check_id()
            yield self.redrive_planner.draft(found.account, source.root, call.reason)

    def _of_drafts(self, call: _Call, drafts: Sequence[Draft]) -> Iterator[_Part]:
        self.redrive_planner.refuse_known(drafts)
        for draft in drafts:
            while (made := self._of_draft(call, draft)) is None:
                yield from self._healed(call, draft.root)
            yield from made
            yield from draft.refusals()

    def _of_draft(self, call: _Call, draft: Draft) -> list[Redriven] | None:
        """Redrive the files of a draft; None if another redrive took the number."""
        found = self._next(call, draft.root, draft.account)
        left = draft.files_left(found.account, call.reason) if found.left else []
        files = self.redrive_planner.free(draft, left)
        if files and not call.dry_run:
            files = self.redrive_planner.claim(draft, files, found.manifest_id)
            self.on_crash_point(RedriveCrashPoint.CLAIMED, found.manifest_id)
        if not files:
            return []
        counts = dict(Counter(draft.reasons[file.uri] for file in files))
        manifest = Manifest(
            manifest_id=found.manifest_id,
            date=draft.date,
            created_at=self.state.clock.now(),
            files=tuple(files),
            rejects_of=draft.rejects_of,
            listed_at=draft.listed_at,
        )
        if not (call.dry_run or self._is_written(call, found, manifest, counts)):
            return None
        self.redrive_planner.remember(files, found.manifest_id)
        sources = {file.origin_uri for file in files}
        return [call.redriven(draft.account.id, found.manifest_id, counts, len(sources))]

    def _of_lines(self, call: _Call, source: Source) -> Iterator[_Part]:
        """Redrive the rejected lines of a manifest."""
        yield from self._healed(call, source.root)
        account = self._account(source)
        while account.commit is not None and (found := self._next(call, source.root, account)).left:
            found.check_id()
            made = self._of_rejects(call, found, account.commit)
            if made is not None:
                yield from made
                return
            yield from self._healed(call, source.root)

    def _of_rejects(self, call: _Call, found: _NextRedrive, commit: Commit) -> list[_Part] | None:
        """Write rejected lines to new input files and redrive those; None if another redrive took the number."""
        folder = self.state.layout.redriven_inputs(found.manifest_id, self.state.ledger.run_id)
        try:
            lines = self._written_lines(commit, found, None if call.dry_run else folder)
            if lines.files and not call.dry_run:
                self.on_crash_point(RedriveCrashPoint.LINES_WRITTEN, found.manifest_id)
                manifest = Manifest(
                    manifest_id=found.manifest_id,
                    date=found.account.key.date,
                    created_at=self.state.clock.now(),
                    files=tuple(lines.files),
                    rejects_of=found.account.id,
                )
                if not self._is_written(call, found, manifest, dict(lines.counts), lines.inputs):
                    self._delete_lines(folder)
                    return None
        except StagingError:
            self._delete_lines(folder)
            raise
        made = list[_Part]()
        if lines.files:
            made.append(call.redriven(found.account.id, found.manifest_id, dict(lines.counts), lines.sources))
        if lines.unchanged:
            what = f"{count(lines.unchanged.total(), 'line')} as wrong as before: {by_name(lines.unchanged)}"
            made += [lines.unchanged, Refused(found.account.id, "", what)]
        return made

    def _written_lines(self, commit: Commit, found: _NextRedrive, folder: str | None) -> WrittenLines:
        wanted = Wanted(
            rejects=[file.final for file in commit.rejects],
            sources={file.origin_uri for file in commit.files if file.status is FileStatus.COMPACTED},
            reasons=found.left.keys(),
            taken=numbers_of(each for redrive in found.account.taken for each in redrive.inputs),
            recheck=self.recheck,
            is_redrive=bool(commit.rejects_of),
            reports={file.origin_uri: file for file in commit.files},
        )
        lines = write_lines(self.state.store, wanted, folder)
        if lines.counts + lines.unchanged != found.left:
            sums = (lines.counts + lines.unchanged).total(), found.left.total()
            what = f"{sums[0]} lines, expected {sums[1]} as the commit says"
            raise StagingError(f"the rejects of manifest {commit.manifest_id} hold {what}")
        return lines

    def _delete_lines(self, folder: str) -> None:
        self.state.store.delete([info.uri for info in self.state.store.list(folder)])

    def _is_written(
        self,
        call: _Call,
        found: _NextRedrive,
        manifest: Manifest,
        counts: dict[str, int],
        inputs: Sequence[RedrivenInput] = (),
    ) -> bool:
        """Put a redrive on record and write its manifest; False if another redrive took the number."""
        source, new_id = found.account.id, found.manifest_id
        redrive = Redrive(
            kind=call.kind,
            source=source,
            number=found.number,
            counts=counts,
            inputs=list(inputs),
            manifest=manifest,
            run_id=self.state.ledger.run_id,
            redriven_at=manifest.created_at,
        )
        if not self._log.record(found.root, redrive):
            return False
        self.on_crash_point(RedriveCrashPoint.RECORDED, new_id)
        self._log.deliver(redrive)
        self.on_crash_point(RedriveCrashPoint.DELIVERED, new_id)
        log_event("manifest.redriven", source=source, manifest_id=new_id, kind=call.kind, counts=counts)
        return True
