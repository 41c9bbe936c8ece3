"""Cleans up once a day beside the work of a run, a little at a time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from compactor.core.errors import CompactorError, ObjectNotFound
from compactor.core.layout import Layout
from compactor.core.ports import Clock, ObjectStore
from compactor.core.records import LastCleaning
from compactor.job.retention.cleaner import Cleaner, CleaningReport
from compactor.telemetry.logs import log_event

EVERY_SECONDS = 24 * 3600.0
LOOK_SECONDS = 300.0
"""How often to look whether a day has passed; also the time that a run works before it looks first."""

AGAIN_SECONDS = 3600.0
"""How long to wait after a clean-up that failed."""


class DailyRetention:
    """The clean-up of a run that goes on and on.

    A small object remembers when the last one ended, so a restart neither brings it forward nor puts it off.

    Args:
        cleaner: Does it.
        store: Where that object is.
        layout: Its place.
        clock: Time.
        archive_days: Age from which archived manifests and redriven inputs may go.
    """

    def __init__(
        self, cleaner: Cleaner, store: ObjectStore, layout: Layout, clock: Clock, *, archive_days: float
    ) -> None:
        self._cleaner = cleaner
        self._store = store
        self._layout = layout
        self._clock = clock
        self._archive_days = archive_days
        self._next_look = clock.now() + timedelta(seconds=LOOK_SECONDS)
        self._steps: Iterator[None] | None = None
        self._report = CleaningReport()

    def step(self) -> None:
        """Clean up a little if it is time. Call it again and again; never raises."""
        now = self._clock.now()
        try:
            if self._steps is not None:
                self._go_on(self._steps, now)
            elif now >= self._next_look:
                self._next_look = now + timedelta(seconds=LOOK_SECONDS)
                if self._is_due(now):
                    self._report = CleaningReport()
                    self._steps = self._cleaner.clean(self._report, archive_days=self._archive_days)
        except CompactorError as exc:  # the next one finds what this one leaves
            self._steps = None
            self._next_look = now + timedelta(seconds=AGAIN_SECONDS)
            log_event("retention.failed", error=exc)

    def _go_on(self, steps: Iterator[None], now: datetime) -> None:
        for _ in steps:
            return
        self._steps = None
        self._remember(now)
        report = self._report
        log_event(
            "retention.finished",
            removed=dict(report.removed),
            removed_bytes=report.removed_bytes,
            kept=dict(report.kept),
        )

    def _is_due(self, now: datetime) -> bool:
        try:
            last = LastCleaning.model_validate_json(self._store.read(self._layout.last_cleaning))
        except (ObjectNotFound, ValueError):  # none yet, or none that can be read: the day begins now
            self._remember(now)
            return False
        return (now - last.finished_at).total_seconds() >= EVERY_SECONDS

    def _remember(self, now: datetime) -> None:
        self._store.put(self._layout.last_cleaning, LastCleaning(finished_at=now).model_dump_json().encode())
