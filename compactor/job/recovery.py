"""Prepares the open work of earlier runs: records which attempts ended with their run, and deletes orphans."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from compactor.core.documents.records import Accepted, AttemptFailure
from compactor.core.errors import StuckError, TryAgainError
from compactor.core.map_ordered import map_ordered
from compactor.core.rules.attempts import AttemptState
from compactor.ledger.heartbeat import Runs
from compactor.ledger.ledger import LedgerState
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event
from compactor.upkeep.cleaner import Cleaner


@dataclass(frozen=True, slots=True)
class Opened:
    """An open manifest, with its records.

    Attributes:
        accepted: Its manifest; None if the records are unreadable now. Work on the manifest then reports why.
        found: Its attempts or its outcome; None if the records are unreadable now.
        has_died: Whether the death of a run that worked on it has just been recorded.
    """

    manifest_id: str
    accepted: Accepted | None = None
    found: LedgerState | None = None
    has_died: bool = False

    @property
    def source_uri(self) -> str:
        """The object that delivered it; if the records were unreadable, a name made from its id."""
        return self.manifest_id + ".json" if self.accepted is None else self.accepted.source_uri

    @property
    def has_deaths(self) -> bool:
        """Whether runs died while it was in flight."""
        return self.has_died or (self.found is not None and self.found.attempts.deaths > 0)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Finds the open work of earlier runs."""

    state: State
    runs: Runs
    cleaner: Cleaner

    def find(self) -> list[Opened]:
        """Record the deaths of runs, and return all open manifests.

        The cost depends only on the number of open manifests, however many are done.
        """
        opened = list(map_ordered(self._opened, self.state.ledger.open_ids()))
        by_run: dict[str, list[tuple[Accepted, AttemptState]]] = defaultdict(list)
        for each in opened:
            for state in each.found.attempts.unfolded if each.found else ():
                if each.accepted is not None and state.is_death:
                    by_run[state.attempt.run_id].append((each.accepted, state))
        unended = {run_id for run_id, lost in by_run.items() if any(state.failure is None for _, state in lost)}
        living = self.runs.living_among(unended) | {self.state.ledger.run_id} if unended else frozenset()
        dead = unended - living
        stopping = self.runs.stopping_among(dead)
        ended = set[str]()
        for run_id in dead:
            ended.update(self._record_death(run_id, by_run[run_id], was_stopping=run_id in stopping))
        again = {each.manifest_id: each for each in map_ordered(self._opened, sorted(ended))}
        return [
            replace(again[each.manifest_id], has_died=True) if each.manifest_id in again else each for each in opened
        ]

    def _opened(self, manifest_id: str) -> Opened:
        """Read an open manifest's records. If that fails, a later sweep may find its deaths."""
        with suppress(StuckError, TryAgainError):
            accepted = self.state.ledger.accepted(manifest_id)
            if accepted is not None:
                return Opened(manifest_id, accepted, self.state.ledger.state(accepted.key))
        return Opened(manifest_id)

    def _record_death(
        self, run_id: str, lost: list[tuple[Accepted, AttemptState]], *, was_stopping: bool
    ) -> Iterator[str]:
        """Record a run's death for each manifest in flight that has no record of it; yield their ids."""
        alone = [accepted.manifest_id for accepted, state in lost if state.attempt.alone and len(lost) == 1]
        blamed = "" if was_stopping else "".join(alone)
        log_event("run.died", dead_run_id=run_id, in_flight=len(lost), blamed=blamed)
        how = "was asked to end, and died" if was_stopping else "died"
        for accepted, state in lost:
            if state.failure is None:
                failure = AttemptFailure(
                    manifest_id=accepted.manifest_id,
                    number=state.attempt.number,
                    passing=True,
                    undecided=accepted.manifest_id == blamed,
                    died=True,
                    error=f"run {run_id} {how} with {len(lost)} manifests in flight",
                    failed_at=self.state.clock.now(),
                )
                self.state.ledger.fail(accepted.key, failure)
                yield accepted.manifest_id

    def sweep(self) -> None:
        """Delete old staging of manifests that are not open, and old checkpoints of dead runs."""
        report = self.cleaner.sweep()
        if report.removed:
            log_event("orphans.swept", removed=dict(report.removed))
        if report.failed is not None:
            log_event("retention.failed", error=report.failed)
