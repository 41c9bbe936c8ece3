"""Describes progress, speed and remaining time in words."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from compactor.core.text.formatting import count, rate, shown_seconds, size
from compactor.telemetry.meter import Meter

LEAST_SECONDS = 0.1
"""The least time between two texts."""


@contextmanager
def paced(
    meter: Meter,
    what: str,
    show: Callable[[str], None],
    *,
    least_seconds: float = LEAST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Show a meter's progress while the context is open; the end is always shown, unless texts are rare."""
    began = shown_at = clock()
    number = meter.number

    def on_change() -> None:
        nonlocal began, shown_at, number
        now, is_over = clock(), meter.done == meter.total and least_seconds == LEAST_SECONDS
        if meter.number != number:
            number, began = meter.number, now
        elif is_over or now - shown_at >= least_seconds:
            shown_at = now
            show(f"{what}{_words(meter, now - began)}")

    meter.on_change = on_change
    try:
        yield
    finally:
        meter.on_change = lambda: None


def _words(meter: Meter, seconds: float) -> str:
    unit, done, total = meter.unit, meter.done, meter.total
    if unit == "byte":
        shown, of, pace = size(done), size(total or 0), rate(done, seconds)
    else:
        shown, of = f"{done:,}", count(total or 0, unit)
        pace = f"{done / max(seconds, LEAST_SECONDS):,.0f}/s" if done >= seconds else f"{60 * done / seconds:,.1f}/min"
    if not total:
        return f": {shown if unit == 'byte' else count(done, unit)}, {pace}"
    left = shown_seconds(max(0, total - done) * seconds / max(done, 1)) + " left"
    reached = f", at {meter.reached}" if meter.reached else ""
    return f" {100 * min(done, total) // total} %: {shown} of {of}, {pace}, {left}{reached}"
