"""Deletes expired objects: archived manifests, redriven lines, rejects, orphans, checkpoints of dead runs.

Orphans are staged files, and uncommitted files that attempts wrote in place in the output. Anything that a later
command could ask for is recorded before it is deleted.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import chain, groupby

from compactor.core.documents.changes import Rule, Why
from compactor.core.errors import AccessError, CompactorError, StuckError
from compactor.core.layout import digest, folder
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.core.results import as_document
from compactor.ledger.state import State
from compactor.ledger.table.orphans import InPlaceFiles
from compactor.telemetry.logs import log_event
from compactor.upkeep.expiring import Expirer
from compactor.upkeep.retention import Found, Retention, why_keep_in_place
from compactor.upkeep.tasks import IsStopping, Task

ORPHAN_AGE_SECONDS = 24 * 3600.0
"""Every living attempt changes its staging within this time."""

ORPHAN_DAYS = 8.0
"""How far back the job looks for orphans in the output each day, so that its cost does not grow with the output."""

CHECKPOINT_AGE_SECONDS = 15 * 24 * 3600.0
"""Glue ends a streaming run after at most 14 days, so an older checkpoint belongs to no living run."""

STILL_SECONDS = 600.0
"""A checkpoint written more recently may belong to a living run."""

KEPT_NAMED = 100  # further kept objects are counted, but not listed
_DAY_SECONDS = 24 * 3600.0
_CHUNK = 200  # objects judged and deleted at once
_NAME_CHARACTERS = 20  # of a digest of the expired objects: two concurrent cleaners record the same once
_TICK = 1_000  # objects passed over at once


class Kind(StrEnum):
    """The kinds of objects that expire, in cleaning order."""

    ARCHIVED = "archived_manifests"
    REDRIVEN = "redriven_inputs"
    REJECTS = "rejects_files"
    STAGED = "staged_files"
    ORPHANED = "orphaned_files"
    CHECKPOINT = "checkpoint_files"


@dataclass(frozen=True, slots=True)
class Kept:
    """An object that is old enough to delete, but must stay."""

    where: str  # its URI
    reason: str  # why it must stay


@as_document(omits=("failed",))
@dataclass(frozen=True, slots=True)
class CleaningReport:
    """Objects removed by age. With `--dry-run`, nothing is removed.

    Attributes:
        removed: Number of objects that were removed, or would be, by kind.
        removed_bytes: Their total size.
        kept: The number of old objects that had to stay, by reason.
        kept_named: The first of these objects.
        failed: The first error that left a kind of objects uncleaned: the store refused to delete one of them, or a
            record about them is damaged.
    """

    removed: Counter[Kind] = field(default_factory=Counter)
    removed_bytes: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    kept_named: Sequence[Kept] = ()
    failed: AccessError | StuckError | None = None
    archive_days: int = 0  # applied age, in days
    dry_run: bool = False  # whether nothing was removed

    def with_removed(self, kind: Kind, objects: Sequence[ObjectInfo]) -> "CleaningReport":
        """The report with more removed objects."""
        size_bytes = self.removed_bytes + sum(info.size_bytes for info in objects)
        return replace(self, removed=self.removed + Counter({kind: len(objects)}), removed_bytes=size_bytes)

    def with_kept(self, kept: Sequence[Kept]) -> "CleaningReport":
        """The report with more kept objects."""
        named = (*self.kept_named, *kept)[:KEPT_NAMED]
        return replace(self, kept=self.kept + Counter(each.reason for each in kept), kept_named=named)


OnChunk = Callable[[CleaningReport], bool]


@dataclass(frozen=True, slots=True)
class _Expiry:
    """When objects of a kind may be deleted. Objects with the same owner are deleted together or not at all."""

    kind: Kind
    folder: str
    age_seconds: float
    why_keep: Callable[[str], Found | str | None]  # None for objects that must not even be counted
    expiry: Rule | None = None  # the rule to record, if a record is needed
    rule: str = ""
    owner_of: Callable[[str], str] | None = None  # an object's owner, by its URI; by default, its first folder
    newest_seconds: float = math.inf  # older objects are passed over
    may_be_denied: bool = False  # if the store refuses, an operator with more permissions may delete them later

    def owner(self, info: ObjectInfo) -> str:
        if self.owner_of is not None:
            return self.owner_of(info.uri)
        return info.uri.removeprefix(self.folder).partition("/")[0]

    def where(self, owner: str) -> str:
        return owner if self.kind in {Kind.ARCHIVED, Kind.ORPHANED} else f"{self.folder}{owner}/"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An owner's objects, all old enough to delete."""

    owner: str
    objects: tuple[ObjectInfo, ...]


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Deletes objects that are old enough and need not stay. Memory does not grow with the number of objects.

    Attributes:
        has_table: Whether a table lists the output, so that its folders may hold uncommitted in-place files.
    """

    state: State
    retention: Retention
    expirer: Expirer
    has_table: bool = False

    def clean(
        self,
        *,
        archive_days: int,
        rejects_days: float = 0.0,
        archive_rule: str = "",
        all_checkpoints: bool = False,
        all_orphans: bool = False,
        dry_run: bool = False,
        on_chunk: OnChunk = lambda _: True,
    ) -> CleaningReport:
        """Delete expired objects.

        If the store refuses a deletion, or a record is damaged, the other kinds are still cleaned.

        Args:
            archive_days: Age from which archived manifests and redriven inputs may be deleted.
            rejects_days: Age from which rejects may be deleted; 0 keeps them.
            archive_rule: The source of `archive_days`, in words; by default the setting.
            all_checkpoints: Also delete recent checkpoints: later runs start new ones.
            all_orphans: Also delete orphans in the output that are older than `ORPHAN_DAYS`.
            dry_run: Only report what would be deleted.
            on_chunk: Called after each chunk of objects with the report so far; returns whether to continue.

        Raises:
            AccessError: The store refused a deletion.
            StuckError: A record is damaged.
        """
        expiries = [
            *self._recorded(archive_days, rejects_days, archive_rule),
            *self._in_place(math.inf if all_orphans else ORPHAN_DAYS * _DAY_SECONDS),
            *self._orphans(0.0 if all_checkpoints else CHECKPOINT_AGE_SECONDS),
        ]
        report = self._clean(expiries, on_chunk, CleaningReport(archive_days=archive_days, dry_run=dry_run))
        if report.failed is not None:
            raise report.failed
        return report

    def _recorded(self, archive_days: int, rejects_days: float, archive_rule: str) -> Iterator[_Expiry]:
        """Objects whose deletion is recorded first."""
        layout, keep, age_seconds = self.state.layout, self.retention, archive_days * _DAY_SECONDS
        rule = archive_rule or f"retention.archive_days = {archive_days:g}"
        yield _Expiry(Kind.ARCHIVED, layout.archive_folder, age_seconds, keep.why_keep_archived, Why.ARCHIVE, rule, str)
        yield _Expiry(Kind.REDRIVEN, layout.redriven_folder, age_seconds, keep.why_keep_redriven, Why.REDRIVEN, rule)
        if rejects_days:
            age_seconds, rule = rejects_days * _DAY_SECONDS, f"retention.rejects_days = {rejects_days:g}"
            yield _Expiry(
                Kind.REJECTS,
                layout.rejects_folder,
                age_seconds,
                keep.why_keep_rejects,
                Why.REJECTS,
                rule,
                self._rejecter,
            )

    def _rejecter(self, uri: str) -> str:
        """The date and id of the manifest of a rejects file; empty for any other object."""
        key = self.state.layout.rejects_owner(uri)
        return f"{key.date}/{key.id}" if key is not None and key.id else ""

    def sweep(self) -> CleaningReport:
        """Delete old staging, and old checkpoints of dead runs."""
        return self._clean(self._orphans(CHECKPOINT_AGE_SECONDS), lambda _: True, CleaningReport())

    def check_checkpoints(self, *, force: bool = False) -> None:
        """Check that all checkpoints may be deleted.

        With `force`, recently written ones count as deletable, too, but never one whose run has a heartbeat.

        Raises:
            CompactorError: A run of one of them may be alive.
        """
        for found in chain.from_iterable(self._chunks(self._orphans(0.0)[-1])):
            self._check_still(found, force=force)

    def _check_still(self, checkpoint: _Candidate, *, force: bool) -> None:
        where = f"{self.state.layout.checkpoints_folder}{checkpoint.owner}/"
        if self.retention.why_keep_checkpoint(checkpoint.owner):
            raise CompactorError(f"checkpoint {where}: its run is active; expected it to be stopped first")
        newest = max(info.modified_at for info in checkpoint.objects)
        age_seconds = (self.state.clock.now() - newest).total_seconds()
        if age_seconds < STILL_SECONDS and not force:
            raise CompactorError(
                f"checkpoint {where}: written to {age_seconds:.0f} s ago, so its run may be active; expected no "
                f"writes for {STILL_SECONDS:.0f} s, or --force"
            )

    def _in_place(self, newest_seconds: float) -> Iterator[_Expiry]:
        """In-place files in the output."""
        if self.has_table:
            yield _Expiry(
                Kind.ORPHANED,
                folder(self.state.layout.output),
                ORPHAN_AGE_SECONDS,  # guard: orphans in the output stay for a day
                partial(why_keep_in_place, InPlaceFiles(self.state)),
                owner_of=lambda uri: uri if self.state.layout.in_place_attempt(uri) else "",
                newest_seconds=newest_seconds,
                may_be_denied=newest_seconds < math.inf,
            )

    def _orphans(self, checkpoint_age_seconds: float) -> list[_Expiry]:
        layout, keep = self.state.layout, self.retention
        return [
            _Expiry(Kind.STAGED, layout.staging_folder, ORPHAN_AGE_SECONDS, keep.why_keep_staged),
            _Expiry(Kind.CHECKPOINT, layout.checkpoints_folder, checkpoint_age_seconds, keep.why_keep_checkpoint),
        ]

    def _clean(self, expiries: Sequence[_Expiry], on_chunk: OnChunk, start: CleaningReport) -> CleaningReport:
        report = start
        for expiry in expiries:
            try:
                if expiry.expiry is not None and not report.dry_run:
                    # guard: nothing else of a kind expires while a deletion is refused
                    self.expirer.finish([expiry.expiry])
                for report_so_far in self._clean_kind(expiry, report):
                    report = report_so_far
                    if not on_chunk(report):
                        return report
            except (AccessError, StuckError) as exc:  # nothing else of this kind expires until it is fixed
                if expiry.may_be_denied and isinstance(exc, AccessError):
                    denied = Kept(expiry.folder, "the job is not permitted to delete orphans there")
                    report = report.with_kept([denied])
                else:
                    report = replace(report, failed=report.failed or exc)
        return report

    def _clean_kind(self, expiry: _Expiry, report: CleaningReport) -> Iterator[CleaningReport]:
        """Delete the expired objects of one kind; yield the report after each chunk."""
        for chunk in self._chunks(expiry):
            going, kept, fault = list[tuple[_Candidate, Found | None]](), list[Kept](), None
            for found, verdict in map_ordered(partial(_judged, expiry), chunk):
                if isinstance(verdict, StuckError):
                    fault = fault or verdict
                elif verdict == "":
                    going.append((found, None))
                elif isinstance(verdict, str):
                    kept.append(Kept(expiry.where(found.owner), verdict))
                elif verdict is not None:
                    going.append((found, verdict))
            if not report.dry_run:
                self._delete(expiry, going)
            objects = [info for found, _ in going for info in found.objects]
            report = report.with_removed(expiry.kind, objects).with_kept(kept)
            yield replace(report, failed=report.failed or fault)
            if fault is not None:  # a damaged record does not protect its chunk, but ends its kind
                return

    def _chunks(self, expiry: _Expiry) -> Iterator[list[_Candidate]]:
        """Owners whose objects are all old enough, in chunks; an empty chunk after many objects that must stay.

        So the listing never runs far ahead of the deletions.
        """
        now, chunk, passed, held = self.state.clock.now(), list[_Candidate](), 0, 0
        for owner, objects in groupby(self.state.store.list(expiry.folder), key=expiry.owner):
            # There may be any number of objects without an owner, so they are never all in memory.
            for found in [tuple(objects)] if owner else ((info,) for info in objects):
                age_seconds = (now - max(info.modified_at for info in found)).total_seconds()
                is_old = expiry.age_seconds <= age_seconds <= expiry.newest_seconds
                if owner and not owner.endswith("/") and is_old:
                    chunk.append(_Candidate(owner, found))
                    held += len(found)
                else:
                    passed += len(found)
                if passed >= _TICK or held >= _CHUNK:
                    yield chunk
                    chunk, passed, held = [], 0, 0
        if chunk:
            yield chunk

    def _delete(self, expiry: _Expiry, going: Sequence[tuple[_Candidate, Found | None]]) -> None:
        """Delete objects; record those of manifests first."""
        uris = [info.uri for found, manifest in going if manifest is None for info in found.objects]
        if uris:
            self.state.store.delete(uris)
        manifests = sorted(manifest for _, manifest in going if manifest is not None)
        if expiry.expiry is None:
            return
        for date, some in groupby(manifests, key=lambda each: each[0].date):
            generations = {key.id: generation for key, generation in some}
            name = digest(repr(generations).encode())[:_NAME_CHARACTERS]
            self.expirer.expire(expiry.expiry, date, name, expiry.rule, generations)


def _judged(expiry: _Expiry, found: _Candidate) -> tuple[_Candidate, Found | str | StuckError | None]:
    try:
        return found, expiry.why_keep(found.owner)
    except StuckError as exc:
        return found, exc


def retention_task(cleaner: Cleaner, *, archive_days: int, rejects_days: float) -> Task:
    """The task that deletes expired objects once a day; see `Cleaner.clean`."""

    def run(is_stopping: IsStopping) -> None:
        report = cleaner.clean(
            archive_days=archive_days, rejects_days=rejects_days, on_chunk=lambda _: not is_stopping()
        )
        log_event(
            "retention.finished",
            removed=dict(report.removed),
            removed_bytes=report.removed_bytes,
            kept=dict(report.kept),
        )

    return Task(name="retention", every_seconds=_DAY_SECONDS, run=run)
