"""Rebuilds manifests: stages their rows again, decides a commit that supersedes the damaged one, and publishes it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import chain

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.records import Accepted, Attempt, AttemptFailure, FileReport, FileStatus
from compactor.core.errors import CompactorError, EngineLost, InputError, OperatorError
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.core.results import only
from compactor.job.publication import Publisher
from compactor.job.staging import discard_staged
from compactor.ledger.sizing_history import revised
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.rebuild.damaged import Damaged, NotChanged, RebuildScan, compacted
from compactor.ops.rebuild.successor import found_at, successor
from compactor.ops.verify.report import Discrepancy
from compactor.ops.verify.verifier import Verifier
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event

UNDECIDED_SECONDS = 3600.0
"""A rebuild decides right after writing its open marker. The writer of an older marker has died."""

_OVERTAKEN = "another rebuild of its manifest was faster; run the command again"
# A long line may be kept in different pieces, and only the version that was read is read again.
_NOT_COMPARED = {"detail", "reject_rows", "superseded"}
_OF_THE_VERSION = {"etag", "digest"}  # a touched file has a different version, and S3 has no digest


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A manifest whose rows were rebuilt."""

    manifest_id: str
    why: str  # fault in its files
    generation: int  # its commit generation; 2 after the first rebuild
    input_files: int  # how many files were reread
    output_files: int
    rows: int
    rejected_lines: int


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """The results of a rebuild. With `--dry-run` nothing is written."""

    intact: int = 0  # committed manifests with intact files
    expired: int = 0  # committed manifests whose files expired, or are lost and were given up; left unchanged
    rebuilt: tuple[Rebuilt, ...] = ()  # manifests whose rows were rebuilt
    refused: tuple[NotChanged, ...] = ()  # manifests that cannot be rebuilt
    failed: tuple[NotChanged, ...] = ()  # manifests whose rebuild failed; a later call may succeed
    discrepancies: tuple[Discrepancy, ...] = ()  # remaining inconsistencies
    dry_run: bool = False  # whether nothing was written


class _Refused(NotChanged):
    """A manifest whose input cannot restore its rows."""


class _Failed(NotChanged):
    """A manifest whose rebuild failed."""


