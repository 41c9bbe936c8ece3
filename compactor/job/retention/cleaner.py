"""Deletes what has expired: archived manifests, redriven lines, orphaned staging, checkpoints of dead runs."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from compactor.core.errors import CompactorError
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.job.retention.retention import Retention
from compactor.ledger.state import State

ORPHAN_AGE_SECONDS = 24 * 3600.0
"""Staging that nothing was written to for so long belongs to no living attempt."""

CHECKPOINT_AGE_SECONDS = 15 * 24 * 3600.0
"""Glue ends a streaming run after 14 days at the latest, so an older checkpoint belongs to no living run."""

STILL_SECONDS = 600.0
"""A checkpoint that was written to more recently may belong to a living run."""

KEPT_NAMED = 100  # further kept objects are counted, but not named
_CHUNK = 200  # objects that are judged and deleted between two checks of the deadline
_TICK = 1_000  # objects that are passed over between two checks of the deadline


class Kind(StrEnum):
    """The kinds of objects that expire, in the order in which they are cleaned."""

    ARCHIVED = "archived_manifests"
    REDRIVEN = "redriven_inputs"
    STAGED = "staged_files"
    CHECKPOINT = "checkpoint_files"


@dataclass(frozen=True, slots=True)
class Kept:
    """An object that is old enough to delete, but has to stay.

    Attributes:
        where: The URI of the object.
        reason: Why it has to stay.
    """

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Position:
    """The position where cleaning continues: behind the object at `after`, in the folder of a kind."""

    kind: Kind
    after: str


@dataclass(slots=True)
class CleaningReport:
    """What was deleted.

    Attributes:
        removed: Objects by kind; in a dry run, those that would go.
        removed_bytes: Their total length.
        kept: The number of old objects that had to stay, by reason.
        kept_named: The first of these objects.
        position: Where the next call continues; None when everything is cleaned.
    """

    removed: Counter[str] = field(default_factory=Counter)
    removed_bytes: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    kept_named: list[Kept] = field(default_factory=list)
    position: Position | None = None

    def keep(self, where: str, reason: str) -> None:
        """Count something that had to stay."""
        self.kept[reason] += 1
        if len(self.kept_named) < KEPT_NAMED:
            self.kept_named.append(Kept(where, reason))


@dataclass(frozen=True, slots=True)
class _Expiry:
    """When objects of a kind may go. Those of one owner go together or not at all."""

    kind: Kind
    folder: str
    age_seconds: float
    why_keep: Callable[[str], str]

    def owner(self, info: ObjectInfo) -> str:
        """Return the owner by which `Retention` judges an object."""
        return info.uri if self.kind is Kind.ARCHIVED else info.uri.removeprefix(self.folder).partition("/")[0]

    def where(self, owner: str) -> str:
        return owner if self.kind is Kind.ARCHIVED else f"{self.folder}{owner}/"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Objects of one owner that are old enough to go; no owner for objects that were only passed over."""

    owner: str
    objects: tuple[ObjectInfo, ...]


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Deletes what is old enough and need not stay. Memory does not grow with the number of objects."""

    state: State
    retention: Retention

    def clean(
        self,
        deadline: datetime | None = None,
        *,
        archive_days: float,
        all_checkpoints: bool = False,
        dry_run: bool = False,
        resumed: CleaningReport | None = None,
    ) -> CleaningReport:
        """Delete what has expired, until all is done or the deadline has passed.

        Args:
            deadline: Stop at the first chunk of objects that ends later; a call deletes at least one chunk.
            archive_days: Age from which archived manifests and redriven inputs may go.
            all_checkpoints: Also young checkpoints: they are one run's scratch, and later runs begin new ones.
            dry_run: Only report what would be deleted.
            resumed: The report of an earlier call that met its deadline: go on from there, and add to it.
        """
        layout, keep, age_seconds = self.state.layout, self.retention, archive_days * 24 * 3600.0
        expiries = [
            _Expiry(Kind.ARCHIVED, layout.archive_folder, age_seconds, keep.why_keep_archived),
            _Expiry(Kind.REDRIVEN, layout.redriven_folder, age_seconds, keep.why_keep_redriven),
            *self._orphans(0.0 if all_checkpoints else CHECKPOINT_AGE_SECONDS),
        ]
        return self._clean(expiries, deadline, resumed or CleaningReport(), dry_run=dry_run)

    def sweep(self) -> CleaningReport:
        """Delete old staging, and old checkpoints of dead runs."""
        return self._clean(self._orphans(CHECKPOINT_AGE_SECONDS), None, CleaningReport(), dry_run=False)

    def check_checkpoints(self, *, force: bool = False) -> None:
        """Make sure that all checkpoints may go.

        Args:
            force: Include checkpoints that were written recently, but never those of a run with a heartbeat.

        Raises:
            CompactorError: The run of one of them may be alive.
        """
        for found in self._candidates(self._orphans(0.0)[-1], None):
            if found.owner:
                self._check_still(found, force=force)

    def _check_still(self, checkpoint: _Candidate, *, force: bool) -> None:
        where = f"{self.state.layout.checkpoints_folder}{checkpoint.owner}/"
        if self.retention.why_keep_checkpoint(checkpoint.owner):
            raise CompactorError(f"checkpoint {where}: its run is at work; expected it to be stopped first")
        newest = max(info.modified_at for info in checkpoint.objects)
        age_seconds = (self.state.clock.now() - newest).total_seconds()
        if age_seconds < STILL_SECONDS and not force:
            raise CompactorError(
                f"checkpoint {where}: written to {age_seconds:.0f} s ago, so its run may be at work; "
                f"expected nothing for {STILL_SECONDS:.0f} s, or --force"
            )

    def _orphans(self, checkpoint_age_seconds: float) -> list[_Expiry]:
        layout, keep = self.state.layout, self.retention
        return [
            _Expiry(Kind.STAGED, layout.staging_folder, ORPHAN_AGE_SECONDS, keep.why_keep_staged),
            _Expiry(Kind.CHECKPOINT, layout.checkpoints_folder, checkpoint_age_seconds, keep.why_keep_checkpoint),
        ]

    def _clean(
        self, expiries: Sequence[_Expiry], deadline: datetime | None, report: CleaningReport, *, dry_run: bool
    ) -> CleaningReport:
        begin, report.position = report.position, None
        for expiry in expiries:
            if begin is not None and expiry.kind is not begin.kind:
                continue  # done by an earlier call
            after, begin = begin.after if begin else None, None
            report.position = self._clean_kind(expiry, after, deadline, report, dry_run=dry_run)
            if report.position is not None:
                break
        return report

    def _clean_kind(
        self, expiry: _Expiry, after: str | None, deadline: datetime | None, report: CleaningReport, *, dry_run: bool
    ) -> Position | None:
        """Delete the expired objects of one kind; return where to continue if the deadline came first."""
        doomed: list[str] = []

        def judged(found: _Candidate) -> tuple[_Candidate, str]:
            return found, expiry.why_keep(found.owner) if found.owner else ""

        for number, (found, reason) in enumerate(map_ordered(judged, self._candidates(expiry, after)), start=1):
            if reason:
                report.keep(expiry.where(found.owner), reason)
            elif found.owner:
                doomed += [info.uri for info in found.objects]
                report.removed[expiry.kind] += len(found.objects)
                report.removed_bytes += sum(info.size_bytes for info in found.objects)
            if not found.owner or len(doomed) >= _CHUNK or number % _CHUNK == 0:
                self._delete(doomed, dry_run=dry_run)
                if deadline is not None and self.state.clock.now() >= deadline:
                    return Position(expiry.kind, found.objects[-1].uri)
        self._delete(doomed, dry_run=dry_run)
        return None

    def _candidates(self, expiry: _Expiry, after: str | None) -> Iterator[_Candidate]:
        """Yield owners whose objects are all old enough and, at intervals, the objects that were passed over last."""
        limit = self.state.clock.now() - timedelta(seconds=expiry.age_seconds)
        passed = 0
        for owner, objects in groupby(self.state.store.list(expiry.folder, start_after=after), key=expiry.owner):
            found = tuple(objects)
            if owner and not owner.endswith("/") and max(info.modified_at for info in found) <= limit:
                yield _Candidate(owner, found)
            else:
                passed += len(found)
            if passed >= _TICK:
                passed = 0
                yield _Candidate("", found)

    def _delete(self, doomed: list[str], *, dry_run: bool) -> None:
        if doomed and not dry_run:
            self.state.store.delete(doomed)
        doomed.clear()
