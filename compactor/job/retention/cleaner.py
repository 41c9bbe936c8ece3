"""Removes by age what nobody needs any more: archived manifests, put-back lines, orphaned staging, checkpoints."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from itertools import groupby

from compactor.core.errors import CompactorError
from compactor.core.layout import Layout
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Clock, ObjectInfo, ObjectStore
from compactor.job.retention.retention import Retention

ORPHAN_AGE_SECONDS = 24 * 3600.0
"""Staging that nobody wrote to for so long belongs to no living attempt."""

CHECKPOINT_AGE_SECONDS = 15 * 24 * 3600.0
"""Glue ends a streaming run after 14 days at the latest, so an older checkpoint belongs to no living run."""

STILL_SECONDS = 600.0
"""A checkpoint that was written to so lately may belong to a run at work."""

KEPT_NAMED = 100  # more of what had to be kept is counted, but not named
_CHUNK = 200  # objects that are judged and deleted between two chances to stop
_TICK = 1_000  # objects that are passed over between two chances to stop


class Kind(StrEnum):
    """What is cleaned up."""

    ARCHIVED = "archived_manifests"
    REDRIVEN = "redriven_inputs"
    STAGED = "staged_files"
    CHECKPOINT = "checkpoint_files"


@dataclass(frozen=True, slots=True)
class Kept:
    """Something old enough to go that had to stay."""

    where: str
    reason: str


@dataclass(slots=True)
class CleaningReport:
    """What was cleaned up.

    Attributes:
        removed: Objects by kind; in a dry run, those that would go.
        removed_bytes: Their length in all.
        kept: What was old enough to go and had to stay, by reason.
        kept_named: The first of them.
    """

    removed: Counter[str] = field(default_factory=Counter)
    removed_bytes: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    kept_named: list[Kept] = field(default_factory=list)

    def keep(self, where: str, reason: str) -> None:
        """Count something that had to stay."""
        self.kept[reason] += 1
        if len(self.kept_named) < KEPT_NAMED:
            self.kept_named.append(Kept(where, reason))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Objects that go together or not at all, old enough to go.

    Attributes:
        owner: What `Retention` knows them by.
    """

    kind: Kind
    where: str
    owner: str
    objects: tuple[ObjectInfo, ...]


Candidates = Iterator[_Candidate | None]
"""None comes now and then, for a chance to stop."""