Stage = Callable[[Accepted, Attempt], Commit]
"""Stages and verifies the rows of a commit again; returns the commit to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilder:
    """Rebuilds the rows of damaged manifests. Safe while jobs and other rebuilds run.

    Attributes:
        stager_for: Returns the stager for a commit, with the limits of its first attempt.
        digest_of: The digest of a file's bytes; empty if unknown.
        threads: How many manifests are rebuilt at once.
    """

    state: State
    stager_for: Callable[[Commit], Stage]
    publisher: Publisher
    verifier: Verifier
    digest_of: Callable[[ObjectInfo], str]
    threads: int
    on_crash_point: OnCrashPoint = ignore_crash_point

    def rebuild(self, scan: RebuildScan, *, dry_run: bool = False) -> RebuildReport:
        """Rebuild what a scan found. One manifest's failure does not stop the others.

        Raises:
            OperatorError: An operator must act.
            EngineLost: The engine died.
        """
        if dry_run:
            found: list[object] = [
                _summary(each.commit, each, each.commit.generation + bool(each.why)) for each in scan.damaged
            ]
        else:
            self._tidy(scan)
            tried = map_ordered(self._tried, scan.damaged, threads=self.threads)
            found = list(chain.from_iterable(self.state.meter.each("manifest", tried, len(scan.damaged))))
        rebuilt = only(Rebuilt, found)
        if rebuilt and not dry_run:
            self.state.ledger.revise({each.manifest_id for each in rebuilt}, revised)
        return RebuildReport(
            len(scan.intact),
            len(scan.expired),
            rebuilt,
            (*scan.refused, *only(_Refused, found)),
            only(_Failed, found),
            only(Discrepancy, found),
            dry_run,
        )

    def _tidy(self, scan: RebuildScan) -> None:
        """Clean up after rebuilds that died when done, or before they decided."""
        open_ids = set(self.state.ledger.open_ids()) if scan.intact or scan.expired else set[str]()
        for commit in scan.intact:
            if commit.manifest_id in open_ids and (accepted := self.state.ledger.accepted(commit.manifest_id)):
                self.publisher.clean_up(accepted, commit)
                self._forget(commit)
        for commit in scan.expired:
            if commit.manifest_id in open_ids:
                self._forget(commit)

    def _forget(self, commit: Commit) -> None:
        """Delete the open markers of rebuilds that died undecided, but not of one that may still decide."""
        ledger, is_over = self.state.ledger, self.state.clock.now() - timedelta(seconds=UNDECIDED_SECONDS)
        markers = ledger.open_rebuilds(commit.manifest_id)
        # guard: the marker of a rebuild that may still decide is not forgotten
        undecided = [uri for uri, generation, at in markers if generation > commit.generation and at <= is_over]
        # Read the outcome after the markers: one of them may have decided since the scan.
        # guard: a decision made since the scan keeps its marker
        if undecided and ledger.outcome(commit.key).generation == commit.generation:
            self.state.store.delete(undecided)

    def _tried(self, damaged: Damaged) -> list[object]:
        """Rebuild one manifest and verify it; report its own errors."""
        manifest_id = damaged.commit.manifest_id
        try:
            return [self._rebuilt(damaged), *self.verifier.verify_manifests([damaged.commit.key]).discrepancies]
        except (OperatorError, EngineLost):
            raise
        except InputError as exc:
            return [_Refused(manifest_id, str(exc))]
        except Exception as exc:  # noqa: BLE001 - no error of one manifest may stop the others
            log_event("rebuild.failed", manifest_id=manifest_id, error=exc)
            return [_Failed(manifest_id, described(exc))]

    def _rebuilt(self, damaged: Damaged) -> Rebuilt:
        commit = self._decided(damaged) if damaged.why else damaged.commit
        self.publisher.roll_forward(damaged.accepted, commit)
        # Another rebuild may have decided the outcome.
        replaced = commit.replaced if isinstance(commit, Commit) else ()
        erased = commit.erased if isinstance(commit, Commit) else None
        # guard: a replaced file has rows of its new version before it counts as rebuilt
        if not damaged.replaced <= set(replaced):
            raise InputError(_OVERTAKEN)
        # guard: a manifest that another rebuild decided meanwhile does not count as erased
        if damaged.erasure and (erased is None or damaged.erasure not in erased.erasures):
            raise InputError(_OVERTAKEN)
        generation, rows = commit.generation, sum(file.records for file in damaged.commit.files)
        log_event("manifest.rebuilt", manifest_id=commit.manifest_id, why=damaged.why, generation=generation, rows=rows)
        return _summary(commit if isinstance(commit, Commit) else damaged.commit, damaged, generation)

    def _decided(self, damaged: Damaged) -> Commit | DeadLetter:
        """Stage the rows again and decide; return the valid outcome, which another rebuild may have decided first."""
        commit, accepted, ledger = damaged.commit, damaged.accepted, self.state.ledger
        generation = commit.generation + 1
        stage = self.stager_for(commit)
        attempt = ledger.begin(commit.key, after=commit.attempt, alone=False, generation=generation)
        self.on_crash_point(CrashPoint.ATTEMPTED, commit.manifest_id)
        try:
            made = self._staged(stage, damaged, attempt)
            ledger.open(commit.key, generation, attempt.number)
            self._check_kept(commit, made)  # guard: a rebuild gives up if its rows expired meanwhile
        except Exception as exc:
            discard_staged(self.state, accepted.key, attempt, in_place=True)
            newest = ledger.outcome(commit.key)
            if newest.generation > commit.generation:  # a faster rebuild deleted this one's staging
                return newest
            self._give_up(attempt, commit, exc)
            raise
        self.on_crash_point(CrashPoint.OPENED, commit.manifest_id)
        # If this fails, the commit may have taken effect: its staged files stay.
        winner = ledger.decide(made)
        self.on_crash_point(CrashPoint.DECIDED, commit.manifest_id)
        if winner != made:
            discard_staged(self.state, accepted.key, attempt, in_place=True)
        return winner

    def _staged(self, stage: Stage, damaged: Damaged, attempt: Attempt) -> Commit:
        """The commit to decide.

        Raises:
            InputError: The lines are read differently than before.
        """
        commit = damaged.commit
        # The rows keep the time of their first processing.
        first = attempt.model_copy(update={"started_at": commit.started_at})
        staged = stage(_of_compacted(damaged, commit), first)
        if not damaged.erasure:
            for old, new in zip(compacted(commit), staged.files, strict=True):
                # guard: rows that differ from the first commit are refused
                _check_same(old, new, damaged)
        damaged.check()
        # Before names are compared: a late driver of the earlier commit could still change published files.
        # guard: what is left of earlier staging is deleted before a rebuild chooses its names
        self.publisher.delete_staging(commit.manifest_id, upto=commit.generation)
        expired = _expired_names(self.state, commit)
        found = partial(found_at, self.state.store)
        reuses_names = self.publisher.table is None  # guard: a rebuild reuses no file name that a table lists
        made = successor(self.state.layout, commit, staged, damaged.why, found, expired, reuses_names=reuses_names)
        replaced = [file.uri for file in made.files if file.uri in damaged.replaced]
        return made.model_copy(update={"replaced": replaced})

    def _check_kept(self, commit: Commit, made: Commit) -> None:
        """Check that no rule expires the commit's files meanwhile. Its manifest is open, so no rule starts to.

        Raises:
            InputError: A rule does.
        """
        expired = Visible(self.state).deletion("rows", commit.key, commit.generation)
        used = {file.final for file in made.rejects} & _expired_names(self.state, commit)
        if expired is None and not used:
            return
        what = f"its rows {expired.words}" if expired else "its rejects expired meanwhile; run the command again"
        raise InputError(f"manifest {commit.manifest_id}: {what}")

    def _give_up(self, attempt: Attempt, commit: Commit, error: Exception) -> None:
        """Record a failed attempt, and delete its open marker: it will decide nothing."""
        failure = AttemptFailure(
            manifest_id=attempt.manifest_id,
            number=attempt.number,
            passing=True,
            error=described(error),
            failed_at=self.state.clock.now(),
        )
        with suppress(CompactorError):
            self.state.ledger.fail(commit.key, failure)
        with suppress(CompactorError):
            marker = self.state.layout.open_marker(commit.manifest_id, attempt.generation, attempt.number)
            self.state.store.delete([marker])


def _expired_names(state: State, commit: Commit) -> frozenset[str]:
    """The names of expired rejects, which may be deleted at any time."""
    expired = Visible(state).deletion("rejects", commit.key, commit.generation)
    return frozenset() if expired is None else frozenset(file.final for file in commit.rejects)


def _of_compacted(damaged: Damaged, commit: Commit) -> Accepted:
    """A manifest with only the compacted files, each in the same version or in its new one."""
    accepted = damaged.accepted
    if accepted.manifest is None:
        return accepted
    times = {file.uri: file.event_time for file in accepted.manifest.files}
    files = tuple(
        damaged.inputs.get(file.uri) or file.as_input().model_copy(update={"event_time": times.get(file.uri)})
        for file in compacted(commit)
    )
    return accepted.model_copy(update={"manifest": accepted.manifest.model_copy(update={"files": files})})


def _check_same(old: FileReport, new: FileReport, damaged: Damaged) -> None:
    """Raise an `InputError` if a file has other lines, rows or rejects than before: lines may have been redriven."""
    if new.status is not FileStatus.COMPACTED:
        raise InputError(f"{old.uri}: {new.status}: {new.detail}")
    if old.uri in damaged.replaced:
        return
    other = _OF_THE_VERSION if old.uri in damaged.inputs or not old.digest else set()
    before, now = (report.model_dump(exclude=_NOT_COMPARED | other) for report in (old, new))
    different = [f"{name} {now[name]!r} instead of {value!r}" for name, value in before.items() if now[name] != value]
    if different:
        raise InputError(
            f"{old.uri}: read differently than by the first commit: {', '.join(different)}; expected the engine "
            "and the limits with which the manifest was compacted"
        )


def _summary(commit: Commit, damaged: Damaged, generation: int) -> Rebuilt:
    return Rebuilt(
        manifest_id=commit.manifest_id,
        why=damaged.why or "an earlier rebuild was not finished",
        generation=generation,
        input_files=len(compacted(commit)),
        output_files=len(commit.outputs),
        rows=sum(file.records for file in commit.files),
        rejected_lines=sum(file.rejected_lines for file in commit.files),
    )
