"""Redrives dead letters, quarantined files and rejected lines as new manifests, so that no line is lost or doubled.

First the files are claimed for the new manifest. Then its record is created, which holds the manifest: from here on the
redrive takes effect. Last the manifest is written. If that is interrupted, the next redrive writes it from the record.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

from compactor.core.crash_points import OnRedriveCrashPoint, RedriveCrashPoint, ignore_redrive_crash_point
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Commit, FileStatus, Redrive, RedrivenInput
from compactor.core.errors import InputError, ManifestError, StagingError, StuckError
from compactor.core.layout import MANIFEST_ID, redriven_id
from compactor.core.text.formatting import by_name, count
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Detail, account_of
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State
from compactor.ops.redrive.planner import Draft, RedrivePlanner
from compactor.ops.redrive.redrive_report import Redriven, RedriveReport, Refused
from compactor.ops.redrive.reject_lines import Recheck, Wanted, WrittenLines, numbers_of, write_lines
from compactor.ops.redrive.scan import ScanResult, Source
from compactor.telemetry.logs import log_event

_DRAFTS_AT_ONCE = 64  # they share one search of the ledger


@dataclass(frozen=True, slots=True)
class _NextRedrive:
    """The next redrive of a manifest, as the log has it now."""

    account: Account  # of the manifest, with its redrives as they are now
    left: Counter[str]  # how many manifests, files or lines are left to redrive, by reason
    number: int
    manifest_id: str

    def check_id(self, source: Source) -> None:
        if not MANIFEST_ID.fullmatch(self.manifest_id):
            ending = self.manifest_id.removeprefix(source.root.id)
            raise ManifestError("bad_id", f"its id leaves no room for {ending}; expected its files under a shorter id")


@dataclass(frozen=True, slots=True)
class _Run:
    """One call, and its report so far."""

    reason: str | None
    report: RedriveReport

    def add(self, source: Source, manifest_id: str, counts: dict[str, int], files: int) -> None:
        new_id = None if self.report.dry_run else manifest_id
        self.report.redriven.append(Redriven(source.key.id, new_id, self.report.kind, counts, files))

    def leave(self, source: Source, unchanged: Counter[str]) -> None:
        """Refuse lines that would be rejected again, by reason."""
        if unchanged:
            self.report.unchanged.update(unchanged)
            lines = f"{count(unchanged.total(), 'line')} as wrong as before: {by_name(unchanged)}"
            self.report.refused.append(Refused(source.key.id, "", lines))

    @contextmanager
    def refusing(self, source: Source) -> Iterator[None]:
        """Refuses a manifest that cannot be redriven, with the error as the reason."""
        try:
            yield
        except ManifestError as exc:
            self.report.refused.append(Refused(source.key.id, "", f"{exc.reason}: {exc.message}"))
        except (InputError, StuckError, StagingError) as exc:
            self.report.refused.append(Refused(source.key.id, "", str(exc)))


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

    def redrive(self, scan: ScanResult, *, dry_run: bool = False) -> RedriveReport:
        """Redrive what a scan found, except what was redriven since. A dry run claims and writes nothing."""
        run = _Run(scan.scope.reason, RedriveReport(scan.kind, dry_run, refused=list(scan.refused)))
        sources = iter(scan.sources)
        while batch := list(islice(sources, _DRAFTS_AT_ONCE)):
            if scan.kind == "rejects":
                for source in batch:
                    self._redrive_rejects(run, source)
            else:
                self._redrive_files(run, batch)
        for refused in run.report.refused:
            log_event("redrive.refused", manifest_id=refused.manifest_id, uri=refused.uri, why=refused.why)
        return run.report

    def _heal(self, run: _Run, source: Source) -> None:
        """Write the manifests of earlier redrives that were interrupted before they wrote them."""
        for entry in self._log.entries(source.root):
            manifest_id = entry.redrive.manifest.manifest_id
            if entry.fate != "unwritten" or manifest_id in run.report.healed:
                continue
            if not run.report.dry_run:
                self._log.deliver(entry.redrive)
                log_event("redrive.healed", manifest_id=manifest_id, source=entry.redrive.source)
            run.report.healed.append(manifest_id)

    def _account(self, source: Source) -> Account:
        """The account of a manifest, of whose files only those are left that the scan found."""
        return replace(account_of(self.state, source.key.id, Detail.ACCEPTED), quarantined=source.files)

    def _next(self, run: _Run, source: Source, account: Account) -> _NextRedrive:
        while True:
            entries = self._log.entries(source.root)
            number = self._log.next_number(source.root, entries)
            if number is not None:
                now = account.with_lineage(entries)
                left = now.left(run.report.kind, run.reason)
                return _NextRedrive(now, left, number, redriven_id(source.root.id, number))

    def _redrive_files(self, run: _Run, sources: Sequence[Source]) -> None:
        drafts: list[tuple[Source, Draft]] = []
        for source in sources:
            with run.refusing(source):
                self._heal(run, source)
                found = self._next(run, source, self._account(source))
                if found.left:
                    found.check_id(source)
                    draft = self.redrive_planner.draft(found.account, source.root, run.reason)
                    drafts.append((source, draft))
        self.redrive_planner.refuse_known([draft for _, draft in drafts])
        for source, draft in drafts:
            while not self._redrive_draft(run, source, draft):
                self._heal(run, source)
            run.report.refused += draft.refusals()

    def _redrive_draft(self, run: _Run, source: Source, draft: Draft) -> bool:
        """Redrive the files of a draft; False if another redrive took the number."""
        found = self._next(run, source, draft.account)
        left = draft.files_left(found.account, run.reason) if found.left else []
        files = self.redrive_planner.free(draft, left)
        if files and not run.report.dry_run:
            files = self.redrive_planner.claim(draft, files, found.manifest_id)
            self.on_crash_point(RedriveCrashPoint.CLAIMED, found.manifest_id)
        if not files:
            return True
        counts = dict(Counter(draft.reasons[file.uri] for file in files))
        if run.report.dry_run:
            run.add(source, found.manifest_id, counts, len(files))
        elif not self._write(run, source, found, self._redriven(found, draft, files), counts):
            return False
        self.redrive_planner.remember(files, found.manifest_id)
        return True

    def _redrive_rejects(self, run: _Run, source: Source) -> None:
        with run.refusing(source):
            self._heal(run, source)
            account = self._account(source)
            while account.commit is not None and not self._redrive_lines(run, source, account, account.commit):
                self._heal(run, source)

    def _redrive_lines(self, run: _Run, source: Source, account: Account, commit: Commit) -> bool:
        """Write rejected lines to new input files and redrive those; False if another redrive took the number."""
        found = self._next(run, source, account)
        if not found.left:
            return True
        found.check_id(source)
        folder = self.state.layout.redriven_inputs(found.manifest_id, self.state.ledger.run_id)
        is_written = True
        try:
            lines = self._written_lines(commit, found, None if run.report.dry_run else folder)
            if lines.files and run.report.dry_run:
                run.add(source, found.manifest_id, dict(lines.counts), lines.sources)
            elif lines.files:
                self.on_crash_point(RedriveCrashPoint.LINES_WRITTEN, found.manifest_id)
                manifest = Manifest(
                    manifest_id=found.manifest_id,
                    date=source.key.date,
                    created_at=self.state.clock.now(),
                    files=tuple(lines.files),
                    rejects_of=source.key.id,
                )
                is_written = self._write(run, source, found, manifest, dict(lines.counts), lines.inputs)
        except StagingError:
            self._delete_lines(folder)
            raise
        if is_written:
            run.leave(source, lines.unchanged)
        else:
            self._delete_lines(folder)
        return is_written

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

    def _write(
        self,
        run: _Run,
        source: Source,
        found: _NextRedrive,
        manifest: Manifest,
        counts: dict[str, int],
        inputs: Sequence[RedrivenInput] = (),
    ) -> bool:
        """Put a redrive on record and write its manifest; False if another redrive took the number."""
        new_id = found.manifest_id
        redrive = Redrive(
            kind=run.report.kind,
            source=source.key.id,
            number=found.number,
            counts=counts,
            inputs=list(inputs),
            manifest=manifest,
            run_id=self.state.ledger.run_id,
            redriven_at=manifest.created_at,
        )
        if not self._log.record(source.root, redrive):
            return False
        self.on_crash_point(RedriveCrashPoint.RECORDED, new_id)
        self._log.deliver(redrive)
        self.on_crash_point(RedriveCrashPoint.DELIVERED, new_id)
        log_event("manifest.redriven", source=source.key.id, manifest_id=new_id, kind=run.report.kind, counts=counts)
        run.add(source, new_id, counts, len({file.origin_uri for file in manifest.files}))
        return True

    def _redriven(self, found: _NextRedrive, draft: Draft, files: Sequence[ManifestFile]) -> Manifest:
        return Manifest(
            manifest_id=found.manifest_id,
            date=draft.date,
            created_at=self.state.clock.now(),
            files=tuple(files),
            rejects_of=draft.rejects_of,
            listed_at=draft.listed_at,
        )
