"""Plans one stream again and again, for as long as a job runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from compactor.core.errors import CompactorError
from compactor.core.kinesis.places import KinesisStream
from compactor.core.ports import Clock, MetricsSink
from compactor.core.rules.backoff import pause_seconds
from compactor.ledger.kinesis.stream_notes import StreamNotes
from compactor.manifests.kinesis.planner import KinesisPlanner
from compactor.manifests.kinesis.stream_plan import StreamPlan, about_stream
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event

LONGEST_PAUSE_SECONDS = 600.0
"""The longest pause after plans that failed; they begin at the time between two plans, and double."""

TICK_SECONDS = 60.0
"""How often the age of a stream that cannot be planned is told, which an alarm watches."""

LOOK_SECONDS = 5.0
"""How often a shard of a job that runs once looks whether the first one has landed the stream."""


@dataclass(slots=True, kw_only=True)
class StreamLoop:
    """Plans a stream. A record waits for the next plan, so plans are as far apart as records may wait for others.

    A stream that fails is tried again after a pause, whatever the error: a person may have acted. If only some of its
    shards fail, the pause does not grow: the others go on.

    Attributes:
        plan_seconds: The time between two plans.
        max_manifests: The most manifests that one plan writes.
        new_planner: Makes the planner; what it raises is a failure of the stream.
        leads: Whether this job plans; of several shards of a job, the first does, and others with `once` after it.
        notes: Where people see how far planning is.
        sleep: Waits for some seconds.
    """

    stream: KinesisStream
    plan_seconds: float
    max_manifests: int
    new_planner: Callable[[], KinesisPlanner]
    notes: StreamNotes
    metrics: MetricsSink
    clock: Clock
    leads: Callable[[], bool] = lambda: True
    sleep: Callable[[float], None] = time.sleep
    _planner: KinesisPlanner | None = field(default=None, init=False)
    _next_at: datetime | None = field(default=None, init=False)
    _landed_to: datetime | None = field(default=None, init=False)  # no earlier record waits, as far as is known
    _failures: int = field(default=0, init=False)
    _error: Exception | None = field(default=None, init=False)
    _gaps: int = field(default=0, init=False)
    _told: list[str] = field(default_factory=list, init=False)

    def step(self, *, is_stopping: Callable[[], bool] = lambda: False) -> float:
        """Plan the stream if it is its turn; never raises. Returns the seconds until the next step."""
        now = self.clock.now()
        if is_stopping() or not self.leads():
            return TICK_SECONDS
        if self._next_at is None or now >= self._next_at:
            self._next_at = now + timedelta(seconds=self._take())
        elif self._error is not None:
            self._emit_age()
        left = (self._next_at - self.clock.now()).total_seconds()
        return max(min(left, TICK_SECONDS), 0.0)

    def plan_all(self, *, is_stopping: Callable[[], bool] = lambda: False) -> dict[Any, Exception]:
        """Plan all that the stream has now; never raises. Returns the stream with the reason if it failed."""
        until = self.clock.now()  # of all plans: one that began later would find more, and so on
        self._let_lead(until, is_stopping)
        while not is_stopping() and not self._take(until):
            continue  # a plan writes only so many manifests
        return {} if self._error is None else {self.stream: self._error}

    def _let_lead(self, until: datetime, is_stopping: Callable[[], bool]) -> None:
        """Wait while another shard of the job lands the stream: together they would read its shards more slowly.

        It ends once that one has landed nearly all, or failed, or shows no sign of work. Then this shard plans, too: it
        lands what is left, whatever became of the other one.
        """
        enough = until - timedelta(seconds=LONGEST_PAUSE_SECONDS)
        first = noted = self.notes.noted(self.stream)
        landings, quiet_seconds = self.notes.landings(self.stream), 0.0
        while quiet_seconds < LONGEST_PAUSE_SECONDS and not (is_stopping() or self._leads()):
            landed_to = noted.landed_to if noted is not None else None
            has_failed = noted is not None and noted != first and bool(noted.failures)
            if has_failed or (landed_to is not None and landed_to >= enough):
                return
            self.sleep(LOOK_SECONDS)
            before, noted, landings = (noted, landings), self.notes.noted(self.stream), self.notes.landings(self.stream)
            quiet_seconds = quiet_seconds + LOOK_SECONDS if before == (noted, landings) else 0.0

    def _leads(self) -> bool:
        try:
            return self.leads()
        except CompactorError:  # nothing is known of other shards
            return True

    def _take(self, until: datetime | None = None) -> float:
        """Plan the stream; returns the pause until the next plan, which is 0 if more waits to be landed.

        Args:
            until: See `KinesisPlanner.plan`.
        """
        if self._landed_to is None:
            noted = self.notes.noted(self.stream)
            self._landed_to = (noted.landed_to if noted is not None else None) or self.clock.now()
        try:
            if self._planner is None:
                self._planner = self.new_planner()
            plan = self._planner.plan(self.stream, max_manifests=self.max_manifests, until=until)
        except Exception as exc:  # noqa: BLE001 - no error of a stream may end its planning
            self.notes.failed(self.stream, described(exc))
            return self._failed(exc, is_whole=True)
        self._tell(plan)
        if plan.troubles:
            may_go_on = plan.has_more and plan.lines > 0
            return self._failed(plan.troubles[0], is_whole=not (plan.lines or plan.has_read), may_go_on=may_go_on)
        self._failures, self._error = 0, None
        return 0.0 if plan.has_more else self.plan_seconds

    def _failed(self, error: Exception, *, is_whole: bool, may_go_on: bool = False) -> float:
        self._failures, self._error = self._failures + 1, error
        longest = max(LONGEST_PAUSE_SECONDS, self.plan_seconds) if is_whole else self.plan_seconds
        pause = pause_seconds(self._failures, first_seconds=self.plan_seconds, longest_seconds=longest, chance=1.0)
        pause = 0.0 if may_go_on else pause
        values = {"KinesisPlansFailed": 1.0}
        self.metrics.emit(values)
        self.metrics.emit(values, about_stream(self.stream))
        if is_whole:
            self._emit_age()
        log_event(
            "kinesis.not_planned", stream=self.stream.uri, failures=self._failures, pause_seconds=pause, error=error
        )
        return pause

    def _emit_age(self) -> None:
        """Tell for how long a record may have waited that came since the last plan, or that it left."""
        since = self._landed_to or self.clock.now()
        values = {"IteratorAgeSeconds": max((self.clock.now() - since).total_seconds(), 0.0)}
        self.metrics.emit(values)
        self.metrics.emit(values, about_stream(self.stream))

    def _tell(self, plan: StreamPlan) -> None:
        """Say what came of a plan: in the log what happened, in the notes what waits. The plan told of its gaps."""
        now, error = self.clock.now(), described(plan.troubles[0]) if plan.troubles else ""
        self._gaps += len(plan.gaps)
        if plan.totals.manifests:
            log_event(
                "kinesis.planned",
                stream=self.stream.uri,
                manifests=len(plan.totals.manifests),
                lines=plan.lines,
                strays=plan.strays,
            )
        if plan.former_ids != self._told:
            self._told = plan.former_ids
            log_event("kinesis.made_again", stream=self.stream.uri, former_ids=plan.former_ids)
        if plan.behind_seconds is None and error:  # nothing was read: what was known holds on
            self.notes.failed(self.stream, error)
            return
        behind = plan.behind_seconds or 0.0
        self._landed_to = now - timedelta(seconds=behind)
        self.notes.planned(self.stream, plan.stream_id, behind, self._gaps, error)
