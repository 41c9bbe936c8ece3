"""Deletes what has expired once a day beside the work of a run, a little at a time."""

from collections.abc import Callable
from datetime import datetime, timedelta

from compactor.core.documents.records import LastCleaning
from compactor.core.errors import CompactorError
from compactor.core.rules.backoff import is_over
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event
from compactor.upkeep.beside import LastTime
from compactor.upkeep.cleaner import Cleaner, CleaningReport

EVERY_SECONDS = 24 * 3600.0
CHECK_SECONDS = 300.0
"""How often to check whether a day has passed; a run also works so long before its first check."""

RETRY_SECONDS = 3600.0
"""How long to wait after a failure."""

SLICE_SECONDS = 1.0
"""How long one step may take, and so keep the run from stopping."""


class DailyRetention:
    """Runs retention once a day during a run without end.

    A small object records when retention last finished, so a restart does not change the time of the next one, and
    since when it fails, for `status` to show.

    Args:
        state: Where that object is.
        cleaner: Deletes what has expired.
        archive_days: Age from which archived manifests and redriven inputs may go.
        rejects_days: Age from which rejects may go; 0 keeps them.
        then: Called after each clean-up, also after one that failed, but no more than once a day.
    """

    def __init__(
        self,
        state: State,
        cleaner: Cleaner,
        *,
        archive_days: float,
        rejects_days: float = 0.0,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        self._state = state
        self._last = LastTime(state, state.layout.last_cleaning, LastCleaning)
        self._cleaner = cleaner
        self._archive_days = archive_days
        self._rejects_days = rejects_days
        self._then = then
        self._next_check: datetime | None = None  # not now: the first heartbeat of the run may correct the clock
        self._followed_at: datetime | None = None
        self._unfinished: CleaningReport | None = None

    def step(self) -> None:
        """Clean for a short time if retention is due. Meant to be called repeatedly; never raises."""
        now = self._state.clock.now()
        if self._next_check is None:
            self._next_check = now + timedelta(seconds=CHECK_SECONDS)
        is_due = self._unfinished is not None
        try:
            if self._unfinished is not None:
                self._clean(self._unfinished, now)
            elif is_over(self._next_check, now, longest_seconds=RETRY_SECONDS):
                self._next_check = now + timedelta(seconds=CHECK_SECONDS)
                is_due = self._last.is_due(now, EVERY_SECONDS)
                if is_due:
                    self._clean(CleaningReport(), now)
        except CompactorError as exc:  # the next clean-up deletes what this one leaves
            self._unfinished = None
            self._next_check = now + timedelta(seconds=RETRY_SECONDS)
            log_event("retention.failed", error=exc)
            if is_due:
                self._last.failed(now, exc)
                self._follow(now)

    def _clean(self, unfinished: CleaningReport, now: datetime) -> None:
        deadline = now + timedelta(seconds=SLICE_SECONDS)
        report = self._cleaner.clean(
            deadline, archive_days=self._archive_days, rejects_days=self._rejects_days, resumed=unfinished
        )
        if report.position is not None:
            self._unfinished = report
            return
        self._unfinished = None
        self._last.finished(now)
        log_event(
            "retention.finished",
            removed=dict(report.removed),
            removed_bytes=report.removed_bytes,
            kept=dict(report.kept),
        )
        self._follow(now)

    def _follow(self, now: datetime) -> None:
        if self._followed_at is None or abs((now - self._followed_at).total_seconds()) >= EVERY_SECONDS:
            self._followed_at = now
            self._then()
