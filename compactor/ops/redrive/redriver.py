"""Puts back what was set aside, as new manifests, so that no line is lost or doubled: `compactor redrive`.

A redrive takes effect with its record in the trail, which is create-only and holds the new manifest; whoever comes
later writes the manifest of a record that has none yet. Before that the files are claimed for the new manifest.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from compactor.core.crash_points import OnRedriveCrashPoint, RedriveCrashPoint, ignore_redrive_crash_point
from compactor.core.errors import InputError, ManifestError, StagingError, StuckError
from compactor.core.layout import MANIFEST_ID, Layout, redriven_id
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.ports import Clock, ObjectStore
from compactor.core.records import Commit, DeadLetter, Redrive, RedrivenInput
from compactor.ledger.ledger import Ledger
from compactor.ops.redrive.lines import WrittenLines, write_lines
from compactor.ops.redrive.planner import Draft, RedrivePlanner, Refused
from compactor.ops.redrive.redrive_log import RedriveLog, RedriveLogEntry
from compactor.ops.redrive.scan import ScanResult, Source
from compactor.ops.redrive.selection import Kind, Scope, left_of
from compactor.telemetry.logs import log_event

_DRAFTS_AT_ONCE = 64  # they share one search through the ledger


@dataclass(frozen=True, slots=True)
class Redriven:
    """One redrive.

    Attributes:
        source: The manifest that it was taken from.
        manifest_id: The new manifest; None in a dry run, which takes no id.
        counts: What was taken, by reason: files, or lines for rejects.
        files: Input files of the new manifest.
    """

    source: str
    manifest_id: str | None
    kind: Kind
    counts: dict[str, int]
    files: int


@dataclass(slots=True)
class RedriveReport:
    """What a redrive did, or would do.

    Attributes:
        redriven: What was put back.
        refused: What was not, with the reason.
        healed: Manifests of earlier redrives that were never written, and are now.
    """

    redriven: list[Redriven] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    healed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Run:
    """One call, and what came of it so far."""

    scope: Scope
    dry_run: bool
    report: RedriveReport

    def refuse(self, source: Source, why: str) -> None:
        self.report.refused.append(Refused(source.key.id, "", why))


class Redriver:
    """Redrives dead letters, files and rejects. Safe beside other redrives, planners and the job.

    Args:
        store: Where everything is.
        layout: The places.
        ledger: What became of each manifest.
        redrive_log: What was redriven before.
        redrive_planner: Decides which files a new manifest may name.
        clock: Dates what is written.
        on_crash_point: Told of each step.
    """

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        redrive_log: RedriveLog,
        redrive_planner: RedrivePlanner,
        clock: Clock,
        on_crash_point: OnRedriveCrashPoint = ignore_redrive_crash_point,
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._redrive_log = redrive_log
        self._redrive_planner = redrive_planner
        self._clock = clock
        self._on_crash_point = on_crash_point

    def redrive(self, scan: ScanResult, *, dry_run: bool = False) -> RedriveReport:
        """Redrive what a survey found.

        Args:
            scan: Where to look. What others redrove since is left out.
            dry_run: Claim and write nothing.
        """
        run = _Run(scan.scope, dry_run, RedriveReport(refused=list(scan.refused)))
        sources = iter(scan.sources)
        while batch := list(islice(sources, _DRAFTS_AT_ONCE)):
            if scan.scope.kind == "rejects":
                for source in batch:
                    self._redrive_rejects(run, source)
            else:
                self._redrive_files(run, batch)
        for refused in run.report.refused:
            log_event("redrive.refused", manifest_id=refused.manifest_id, uri=refused.uri, why=refused.why)
        return run.report

    def _left(
        self, run: _Run, source: Source, outcome: Commit | DeadLetter
    ) -> tuple[Counter[str], list[Redrive], int, str]:
        """What is left now, the redrives in effect, and number and id of the next one.

        Manifests of earlier redrives that are missing are written first.
        """
        while True:
            entries = self._redrive_log.entries(source.lineage)
            for entry in entries:
                self._heal(run, entry)
            number = self._redrive_log.next_number(source.lineage, entries)
            if number is not None:
                redrives = [entry.redrive for entry in entries if entry.in_effect]
                left = left_of(run.scope, outcome, redrives)
                return left, redrives, number, redriven_id(source.lineage.root.id, number)

    def _heal(self, run: _Run, entry: RedriveLogEntry) -> None:
        manifest_id = entry.redrive.manifest.manifest_id
        if entry.fate != "unwritten" or manifest_id in run.report.healed:
            return
        if not run.dry_run:
            self._redrive_log.deliver(entry.redrive)
            log_event("redrive.healed", manifest_id=manifest_id, source=entry.redrive.source)
        run.report.healed.append(manifest_id)

    def _redrive_files(self, run: _Run, sources: Sequence[Source]) -> None:
        drafts: list[tuple[Source, Draft]] = []
        for source in sources:
            try:
                outcome = self._ledger.outcome(source.key)
                left, redrives, _, new_id = self._left(run, source, outcome)
                if left:
                    _check_id(source, new_id)
                    drafts.append((source, self._redrive_planner.draft(run.scope, source.lineage, outcome, redrives)))
            except ManifestError as exc:
                run.refuse(source, f"{exc.reason}: {exc.message}")
            except StuckError as exc:
                run.refuse(source, str(exc))
        self._redrive_planner.search([draft for _, draft in drafts])
        for source, draft in drafts:
            while not self._redrive_draft(run, source, draft):
                pass
            run.report.refused += draft.refusals()

    def _redrive_draft(self, run: _Run, source: Source, draft: Draft) -> bool:
        """Redrive the files of a draft; False if another redrive was faster, which has to be looked at first."""
        left, redrives, number, new_id = self._left(run, source, draft.outcome)
        files = self._redrive_planner.free(draft, draft.files_left(run.scope, redrives)) if left else []
        if files and not run.dry_run:
            files = self._redrive_planner.claim(draft, files, new_id)
            self._on_crash_point(RedriveCrashPoint.CLAIMED, new_id)
        if not files:
            return True
        counts = dict(Counter(draft.reasons[file.uri] for file in files))
        is_done = self._redrive_as(run, source, number, self._manifest(new_id, draft.date, files), counts)
        if is_done:
            self._redrive_planner.remember(files, new_id)
        return is_done

    def _redrive_rejects(self, run: _Run, source: Source) -> None:
        try:
            outcome = self._ledger.outcome(source.key)
            while isinstance(outcome, Commit) and not self._redrive_lines(run, source, outcome):
                pass
        except (InputError, StuckError, StagingError) as exc:
            run.refuse(source, str(exc))

    def _redrive_lines(self, run: _Run, source: Source, commit: Commit) -> bool:
        """Write rejected lines as input and redrive them; False if another redrive got the number."""
        left, _, number, new_id = self._left(run, source, commit)
        if not left:
            return True
        _check_id(source, new_id)
        if run.dry_run:
            files = sum(any(reason in left for reason in file.rejects) for file in commit.files)
            run.report.redriven.append(Redriven(source.key.id, None, "rejects", dict(left), files))
            return True
        folder = self._layout.redriven_inputs(new_id, self._ledger.run_id)
        is_done = False
        try:
            written = self._written_lines(commit, left, folder)
            self._on_crash_point(RedriveCrashPoint.LINES_WRITTEN, new_id)
            manifest = self._manifest(new_id, source.key.date, written.files)
            is_done = self._redrive_as(run, source, number, manifest, dict(left), written.inputs)
        except StagingError:
            self._withdraw(folder)
            raise
        if not is_done:
            self._withdraw(folder)
        return is_done

    def _written_lines(self, commit: Commit, left: Counter[str], folder: str) -> WrittenLines:
        written = write_lines(self._store, [file.final for file in commit.rejects], left.keys(), folder)
        if written.counts != left:
            found = f"{written.counts.total()} lines, expected {left.total()} as the commit says"
            raise StagingError(f"the rejects of manifest {commit.manifest_id} hold {found}")
        return written

    def _withdraw(self, folder: str) -> None:
        self._store.delete([info.uri for info in self._store.list(folder)])

    def _manifest(self, manifest_id: str, date: str, files: Sequence[ManifestFile]) -> Manifest:
        return Manifest(manifest_id=manifest_id, date=date, created_at=self._clock.now(), files=tuple(files))

    def _redrive_as(
        self,
        run: _Run,
        source: Source,
        number: int,
        manifest: Manifest,
        counts: dict[str, int],
        inputs: Sequence[RedrivenInput] = (),
    ) -> bool:
        """Put a redrive on record and write its manifest; False if another redrive got the number."""
        kind, files = run.scope.kind, len(manifest.files)
        if run.dry_run:
            run.report.redriven.append(Redriven(source.key.id, None, kind, counts, files))
            return True
        redrive = Redrive(
            kind=kind,
            source=source.key.id,
            number=number,
            counts=counts,
            inputs=list(inputs),
            manifest=manifest,
            run_id=self._ledger.run_id,
            redriven_at=self._clock.now(),
        )
        if not self._redrive_log.record(source.lineage, redrive):
            return False
        self._on_crash_point(RedriveCrashPoint.RECORDED, manifest.manifest_id)
        self._redrive_log.deliver(redrive)
        self._on_crash_point(RedriveCrashPoint.DELIVERED, manifest.manifest_id)
        new_id = manifest.manifest_id
        log_event("manifest.redriven", source=source.key.id, manifest_id=new_id, kind=kind, counts=counts)
        run.report.redriven.append(Redriven(source.key.id, manifest.manifest_id, kind, counts, files))
        return True


def _check_id(source: Source, new_id: str) -> None:
    if not MANIFEST_ID.fullmatch(new_id):
        ending = new_id.removeprefix(source.lineage.root.id)
        raise ManifestError("bad_id", f"its id leaves no room for {ending}; expected its files under a shorter id")
