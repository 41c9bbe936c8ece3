"""Forgets: puts the erasure on record, makes manifests again without what goes, and deletes input that holds it.

Each manifest changes as by a rebuild, so that readers see no row twice, and any job finishes what was decided. The
input goes last: until then, a call that is repeated finds everything again.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from compactor.core.documents.records import Commit, ErasedManifest, Erasure, place_of
from compactor.core.errors import CompactorError, ObjectNotFound, StuckError
from compactor.core.layout import ManifestKey, folder
from compactor.core.map_ordered import map_ordered
from compactor.ledger.change_log import begin_change, end_change, unfinished
from compactor.ledger.state import State
from compactor.ledger.table.orphans import Fate, InPlaceFiles
from compactor.ops.forget.candidates import NEEDED, Candidate
from compactor.ops.forget.forget_report import ForgetReport, Forgotten, NotForgotten
from compactor.ops.forget.inputs import InputEraser
from compactor.ops.forget.scan import ForgetScan, ForgetScanner, Held
from compactor.ops.rebuild.rebuild_report import RebuildReport
from compactor.ops.rebuild.rebuilder import Rebuilder
from compactor.ops.rebuild.scan import Damaged, RebuildScan


def end(state: State, begun: Erasure, *, deleted_inputs: int, left: int) -> None:
    """Record what an erasure did, in place of what another call has recorded that believed this one dead.

    Where that cannot be told now, a later call records it.
    """
    change = _ended(state, begun, deleted_inputs=deleted_inputs, left=left)
    if change is not None:
        if state.ledger.decide(change) != change:
            state.store.put(place_of(state.layout, change), change.to_json())
        end_change(state, begun)


def end_dead(state: State) -> None:
    """Record what those erasures did that are not finished, because their calls died.

    One that may still take something, or of which that cannot be told now, is left to a later call.
    """
    for begun in unfinished(state, Erasure, skips_damaged=True):
        if (change := _ended(state, begun, died=True)) is not None:
            state.ledger.decide(change)
            end_change(state, begun)


def _ended(
    state: State, begun: Erasure, *, deleted_inputs: int = 0, left: int = 0, died: bool = False
) -> Erasure | None:
    """An erasure with what it has taken of what it found; None if that cannot be told.

    A manifest that failed later, or is not published yet, counts.
    """
    found = begun.manifests
    went = list(map_ordered(partial(_went, state, begun.id), found))
    if None in went:
        return None
    ended = {
        "manifests": [each for each, is_gone in zip(found, went, strict=True) if is_gone],
        "deleted_inputs": deleted_inputs,
        "left": left,
        "died": died,
        "decided_at": state.clock.now(),
    }
    return begun.model_copy(update=ended)


def _went(state: State, erasure_id: str, found: ErasedManifest) -> bool | None:
    """Whether an erasure has taken what it found of a manifest: the outcome tells, once there is one to read."""
    try:
        outcome = state.ledger.outcome_of(ManifestKey(found.date, found.manifest_id), found.generation)
    except (ObjectNotFound, StuckError):
        return None
    erased = outcome.erased if isinstance(outcome, Commit) else None
    return erased is not None and erasure_id in erased.erasures


WHY = "lines were erased on request"
_AT_ONCE = 100  # manifests, so that a long call says what it did if it ends early


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetter:
    """Erases what a scan found. Safe beside jobs, rebuilds and other erasures; not beside a redrive of rejects.

    Attributes:
        rebuilder_for: Makes what makes manifests again without the values, given the id of the erasure.
        key: The key, as it was asked for.
        by: Who asks.
        after: Called when the manifests are done, for what else has old copies of their rows; returns what is left.
    """

    state: State
    scanner: ForgetScanner
    inputs: InputEraser
    rebuilder_for: Callable[[str], Rebuilder]
    key: str
    by: str
    after: Callable[[], Iterable[str]] = tuple

    def forget(self, scan: ForgetScan, *, dry_run: bool = False) -> ForgetReport:
        """Erase; or, in a dry run, only tell what would be erased.

        Raises:
            OperatorError: A person must act. The next call goes on.
        """
        report = ForgetReport(searched=scan.searched, refused=list(scan.refused), dry_run=dry_run)
        if dry_run:
            report.forgotten = [_forgotten(each, each.commit.generation + 1) for each in scan.held]
            report.refused += [
                NotForgotten(each.commit.manifest_id, "a rebuild of it is not done") for each in scan.undone
            ]
            report.inputs = list(self.inputs.erase(scan.candidates, dry_run=True))
            return report
        report.erasure = f"e-{self.state.clock.now():%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        rebuilder = self.rebuilder_for(report.erasure)
        candidates = [*scan.candidates, *self._finished(scan.undone, rebuilder, scan, report)]
        erasure = self._begun(report.erasure, scan.held)
        for start in range(0, len(scan.held), _AT_ONCE):
            self._erase(scan.held[start : start + _AT_ONCE], rebuilder, report)
        self._unstage(rebuilder)
        try:
            report.refused += [NotForgotten("", why) for why in self.after()]
        except CompactorError as exc:  # what was erased is on record all the same
            report.failed.append(NotForgotten("", str(exc)))
        # Only their input can make the rows of these again.
        needed = {each.commit.manifest_id for each in scan.held} - {each.manifest_id for each in report.forgotten}
        needed |= scan.unsearched  # guard: lines of a manifest that could not be searched are kept
        # guard: the input of a manifest that could not be erased is not deleted
        candidates = [each.kept(NEEDED) if each.manifest_id in needed else each for each in candidates]
        report.inputs = list(self.inputs.erase(candidates, dry_run=False))
        end(self.state, erasure, deleted_inputs=sum(each.deleted for each in report.inputs), left=report.left)
        end_dead(self.state)
        return report

    def _begun(self, erasure_id: str, held: Sequence[Held]) -> Erasure:
        now = self.state.clock.now()
        begun = Erasure(
            id=erasure_id,
            key=self.key,
            by=self.by,
            values=len(self.inputs.wanted.values),
            inputs=self.inputs.inputs,
            begun_at=now,
            manifests=[_found(each) for each in held],
            run_id=self.state.ledger.run_id,
            decided_at=now,
        )
        begin_change(self.state, begun)
        return begun

    def _finished(
        self, undone: Sequence[Damaged], rebuilder: Rebuilder, scan: ForgetScan, report: ForgetReport
    ) -> Sequence[Candidate]:
        """Publish what an earlier call, or a rebuild, has decided, and search its manifests, too."""
        if not undone:
            return ()
        self._add(rebuilder.rebuild(RebuildScan(damaged=list(undone))), report)
        later = self.scanner.scan_some(each.commit.key for each in undone)
        report.searched += later.searched
        report.refused += later.refused
        report.refused += [
            NotForgotten(each.commit.manifest_id, "a rebuild of it is not done") for each in later.undone
        ]
        scan.held += later.held
        scan.unsearched |= later.unsearched
        return later.candidates

    def _erase(self, held: Sequence[Held], rebuilder: Rebuilder, report: ForgetReport) -> None:
        damaged = [Damaged(each.accepted, each.commit, WHY, erasure=report.erasure) for each in held]
        made = rebuilder.rebuild(RebuildScan(damaged=damaged))
        self._add(made, report)
        generations = {each.manifest_id: each.generation for each in made.rebuilt}
        report.forgotten += [
            _forgotten(each, generations[each.commit.manifest_id])
            for each in held
            if each.commit.manifest_id in generations
        ]

    def _add(self, made: RebuildReport, report: ForgetReport) -> None:
        report.refused += [NotForgotten(each.manifest_id, each.why) for each in made.refused]
        report.failed += [NotForgotten(each.manifest_id, each.why) for each in made.failed]
        report.discrepancies += made.discrepancies

    def _unstage(self, rebuilder: Rebuilder) -> None:
        """Delete what dead attempts left in the staging of manifests that are done."""
        layout, ledger = self.state.layout, self.state.ledger
        listed = self.state.store.list(layout.staging_folder)
        names = dict.fromkeys(info.uri.removeprefix(layout.staging_folder).partition("/")[0] for info in listed)
        for name in names:
            try:
                accepted = ledger.accepted(name) if not name.startswith("_") else None
                found = ledger.state(accepted.key) if accepted is not None else None
            except StuckError:
                continue  # the scan has named it
            if found is not None and found.outcome is not None and found.is_done:
                rebuilder.publisher.delete_staging(name, upto=found.outcome.generation)
        if rebuilder.publisher.table is not None:  # guard: forgetting deletes orphans
            self._delete_orphans()

    def _delete_orphans(self) -> None:
        """Delete files that attempts wrote in place, and that no commit names."""
        store, layout, in_place = self.state.store, self.state.layout, InPlaceFiles(self.state)
        listed = (info.uri for info in store.list(folder(layout.output)) if layout.in_place_attempt(info.uri))
        fates = map_ordered(lambda uri: (uri, in_place.fate(uri)), listed)
        store.delete(uri for uri, fate in fates if fate is Fate.ORPHANED)


def _found(held: Held) -> ErasedManifest:
    commit = held.commit
    return ErasedManifest(
        manifest_id=commit.manifest_id,
        date=commit.date,
        generation=commit.generation + 1,
        rows=held.rows,
        rejected_lines=held.rejected_lines,
    )


def _forgotten(held: Held, generation: int) -> Forgotten:
    key = held.commit.key
    return Forgotten(key.id, key.date, generation, held.rows, held.rejected_lines)
