"""Deletes expired objects: records each rule's decision first, so that nothing is ever deleted without a record.

Any number of processes may do this concurrently, and each may die at any point: the intention stays on record until
everything is deleted, and the next run carries it out, whatever the settings are by then.

A rebuild opens its manifest before it checks for expired parts, and this records expired parts before it checks for
open manifests. So at least one of the two sees the other: the rebuild gives up, or its manifest is left to a later run.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from compactor.core.crash_points import ChangeCrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import (
    TAKES,
    Commit,
    DeadLetter,
    Rule,
    Taking,
)
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey, redriven_owner
from compactor.core.map_ordered import map_ordered
from compactor.ledger.change_log import begin_change, end_change, unfinished
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event
from compactor.upkeep.retention import is_left

BY_JOB = "the job"

Outcomes = dict[str, Commit | DeadLetter]


@dataclass(frozen=True, slots=True)
class Expirer:
    """Records expired parts, and deletes them.

    Attributes:
        by: The actor, in words.
        on_crash_point: Called at each crash point.
    """

    state: State
    by: str = BY_JOB
    on_crash_point: OnCrashPoint = ignore_crash_point

    def expire(self, why: Rule, date: str, name: str, rule: str, manifests: dict[str, int]) -> list[str]:
        """Record the expired parts of a date, and delete them.

        Args:
            why: The kind of rule.
            date: The manifests' date.
            name: The same in every process that makes the same decision.
            rule: The rule in words.
            manifests: Each manifest's outcome generation, by id.

        Returns:
            The ids of manifests in progress, whose parts are left to the next run.
        """
        change = Taking(
            why=why,
            about=date,
            id=name,
            reason=rule,
            by=self.by,
            run_id=self.state.ledger.run_id,
            decided_at=self.state.clock.now(),
            manifests=manifests,
        )
        # guard: an intention is on record before anything expires, so that the next run finishes it
        begin_change(self.state, change)
        self.on_crash_point(ChangeCrashPoint.BEGUN, date)
        return self._carry_out(change)

    def finish(self, whys: Collection[Rule]) -> list[Taking]:
        """Carry out the unfinished changes of earlier runs; return them."""
        found = list(unfinished(self.state, Taking, whys))
        for change in found:
            self._carry_out(change)
        return found

    def _carry_out(self, begun: Taking) -> list[str]:
        """Delete a change's parts; return the ids of its manifests in progress."""
        change = self.state.ledger.decide(begun)  # guard: what expires is on record before it is deleted
        self.on_crash_point(ChangeCrashPoint.RECORDED, change.about)
        waiting = self._delete(change)
        self.on_crash_point(ChangeCrashPoint.DELETED, change.about)
        if not waiting:
            log_event("date.expired", date=change.about, rule=change.reason, manifests=len(change.manifests))
            end_change(self.state, begun)
            self.on_crash_point(ChangeCrashPoint.FINISHED, change.about)
        return waiting

    def _delete(self, change: Taking) -> list[str]:
        """Delete a change's parts; return the ids of its manifests in progress."""
        outcomes: Outcomes = {}
        may_go, waiting = list(change.manifests), list[str]()
        if TAKES[change.why] & {"rows", "rejects"}:
            # Open ones first: a rebuild not among them sees the change, or its outcome is among those read now.
            opened = set(self.state.ledger.open_ids())
            outcomes = self._outcomes(change)
            generations = {each: outcome.generation for each, outcome in outcomes.items()}
            may_go, waiting = left_under(change, generations, opened)
        keys = [ManifestKey(change.about, each) for each in may_go]
        for part in ("rejects", "archive", "redriven", "rows"):  # readers miss rows last
            if part in TAKES[change.why]:
                self.state.store.delete(list(_PLACES[part](self.state, keys, outcomes)))
        return waiting

    def _outcomes(self, change: Taking) -> Outcomes:
        """The outcomes of a change's manifests, by id; omits unreadable ones."""

        def read(manifest_id: str) -> Commit | DeadLetter | None:
            try:
                return self.state.ledger.outcome(ManifestKey(change.about, manifest_id))
            except (ObjectNotFound, RecordUnreadable):  # `verify` reports the fault
                return None

        found = zip(change.manifests, map_ordered(read, change.manifests), strict=True)
        return {manifest_id: outcome for manifest_id, outcome in found if outcome is not None}


def left_under(change: Taking, generations: Mapping[str, int], opened: Iterable[str]) -> tuple[list[str], list[str]]:
    """The manifests whose parts a change may delete now, and those for which that has to wait.

    A manifest rebuilt since then keeps its parts. An open one may be being rebuilt at this moment.

    Args:
        change: The change.
        generations: The newest outcome generation of each of its manifests; omits those without an outcome.
        opened: The ids of open manifests.
    """
    in_work = set(opened)
    same = [each for each, generation in change.manifests.items() if generations.get(each, 0) == generation]
    # guard: the files of a manifest that is open are left to the next run
    return [each for each in same if each not in in_work], [each for each in same if each in in_work]


def _rows(_state: State, keys: list[ManifestKey], outcomes: Outcomes) -> Iterator[str]:
    for key in keys:
        if isinstance(outcome := outcomes[key.id], Commit):
            yield from (file.final for file in outcome.outputs)


def _rejects(_state: State, keys: list[ManifestKey], outcomes: Outcomes) -> Iterator[str]:
    for key in keys:
        if isinstance(outcome := outcomes[key.id], Commit):
            yield from (file.final for file in outcome.rejects)


def _archived(state: State, keys: list[ManifestKey], _outcomes: Outcomes) -> Iterator[str]:
    return (state.layout.archived_manifest(key) for key in keys)


def _redriven(state: State, keys: list[ManifestKey], outcomes: Outcomes) -> Iterator[str]:
    def copies(key: ManifestKey) -> list[str]:
        return _copies(state, outcomes[key.id]) if outcomes else _all_copies(state, key.id)

    for uris in map_ordered(copies, keys):
        yield from uris


def _all_copies(state: State, manifest_id: str) -> list[str]:
    return [info.uri for info in state.store.list(f"{state.layout.redriven_folder}{manifest_id}/")]


def _copies(state: State, outcome: Commit | DeadLetter) -> list[str]:
    """The redriven lines or landed records of a manifest that compacted all of them; others can be redriven again."""
    place = state.layout.redriven_folder
    if not isinstance(outcome, Commit):
        return []
    # guard: redriven lines that were quarantined stay
    if any(is_left(file, place, outcome.manifest_id) for file in outcome.files):
        return []
    if outcome.rejects_of:
        return _all_copies(state, outcome.manifest_id)
    # Other landed records in that folder may belong to a redrive that is not done.
    return [file.uri for file in outcome.files if redriven_owner(file.uri, place) == outcome.manifest_id]


_PLACES: dict[str, Callable[[State, list[ManifestKey], Outcomes], Iterator[str]]] = {
    "rows": _rows,
    "rejects": _rejects,
    "archive": _archived,
    "redriven": _redriven,
}