class Cleaner:
    """Finds what is old enough, and removes it. Memory does not grow with the number of objects.

    Args:
        store: Where everything is.
        layout: The places.
        clock: Tells the age.
        retention: Knows what has to stay, whatever its age.
    """

    def __init__(self, store: ObjectStore, layout: Layout, clock: Clock, retention: Retention) -> None:
        self._store = store
        self._layout = layout
        self._clock = clock
        self._retention = retention

    def clean(
        self, report: CleaningReport, *, archive_days: float, all_checkpoints: bool = False, dry_run: bool = False
    ) -> Iterator[None]:
        """Remove what is old enough, a little for each item of the iterator.

        Args:
            report: Takes the figures.
            archive_days: Age from which archived manifests and redriven inputs may go.
            all_checkpoints: Also young checkpoints: they are one run's scratch, and later runs begin new ones.
            dry_run: Only say what would go.
        """
        keep, age_seconds = self._retention, archive_days * 24 * 3600.0
        redriven = self._groups(Kind.REDRIVEN, self._layout.redriven_folder, age_seconds)
        yield from self._remove(self._archived(age_seconds), keep.why_keep_archived, report, dry_run=dry_run)
        yield from self._remove(redriven, keep.why_keep_redriven, report, dry_run=dry_run)
        yield from self._sweep(report, 0.0 if all_checkpoints else CHECKPOINT_AGE_SECONDS, dry_run=dry_run)

    def sweep(self) -> CleaningReport:
        """Remove old staging, and checkpoints of dead runs, once they are old enough."""
        report = CleaningReport()
        for _ in self._sweep(report, CHECKPOINT_AGE_SECONDS, dry_run=False):
            pass
        return report

    def _sweep(self, report: CleaningReport, checkpoint_age_seconds: float, *, dry_run: bool) -> Iterator[None]:
        staged = self._groups(Kind.STAGED, self._layout.staging_folder, ORPHAN_AGE_SECONDS)
        checkpoints = self._groups(Kind.CHECKPOINT, self._layout.checkpoints_folder, checkpoint_age_seconds)
        yield from self._remove(staged, self._retention.why_keep_staged, report, dry_run=dry_run)
        yield from self._remove(checkpoints, self._retention.why_keep_checkpoint, report, dry_run=dry_run)

    def check_checkpoints(self, *, force: bool = False) -> None:
        """Make sure that all checkpoints may go.

        Args:
            force: Also those that were written to lately; never those of a run that gives signs of life.

        Raises:
            CompactorError: The run of one of them may be at work.
        """
        for found in self._groups(Kind.CHECKPOINT, self._layout.checkpoints_folder, 0.0):
            if found is not None:
                self._check_still(found, force=force)

    def _check_still(self, checkpoint: _Candidate, *, force: bool) -> None:
        if self._retention.why_keep_checkpoint(checkpoint.owner):
            raise CompactorError(f"checkpoint {checkpoint.where}: its run is at work; expected it to be stopped first")
        newest = max(info.modified_at for info in checkpoint.objects)
        age_seconds = (self._clock.now() - newest).total_seconds()
        if age_seconds < STILL_SECONDS and not force:
            raise CompactorError(
                f"checkpoint {checkpoint.where}: written to {age_seconds:.0f} s ago, so its run may be at work; "
                f"expected nothing for {STILL_SECONDS:.0f} s, or --force"
            )

    def _archived(self, age_seconds: float) -> Candidates:
        limit = self._clock.now() - timedelta(seconds=age_seconds)
        for number, info in enumerate(self._store.list(self._layout.archive_folder), start=1):
            if info.modified_at <= limit and not info.uri.endswith("/"):
                yield _Candidate(Kind.ARCHIVED, info.uri, info.uri, (info,))
            if number % _TICK == 0:
                yield None

    def _groups(self, kind: Kind, folder: str, age_seconds: float) -> Candidates:
        """The sub-folders in which nothing was written for so long."""
        limit = self._clock.now() - timedelta(seconds=age_seconds)

        def owner_of(info: ObjectInfo) -> str:
            return info.uri.removeprefix(folder).partition("/")[0]

        for owner, objects in groupby(self._store.list(folder), key=owner_of):
            found = tuple(objects)
            is_old = max(info.modified_at for info in found) <= limit
            yield _Candidate(kind, f"{folder}{owner}/", owner, found) if is_old and owner else None

    def _remove(
        self,
        candidates: Candidates,
        why_keep: Callable[[str], str],
        report: CleaningReport,
        *,
        dry_run: bool,
    ) -> Iterator[None]:
        doomed: list[str] = []
        judged = map_ordered(lambda each: (each, why_keep(each.owner) if each else ""), candidates)
        for number, (candidate, reason) in enumerate(judged, start=1):
            if candidate is not None and reason:
                report.keep(candidate.where, reason)
            elif candidate is not None:
                doomed += [info.uri for info in candidate.objects]
                report.removed[candidate.kind] += len(candidate.objects)
                report.removed_bytes += sum(info.size_bytes for info in candidate.objects)
            if candidate is None or len(doomed) >= _CHUNK or number % _CHUNK == 0:
                self._delete(doomed, dry_run=dry_run)
                yield
        self._delete(doomed, dry_run=dry_run)
        yield

    def _delete(self, doomed: list[str], *, dry_run: bool) -> None:
        if doomed and not dry_run:
            self._store.delete(doomed)
        doomed.clear()
