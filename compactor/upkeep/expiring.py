"""Deletes what expired: puts it on record first, so that nothing is ever gone without a record of the rule.

Any number of processes may do this at once, and each may die at any point: the intention stays on record until
everything is deleted, and the next run carries it out, whatever the settings are by then.

A rebuild opens its manifest before it asks what expired, and this records what expires before it asks what is open. So
at least one of the two sees the other: the rebuild gives up, or its manifest is left to a later run.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from compactor.core.crash_points import ExpiryCrashPoint, OnExpiryCrashPoint, ignore_expiry_crash_point
from compactor.core.documents.expired import TAKES, Expired, Expiry, left_under
from compactor.core.documents.records import Commit, DeadLetter
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.history.expired_log import ExpiredLog
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event
from compactor.upkeep.retention import is_left

BY_JOB = "the job"

Outcomes = dict[str, Commit | DeadLetter]


@dataclass(frozen=True, slots=True)
class Expirer:
    """Records what expires, and deletes it.

    Attributes:
        by: Who does, in words.
        on_crash_point: Called at each crash point.
    """

    state: State
    by: str = BY_JOB
    on_crash_point: OnExpiryCrashPoint = ignore_expiry_crash_point

    @property
    def _log(self) -> ExpiredLog:
        return ExpiredLog(self.state)

    def expire(self, kind: Expiry, date: str, name: str, rule: str, manifests: dict[str, int]) -> list[str]:
        """Record what expires of a date, and delete it.

        Args:
            kind: The kind of the rule.
            date: The date of the manifests.
            name: The same name in every process that records the same.
            rule: The rule in words.
            manifests: The generation of the outcome of each, by id.

        Returns:
            The ids of manifests that are in work, whose parts are left to the next run.
        """
        record = Expired(
            kind=kind,
            date=date,
            name=name,
            rule=rule,
            by=self.by,
            run_id=self.state.ledger.run_id,
            expired_at=self.state.clock.now(),
            manifests=manifests,
        )
        # guard: an intention is on record before anything expires, so that the next run finishes it
        self._log.begin(record)
        self.on_crash_point(ExpiryCrashPoint.BEGUN, date)
        return self._carry_out(record)

    def finish(self, kinds: Collection[Expiry]) -> list[Expired]:
        """Carry out what earlier runs began and did not finish; return what that was."""
        found = list(self._log.unfinished(kinds))
        for record in found:
            self._carry_out(record)
        return found

    def _carry_out(self, begun: Expired) -> list[str]:
        record = self._log.record(begun)  # guard: what expires is on record before it is deleted
        self.on_crash_point(ExpiryCrashPoint.RECORDED, record.date)
        waiting = self._delete(record)
        self.on_crash_point(ExpiryCrashPoint.DELETED, record.date)
        if not waiting:
            self._log.finish(begun)
            self.on_crash_point(ExpiryCrashPoint.FINISHED, record.date)
            log_event("date.expired", date=record.date, rule=record.rule, manifests=len(record.manifests))
        return waiting

    def _delete(self, record: Expired) -> list[str]:
        """Delete what is under a record; return the ids of its manifests that are in work."""
        outcomes: Outcomes = {}
        may_go, waiting = list(record.manifests), list[str]()
        if TAKES[record.kind] & {"rows", "rejects"}:
            # Open ones first: a rebuild that is none of them sees the record, or its outcome is among those read now.
            opened = set(self.state.ledger.open_ids())
            outcomes = self._outcomes(record)
            generations = {each: outcome.generation for each, outcome in outcomes.items()}
            may_go, waiting = left_under(record, generations, opened)
        keys = [ManifestKey(record.date, each) for each in may_go]
        for part in ("rejects", "archive", "redriven", "rows"):  # readers miss rows last
            if part in TAKES[record.kind]:
                self.state.store.delete(list(_PLACES[part](self.state, keys, outcomes)))
        return waiting

    def _outcomes(self, record: Expired) -> Outcomes:
        """The outcomes of the manifests of a record, by id; none for those whose outcome cannot be read."""

        def read(manifest_id: str) -> Commit | DeadLetter | None:
            try:
                return self.state.ledger.outcome(ManifestKey(record.date, manifest_id))
            except (ObjectNotFound, RecordUnreadable):  # `verify` says what is wrong with it
                return None

        found = zip(record.manifests, map_ordered(read, record.manifests), strict=True)
        return {manifest_id: outcome for manifest_id, outcome in found if outcome is not None}


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
    def listed(key: ManifestKey) -> list[str]:
        return [info.uri for info in state.store.list(f"{state.layout.redriven_folder}{key.id}/")]

    redriven = (key for key in keys if not outcomes or _took_lines(state, outcomes[key.id]))
    for uris in map_ordered(listed, redriven):
        yield from uris


def _took_lines(state: State, outcome: Commit | DeadLetter) -> bool:
    """Whether a manifest compacted all lines that were redriven as it; quarantined ones can be redriven again."""
    if not isinstance(outcome, Commit) or not outcome.rejects_of:
        return False
    place = state.layout.redriven_folder
    # guard: redriven lines that were quarantined stay
    return not any(is_left(file, place, outcome.manifest_id) for file in outcome.files)


_PLACES: dict[str, Callable[[State, list[ManifestKey], Outcomes], Iterator[str]]] = {
    "rows": _rows,
    "rejects": _rejects,
    "archive": _archived,
    "redriven": _redriven,
}
