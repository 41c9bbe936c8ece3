"""Says in words how far work has come, how fast it is and how long it will take."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from compactor.core.meter import Meter
from compactor.core.text.formatting import count, rate, shown_seconds, size

LEAST_SECONDS = 0.1
"""The least time between two texts."""


class Pace:
    """Shows how far the work of a meter has come.

    Args:
        meter: Counts it.
        what: The work, in a word or two.
        show: Shows a text.
        least_seconds: The least time before each text.
        shows_end: Whether to show all that was done in any case.
        clock: The time in seconds.
    """

    def __init__(
        self,
        meter: Meter,
        what: str,
        show: Callable[[str], None],
        least_seconds: float = LEAST_SECONDS,
        *,
        shows_end: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._meter, self._what, self._show = meter, what, show
        self._least_seconds, self._shows_end, self._clock = least_seconds, shows_end, clock
        self._began = self._shown_at = clock()
        self._number = meter.number

    def __call__(self) -> None:
        """Show what is done, unless a text was shown just now."""
        now, meter = self._clock(), self._meter
        if meter.number != self._number:
            self._number, self._began = meter.number, now
        elif now - self._shown_at >= self._least_seconds or (meter.done == meter.total and self._shows_end):
            self._shown_at = now
            self._show(self._text(now - self._began))

    def _text(self, seconds: float) -> str:
        unit, total, done = self._meter.unit, self._meter.total, self._meter.done
        is_bytes = unit == "byte"
        pace = rate(done, seconds) if is_bytes else _each(done, seconds)
        amount = size(done) if is_bytes else count(done, unit)
        if not total:
            return f"{self._what}: {amount}, {pace}"
        whole = size(total) if is_bytes else count(total, unit)
        share, left = 100 * min(done, total) // total, shown_seconds(max(0, total - done) * seconds / max(done, 1))
        return f"{self._what} {share} %: {amount if is_bytes else f'{done:,}'} of {whole}, {pace}, {left} left"


def _each(done: int, seconds: float) -> str:
    """How many a second, or a minute if they are slow."""
    if done < seconds:
        return f"{60 * done / seconds:,.1f}/min"
    return f"{done / max(seconds, LEAST_SECONDS):,.0f}/s"


@contextmanager
def shown(meter: Meter, pace: Pace) -> Iterator[None]:
    """Show the work of a meter while the context is open."""
    meter.on_change = pace
    try:
        yield
    finally:
        meter.on_change = lambda: None
