"""Lands one log again and again, for as long as a job runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from compactor.core.errors import CompactorError
from compactor.core.logs.names import LogName
from compactor.core.ports import Clock, MetricsSink
from compactor.core.rules.backoff import pause_seconds
from compactor.ledger.landing.notes import LandingNotes
from compactor.sources.landing.lander import Lander
from compactor.sources.landing.result import LandingResult, about_log
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event

LONGEST_PAUSE_SECONDS = 600.0
"""The longest pause after landings that failed; they begin at the time between two of them, and double."""

TICK_SECONDS = 60.0
"""How often the age of a log that cannot be landed is told, which an alarm watches."""

LOOK_SECONDS = 5.0
"""How often a shard of a job that runs once looks whether the first one has landed the log."""


@dataclass(slots=True, kw_only=True)
class LandingLoop:
    """Lands a log. A record waits for the next landing, so these are as far apart as records may wait for others.

    A log that fails is tried again after a pause, whatever the error: a person may have acted. If only some of its
    partitions fail, the pause does not grow: the others go on.

    Attributes:
        every_seconds: The time between two landings.
        max_manifests: The most manifests that one landing writes.
        new_lander: Makes the lander; what it raises is a failure of the log.
        leads: Whether this job lands; of several shards of a job, the first does, and others with `once` after it.
        notes: Where people see how far landing is.
        sleep: Waits for some seconds.
    """

    log: LogName
    every_seconds: float
    max_manifests: int
    new_lander: Callable[[], Lander]
    notes: LandingNotes
    metrics: MetricsSink
    clock: Clock
    leads: Callable[[], bool] = lambda: True
    sleep: Callable[[float], None] = time.sleep
    _lander: Lander | None = field(default=None, init=False)
    _next_at: datetime | None = field(default=None, init=False)
    _landed_to: datetime | None = field(default=None, init=False)  # no earlier record waits, as far as is known
    _failures: int = field(default=0, init=False)
    _error: Exception | None = field(default=None, init=False)
    _gaps: int = field(default=0, init=False)
    _told: list[str] = field(default_factory=list, init=False)

    def step(self, *, is_stopping: Callable[[], bool] = lambda: False) -> float:
        """Land the log if it is its turn; never raises. Returns the seconds until the next step."""
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
        """Land all that the log has now; never raises. Returns the log with the reason if it failed."""
        until = self.clock.now()  # of all landings: one that began later would find more, and so on
        self._let_lead(until, is_stopping)
        while not is_stopping() and not self._take(until):
            continue  # one landing writes only so many manifests
        return {} if self._error is None else {self.log: self._error}

    def _let_lead(self, until: datetime, is_stopping: Callable[[], bool]) -> None:
        """Wait while another shard of the job lands the log: together they would read it more slowly.

        It ends once that one has landed nearly all, or failed, or shows no sign of work. Then this shard lands, too: it
        takes what is left, whatever became of the other one.
        """
        enough = until - timedelta(seconds=LONGEST_PAUSE_SECONDS)
        first = noted = self.notes.noted(self.log)
        landings, quiet_seconds = self.notes.landings(self.log), 0.0
        while quiet_seconds < LONGEST_PAUSE_SECONDS and not (is_stopping() or self._leads()):
            landed_to = noted.landed_to if noted is not None else None
            has_failed = noted is not None and noted != first and bool(noted.failures)
            if has_failed or (landed_to is not None and landed_to >= enough):
                return
            self.sleep(LOOK_SECONDS)
            before, noted, landings = (noted, landings), self.notes.noted(self.log), self.notes.landings(self.log)
            quiet_seconds = quiet_seconds + LOOK_SECONDS if before == (noted, landings) else 0.0

    def _leads(self) -> bool:
        try:
            return self.leads()
        except CompactorError:  # nothing is known of other shards
            return True

    def _take(self, until: datetime | None = None) -> float:
        """Land the log; returns the pause until the next time, which is 0 if more waits to be landed.

        Args:
            until: See `Lander.land`.
        """
        if self._landed_to is None:
            noted = self.notes.noted(self.log)
            self._landed_to = (noted.landed_to if noted is not None else None) or self.clock.now()
        try:
            if self._lander is None:
                self._lander = self.new_lander()
            plan = self._lander.land(self.log, max_manifests=self.max_manifests, until=until)
        except Exception as exc:  # noqa: BLE001 - no error of a log may end its landing
            self.notes.failed(self.log, described(exc))
            return self._failed(exc, is_whole=True)
        self._tell(plan)
        if plan.troubles:
            may_go_on = plan.has_more and plan.lines > 0
            return self._failed(plan.troubles[0], is_whole=not (plan.lines or plan.has_read), may_go_on=may_go_on)
        self._failures, self._error = 0, None
        return 0.0 if plan.has_more else self.every_seconds

    def _failed(self, error: Exception, *, is_whole: bool, may_go_on: bool = False) -> float:
        self._failures, self._error = self._failures + 1, error
        longest = max(LONGEST_PAUSE_SECONDS, self.every_seconds) if is_whole else self.every_seconds
        pause = pause_seconds(self._failures, first_seconds=self.every_seconds, longest_seconds=longest, chance=1.0)
        pause = 0.0 if may_go_on else pause
        values = {"LandingsFailed": 1.0}
        self.metrics.emit(values)
        self.metrics.emit(values, about_log(self.log))
        if is_whole:
            self._emit_age()
        log_event("landing.failed", log=self.log.uri, failures=self._failures, pause_seconds=pause, error=error)
        return pause

    def _emit_age(self) -> None:
        """Tell for how long a record may have waited that came since the last landing, or that it left."""
        since = self._landed_to or self.clock.now()
        values = {"LandingAgeSeconds": max((self.clock.now() - since).total_seconds(), 0.0)}
        self.metrics.emit(values)
        self.metrics.emit(values, about_log(self.log))

    def _tell(self, plan: LandingResult) -> None:
        """Say what came of a landing: in the log what happened, in the notes what waits. It told of its gaps."""
        now, error = self.clock.now(), described(plan.troubles[0]) if plan.troubles else ""
        self._gaps += len(plan.gaps)
        if plan.totals.manifests:
            log_event(
                "landing.landed",
                log=self.log.uri,
                manifests=len(plan.totals.manifests),
                lines=plan.lines,
                strays=plan.strays,
            )
        if plan.former_ids != self._told:
            self._told = plan.former_ids
            log_event("landing.made_again", log=self.log.uri, former_ids=plan.former_ids)
        if plan.behind_seconds is None and error:  # nothing was read: what was known holds on
            self.notes.failed(self.log, error)
            return
        behind = plan.behind_seconds or 0.0
        self._landed_to = now - timedelta(seconds=behind)
        self.notes.landed(self.log, plan.log_id, behind, self._gaps, error)
