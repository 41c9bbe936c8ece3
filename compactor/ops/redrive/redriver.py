"""Redrives dead letters, quarantined files and rejected lines as new manifests; no line is lost or duplicated.

First the files are claimed for the new manifest. Then its record is created, which contains the manifest and puts the
redrive into effect. Finally the manifest is written. If that is interrupted, the next redrive writes it from the
record.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from compactor.core.crash_points import OnCrashPoint, RedriveCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Redrive, RedrivenInput
from compactor.core.errors import InputError, ManifestError, StagingError, StuckError
from compactor.core.layout import MANIFEST_ID, ManifestKey, redriven_id
from compactor.core.results import only
from compactor.core.text.formatting import by_name, count
from compactor.ledger.accounts.account import Account, DeadLetterManifest, Kind, letter_of
from compactor.ledger.accounts.reading import Detail, account_of
from compactor.ledger.change_log import give_up
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State
from compactor.ops.redrive.planner import Draft, RedrivePlanner
from compactor.ops.redrive.redrivable import Redrivable, Refused, Source
from compactor.ops.redrive.reject_lines import LinesToRedrive, Recheck, RedrivenLineNumbers, WrittenLines, write_lines
from compactor.telemetry.logs import log_event

_DRAFTS_AT_ONCE = 64  # they share one search of the ledger


@dataclass(frozen=True, slots=True)
class Redriven:
    """A new manifest."""

    source: str  # the manifest that it redrives
    manifest_id: str | None  # the new manifest; None in a dry run
    kind: Kind
    counts: Mapping[str, int]  # what it redrives, by reason: files, or lines for rejects
    files: int


@dataclass(frozen=True, slots=True)
class RedriveReport:
    """What a redrive did. With `--dry-run` nothing is written."""

    kind: Kind  # the requested kind
    dry_run: bool = False  # whether nothing was written
    # Rejected lines that are still invalid, by reason; left in place
    unchanged: Mapping[str, int] = field(default_factory=dict)
    redriven: tuple[Redriven, ...] = ()
    # Dead letters that need no redrive, because other manifests have compacted all their files
    settled: tuple[DeadLetterManifest, ...] = ()
    refused: tuple[Refused, ...] = ()
    # Manifests of interrupted redrives, now written
    healed: tuple[str, ...] = ()


_Part = Redriven | DeadLetterManifest | Refused | str | Counter[str]
"""Part of a report: a text is the manifest of an earlier redrive, a counter has lines that are still invalid."""


@dataclass(frozen=True, slots=True)
class _Call:
    kind: Kind
    reason: str | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _NextRedrive:
    """The next redrive of a manifest, by the current log."""

    account: Account  # of the manifest, with its current redrives
    root: ManifestKey
    left: Counter[str]  # how many manifests, files or lines are left to redrive, by reason
    number: int

    @property
    def manifest_id(self) -> str:
        return redriven_id(self.root.id, self.number)

    def redriven(self, call: _Call, counts: Mapping[str, int], files: int) -> Redriven:
        return Redriven(self.account.id, None if call.dry_run else self.manifest_id, call.kind, counts, files)

    def check_id(self) -> None:
        if not MANIFEST_ID.fullmatch(self.manifest_id):
            ending = self.manifest_id.removeprefix(self.root.id)
            raise ManifestError("bad_id", f"its id leaves no room for {ending}; expected its files under a shorter id")


def _or_refused(source: Source, parts: Iterable[_Part | Draft]) -> Iterator[_Part | Draft]:
    """The results for a manifest; if it cannot be redriven, the error has the reason."""
    try:
        yield from parts
    except ManifestError as exc:
        yield Refused(source.key.id, "", f"{exc.reason}: {exc.message}")
    except (InputError, StuckError, StagingError) as exc:
        yield Refused(source.key.id, "", str(exc))


@dataclass(frozen=True, kw_only=True)
class Redriver:
    """Redrives dead letters, files and rejects. Safe while other redrives, planners and the job run."""

    state: State
    redrive_planner: RedrivePlanner
    recheck: Recheck
    by: str  # who redrives
    on_crash_point: OnCrashPoint = ignore_crash_point

    @property
    def _log(self) -> RedriveLog:
        return RedriveLog(state=self.state)

    def redrive(self, scan: Redrivable, *, dry_run: bool = False) -> RedriveReport:
        """Redrive what a scan found, except what was redriven meanwhile. A dry run claims and writes nothing."""
        parts = list(self._parts(_Call(scan.kind, scan.scope.reason, dry_run), scan.sources))
        return RedriveReport(
            scan.kind,
            dry_run,
            unchanged=sum(only(Counter, parts), Counter[str]()),
            redriven=only(Redriven, parts),
            settled=only(DeadLetterManifest, parts),
            refused=(*scan.refused, *only(Refused, parts)),
            healed=tuple(dict.fromkeys(only(str, parts))),
        )

    def _parts(self, call: _Call, sources: Sequence[Source]) -> Iterator[_Part]:
        left = self.state.meter.each("manifest", sources, len(sources))
        while batch := list(islice(left, _DRAFTS_AT_ONCE)):
            drafts: list[Draft] = []
            for source in batch:
                for part in _or_refused(source, self._of_source(call, source)):
                    if isinstance(part, Draft):
                        drafts.append(part)
                    else:
                        yield part
            yield from self._of_drafts(call, drafts)

    def _healed(self, call: _Call, root: ManifestKey) -> Iterator[str]:
        """Write the manifests of interrupted earlier redrives."""
        for entry in self._log.entries(root):
            if entry.fate == "unwritten":
                manifest_id = entry.redrive.manifest.manifest_id
                if not call.dry_run:
                    self._log.deliver(entry.redrive)
                    log_event("redrive.healed", manifest_id=manifest_id, source=entry.redrive.source)
                yield manifest_id

    def _next(self, call: _Call, root: ManifestKey, account: Account) -> _NextRedrive:
        while True:
            entries = self._log.entries(root)
            number = self._log.next_number(root, entries)
            if number is not None:
                now = account.with_lineage(entries)
                return _NextRedrive(now, root, now.left(call.kind, call.reason), number)

    def _of_source(self, call: _Call, source: Source) -> Iterator[_Part | Draft]:
        """Redrive the rejected lines of a manifest, or draft the redrive of its files."""
        yield from self._healed(call, source.root)
        account = replace(account_of(self.state, source.key.id, Detail.ACCEPTED), quarantined=source.files)
        while (found := self._next(call, source.root, account)).left:
            found.check_id()
            if call.kind != "rejects" or account.commit is None:
                yield self.redrive_planner.draft(found.account, source.root, call.reason)
                return
            made = self._of_rejects(call, found, account.commit)
            if made is not None:
                yield from made
                return
            yield from self._healed(call, source.root)

    def _of_drafts(self, call: _Call, drafts: Sequence[Draft]) -> Iterator[_Part]:
        self.redrive_planner.refuse_known(drafts)
        for draft in drafts:
            while (made := self._of_draft(call, draft)) is None:
                yield from self._healed(call, draft.root)
            yield from made
            letter = draft.account.letter
            if not made and letter is not None and (why := self.redrive_planner.why_done(draft)):
                yield self._settled(call, letter, why)
            else:
                yield from draft.refusals()

    def _settled(self, call: _Call, letter: DeadLetter, why: str) -> DeadLetterManifest:
        """Record that a dead letter needs no redrive."""
        found = replace(letter_of(letter), settled_by=why, dismissed="compacted")
        if call.dry_run:
            return found
        change = give_up(self.state, letter.manifest_id, "", "compacted", why, by=self.by)
        return replace(found, settled_by=change.words)

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
        return [found.redriven(call, counts, len(sources))]

    def _of_rejects(self, call: _Call, found: _NextRedrive, commit: Commit) -> list[_Part] | None:
        """Write rejected lines to new input files and redrive those; None if another redrive took the number."""
        folder = self.state.layout.redriven_inputs(found.manifest_id, self.state.ledger.run_id)
        try:
            redriven = RedrivenLineNumbers(
                each for redrive in found.account.effective_redrives for each in redrive.inputs
            )
            wanted = LinesToRedrive(commit, found.left.keys(), redriven, self.recheck)
            lines = write_lines(self.state.store, wanted, None if call.dry_run else folder)
            _check_number(lines, found)
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
            made.append(found.redriven(call, dict(lines.counts), lines.sources))
        if lines.unchanged:
            what = f"{count(lines.unchanged.total(), 'line')} still invalid: {by_name(lines.unchanged)}"
            made += [lines.unchanged, Refused(found.account.id, "", what)]
        return made

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
        """Record a redrive and write its manifest; False if another redrive took the number."""
        redrive = Redrive(
            kind=call.kind,
            source=found.account.id,
            number=found.number,
            counts=counts,
            inputs=list(inputs),
            manifest=manifest,
            run_id=self.state.ledger.run_id,
            redriven_at=manifest.created_at,
        )
        return self._log.write(found.root, redrive, self.on_crash_point)


def _check_number(lines: WrittenLines, found: _NextRedrive) -> None:
    read = lines.counts + lines.unchanged
    if read != found.left:
        what = f"{read.total()} lines, expected {found.left.total()} as the commit says"
        raise StagingError(f"the rejects of manifest {found.account.id} hold {what}")
