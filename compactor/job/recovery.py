"""Prepares what earlier runs left open: records which attempts ended with their run, and deletes orphans."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from compactor.core.attempts import Attempts, to_blame
from compactor.core.errors import CompactorError, StuckError, TryAgainError
from compactor.core.map_ordered import map_ordered
from compactor.core.records import Accepted, Attempt, AttemptFailure
from compactor.job.retention.cleaner import Cleaner
from compactor.ledger.heartbeat import Runs
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event

COMMON_DEATHS = 3
"""If so many open manifests were in flight at deaths, something else may kill the runs. Commits of others tell."""


@dataclass(frozen=True, slots=True)
class _Casualty:
    """A manifest that was in flight when its run ended, or that may still be.

    Attributes:
        earlier_deaths: How many earlier attempts at it ended with their run.
        recorded_at: When the end of the attempt was put on record; None if it was not.
    """

    accepted: Accepted
    attempt: Attempt
    earlier_deaths: int
    recorded_at: datetime | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """Finds what earlier runs left open."""

    state: State
    runs: Runs
    cleaner: Cleaner

    def open_ids(self) -> list[str]:
        """Record the deaths of runs, and return the ids of all open manifests.

        The cost depends on the number of open manifests only, however many are done.
        """
        open_ids = list(self.state.ledger.open_ids())
        by_run: dict[str, list[_Casualty]] = defaultdict(list)
        for found in map_ordered(self._casualties, open_ids):
            for casualty in found:
                by_run[casualty.attempt.run_id].append(casualty)
        unended = {run_id for run_id, each in by_run.items() if any(casualty.recorded_at is None for casualty in each)}
        living = self.runs.living_among(unended) | {self.state.ledger.run_id} if unended else frozenset()
        dead = {run_id: lost for run_id, lost in by_run.items() if run_id not in living}
        new = unended - living
        are_common = bool(new) and self._are_common([each for lost in dead.values() for each in lost])
        for run_id in new:
            self._record_death(run_id, dead[run_id], are_common=are_common)
        return open_ids

    def _are_common(self, lost: list[_Casualty]) -> bool:
        """Whether many manifests were in flight at deaths, and none at all got through since the last one on record."""
        if len({each.attempt.manifest_id for each in lost}) < COMMON_DEATHS:
            return False
        last = max((each.recorded_at for each in lost if each.recorded_at), default=None)
        return last is None or all(commit.decided_at <= last for commit in self.state.ledger.recent())

    def _casualties(self, manifest_id: str) -> list[_Casualty]:
        """The attempts at an open manifest that have no recorded end, or ended with their run.

        None if its records cannot be read now: a later sweep may find them, and the work on it tells of it.
        """
        with suppress(StuckError, TryAgainError):
            accepted = self.state.ledger.accepted(manifest_id)
            if accepted is not None:
                return _casualties_of(accepted, self.state.ledger.state(accepted.key).attempts)
        return []

    def _record_death(self, run_id: str, lost: list[_Casualty], *, are_common: bool) -> None:
        """Record the death of a run for each manifest that was in flight and has no record of it yet.

        Those that have one count as well, or an earlier attempt at this that was cut short would shift the blame.
        """
        blamed = to_blame({each.accepted.manifest_id: each.earlier_deaths for each in lost})
        log_event("run.died", dead_run_id=run_id, in_flight=len(lost), blamed=blamed or "")
        for each in lost:
            if each.recorded_at is not None:
                continue
            is_blamed = each.accepted.manifest_id == blamed
            failure = AttemptFailure(
                manifest_id=each.accepted.manifest_id,
                number=each.attempt.number,
                passing=not is_blamed or are_common,
                undecided=is_blamed and are_common,
                died=True,
                error=f"run {run_id} died with {len(lost)} manifests in flight",
                failed_at=self.state.clock.now(),
            )
            self.state.ledger.fail(each.accepted.key, failure)

    def sweep(self) -> None:
        """Delete old staging of manifests that are not open, and old checkpoints of dead runs."""
        report = self.cleaner.sweep()
        if report.removed:
            log_event("orphans.swept", removed=dict(report.removed))

    def drop_checkpoints(self) -> None:
        """Delete the checkpoints of this run, which no other run uses; a later sweep deletes what stays."""
        layout = self.state.layout
        mine = layout.checkpoint(self.state.ledger.run_id)
        try:
            listed = self.state.store.list(layout.checkpoints_folder)
            self.state.store.delete([info.uri for info in listed if info.uri.startswith(mine)])
        except CompactorError as exc:
            log_event("checkpoints.kept", error=exc)


def _casualties_of(accepted: Accepted, attempts: Attempts) -> list[_Casualty]:
    deaths = attempts.folded.deaths if attempts.folded else 0
    found: list[_Casualty] = []
    for state in attempts.unfolded:
        if state.failure is None or state.failure.died:
            recorded_at = state.failure.failed_at if state.failure else None
            found.append(_Casualty(accepted, state.attempt, deaths, recorded_at))
        deaths += state.failure is not None and state.failure.died
    return found
