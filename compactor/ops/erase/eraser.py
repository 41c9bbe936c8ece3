"""Erases lines: records the erasure, rebuilds manifests without the erased lines, and deletes input that contains them.

Each manifest changes as by a rebuild, so readers see no row twice, and any job finishes decided changes. The input is
deleted last: until then, a repeated call finds everything again.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from compactor.core.documents.changes import Commit, ErasedManifest, Erasure, SearchedPlace, place_of
from compactor.core.errors import CompactorError, ObjectNotFound, StuckError
from compactor.core.layout import ManifestKey, folder
from compactor.core.map_ordered import map_ordered
from compactor.core.results import as_document
from compactor.ledger.change_log import begin_change, end_change, unfinished
from compactor.ledger.state import State
from compactor.ledger.table.orphans import Fate, InPlaceFiles
from compactor.ops.erase.inputs import NEEDED, HeldInput, InputEraser
from compactor.ops.erase.scan import EraseScan, EraseScanner, Held
from compactor.ops.rebuild.damaged import Damaged, NotChanged, RebuildScan
from compactor.ops.rebuild.rebuilder import Rebuilder
from compactor.ops.verify.report import Discrepancy


def end(state: State, begun: Erasure, report: "EraseReport") -> None:
    """Record the results of an erasure, even if a different call considered this one dead and recorded a result.

    If they are not yet known, a later call records them.
    """
    change = _ended(state, begun, report)
    if change is not None:
        if state.ledger.decide(change) != change:
            state.store.put(place_of(state.layout, change), change.to_json())
        end_change(state, begun)


def end_dead(state: State) -> None:
    """Record the results of unfinished erasures whose calls died.

    An erasure that may still change something, or is unclear, is left to a later call.
    """
    for begun in unfinished(state, Erasure, skips_damaged=True):
        if (change := _ended(state, begun)) is not None:
            state.ledger.decide(change)
            end_change(state, begun)


def _ended(state: State, begun: Erasure, report: "EraseReport | None" = None) -> Erasure | None:
    """An erasure with the manifests that it really erased; None if unclear. Without a report, its call died.

    A manifest counts even if its rebuild failed later, or is not published yet.
    """
    found = begun.manifests
    went = list(map_ordered(partial(_went, state, begun.id), found))
    if None in went:
        return None
    ended = {
        "manifests": [each for each, is_gone in zip(found, went, strict=True) if is_gone],
        "died": report is None,
        "decided_at": state.clock.now(),
    }
    if report is not None:
        deleted = sum(each.deleted for each in report.inputs)
        ended |= {"places": report.places, "deleted_inputs": deleted, "left": report.left}
    return begun.model_copy(update=ended)


def _went(state: State, erasure_id: str, found: ErasedManifest) -> bool | None:
    """Whether an erasure was applied to a manifest; None while there is no readable outcome."""
    try:
        outcome = state.ledger.outcome_of(ManifestKey(found.date, found.manifest_id), found.generation)
    except (ObjectNotFound, StuckError):
        return None
    erased = outcome.erased if isinstance(outcome, Commit) else None
    return erased is not None and erasure_id in erased.erasures


WHY = "lines were erased on request"
_IN_USE = "a temporary file in use; run it again when its process has ended"


@as_document(shows=("left",))
@dataclass(frozen=True, slots=True)
class EraseReport:
    """The result of an erasure. With `--dry-run` nothing is written. It quotes none of the values."""

    erasure: str = ""  # id of the erasure; empty if nothing is written
    searched: int = 0  # committed manifests whose files were searched
    erased: tuple[ErasedManifest, ...] = ()  # manifests that contained a value
    inputs: tuple[HeldInput, ...] = ()  # input files that contained a value
    refused: tuple[NotChanged, ...] = ()  # manifests and files that may still contain a value
    failed: tuple[NotChanged, ...] = ()  # failures; a later call may succeed
    discrepancies: tuple[Discrepancy, ...] = ()  # discrepancies afterwards
    places: tuple[SearchedPlace, ...] = ()  # every place that was searched
    dry_run: bool = False  # whether nothing was written

    @property
    def left(self) -> int:
        """Number of manifests and files that still contain a value, or may contain one."""
        return len(self.refused) + len(self.failed) + sum(not each.deleted for each in self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Eraser:
    """Erases the findings of a scan. Safe alongside jobs, rebuilds and other erasures, but not a redrive of rejects.

    Attributes:
        rebuilder_for: Makes the rebuilder that omits the values, given the id of the erasure.
        key: The requested key.
        by: Who asks.
        after: Called when the manifests are done, to erase old copies of their rows elsewhere; returns the remainder.
        table: The table's name; empty if there is none.
        leftovers: By place, what deletes temporary files of killed processes, and yields those of living ones.
    """

    state: State
    scanner: EraseScanner
    inputs: InputEraser
    rebuilder_for: Callable[[str], Rebuilder]
    key: str
    by: str
    table: str
    after: Callable[[], Iterable[str]]
    leftovers: Mapping[str, Callable[[], Iterable[str]]]

    def erase(self, scan: EraseScan, *, dry_run: bool = False) -> EraseReport:
        """Erase; in a dry run, only report what would be erased.

        Raises:
            OperatorError: An operator must act. The next call continues.
        """
        if dry_run:
            return self._would_erase(scan)
        erasure_id = f"e-{self.state.clock.now():%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        rebuilder = self.rebuilder_for(erasure_id)
        refused, before = list[NotChanged](), self._left()
        # Decisions of earlier calls and rebuilds are published first, and their manifests are searched, too.
        finished = rebuilder.rebuild(RebuildScan(damaged=scan.undone))
        if scan.undone:
            later = self.scanner.scan_some(each.commit.key for each in scan.undone)
            refused += map(_not_done, later.undone)
            scan = EraseScan((*scan.parts, *later.parts))
        begun = self._begun(erasure_id, scan.held)
        damaged = tuple(Damaged(each.accepted, each.commit, WHY, erasure=erasure_id) for each in scan.held)
        made = rebuilder.rebuild(RebuildScan(damaged=damaged))
        staged = self._unstage(rebuilder)
        failed = [*finished.failed, *made.failed]
        table = self.table  # empty if it could not be searched
        try:
            refused += [NotChanged("", why) for why in self.after()]
        except CompactorError as exc:  # the erasure is on record anyway
            failed.append(NotChanged("", str(exc)))
            table = ""
        # An erasure leaves no temporary file of an attempt that died before it
        in_use = before & self._left()
        refused += [NotChanged("", f"{path}: {_IN_USE}") for path, _ in sorted(in_use)]
        gone = {each.manifest_id for each in made.rebuilt}
        # Only their input can restore the rows of these manifests.
        needed = {each.commit.manifest_id for each in scan.held} - gone
        needed |= scan.unsearched  # guard: lines of a manifest that could not be searched are kept
        candidates = scan.candidates
        # guard: the input of a manifest that could not be erased is not deleted
        candidates = tuple(
            replace(each, kept_because=NEEDED) if each.manifest_id in needed else each for each in candidates
        )
        report = EraseReport(
            erasure_id,
            scan.searched,
            tuple(each.erased for each in scan.held if each.commit.manifest_id in gone),
            tuple(self.inputs.erase(candidates, dry_run=False)),
            (*scan.refused, *finished.refused, *made.refused, *refused),
            tuple(failed),
            (*finished.discrepancies, *made.discrepancies),
            (
                *scan.places(self.state.layout, self.scanner.prefixes),
                *self._own_places(staged, table, [place for _, place in in_use]),
            ),
        )
        end(self.state, begun, report)
        end_dead(self.state)
        return report

    def _would_erase(self, scan: EraseScan) -> EraseReport:
        return EraseReport(
            searched=scan.searched,
            erased=tuple(each.erased for each in scan.held),
            inputs=tuple(self.inputs.erase(scan.candidates, dry_run=True)),
            refused=(*scan.refused, *map(_not_done, scan.undone)),
            places=tuple(scan.places(self.state.layout, self.scanner.prefixes)),
            dry_run=True,
        )

    def _left(self) -> set[tuple[str, str]]:
        """Temporary files in use, with their places. All others are deleted."""
        return {(path, place) for place, remove in self.leftovers.items() for path in remove()}

    def _own_places(self, staged: int, table: str, in_use: Sequence[str]) -> Iterator[SearchedPlace]:
        """The places that hold no committed file."""
        yield SearchedPlace(what="staging", place=self.state.layout.staging_folder, objects=staged)
        if table:
            yield SearchedPlace(what="table", place=table, objects=1)
        for place in self.leftovers:
            yield SearchedPlace(what="temporary", place=place, objects=in_use.count(place))

    def _begun(self, erasure_id: str, held: Sequence[Held]) -> Erasure:
        now = self.state.clock.now()
        begun = Erasure(
            id=erasure_id,
            by=self.by,
            run_id=self.state.ledger.run_id,
            decided_at=now,
            key=self.key,
            values=len(self.inputs.wanted.values),
            inputs=self.inputs.inputs,
            begun_at=now,
            manifests=[each.erased for each in held],
        )
        begin_change(self.state, begun)
        return begun

    def _unstage(self, rebuilder: Rebuilder) -> int:
        """Delete staging that dead attempts left behind for manifests that are done; return the number of manifests."""
        layout, ledger = self.state.layout, self.state.ledger
        listed = self.state.store.list(layout.staging_folder)
        names = dict.fromkeys(info.uri.removeprefix(layout.staging_folder).partition("/")[0] for info in listed)
        for name in names:
            try:
                accepted = ledger.accepted(name) if not name.startswith("_") else None
                found = ledger.state(accepted.key) if accepted is not None else None
            except StuckError:
                continue  # already reported by the scan
            if found is not None and found.outcome is not None and found.is_done:
                rebuilder.publisher.delete_staging(name, upto=found.outcome.generation)
        if rebuilder.publisher.table is not None:  # guard: an erasure deletes orphans
            self._delete_orphans()
        return len(names)

    def _delete_orphans(self) -> None:
        """Delete uncommitted files that attempts wrote in place."""
        store, layout, in_place = self.state.store, self.state.layout, InPlaceFiles(self.state)
        listed = (info.uri for info in store.list(folder(layout.output)) if layout.in_place_attempt(info.uri))
        states = map_ordered(lambda uri: (uri, in_place.fate(uri)), listed)
        store.delete(uri for uri, fate in states if fate is Fate.ORPHANED)


def _not_done(undone: Damaged) -> NotChanged:
    return NotChanged(undone.commit.manifest_id, "a rebuild of it is not done")
