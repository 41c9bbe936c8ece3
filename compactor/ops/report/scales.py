"""Where the axes of a chart have their ticks, and what is written there. Decisions, no I/O."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from compactor.ops.report.period import Period

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SECONDS_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(number * _MINUTE for number in (1, 2, 5, 10, 15, 30)),
    *(number * _HOUR for number in (1, 2, 3, 6, 12)),
    *(number * _DAY for number in (1, 2, 7, 14, 30, 90, 365)),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Axis:
    """A vertical axis from 0 to its last tick.

    Attributes:
        unit: Of all labels; empty where each says its own.
    """

    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    unit: str

    @property
    def top(self) -> float:
        return self.ticks[-1]


def number_axis(highest: float, unit: str, *, divisor: float = 1.0, max_steps: int = 4) -> Axis:
    """An axis in steps of 1, 2 or 5 times a power of ten.

    Args:
        highest: What has to fit.
        unit: What labels are in.
        divisor: How many of the values are one unit.
        max_steps: Steps at most.
    """
    highest = highest or divisor  # nothing to show still needs an axis
    least = highest / divisor / max_steps
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    return _axis(highest / divisor, step, unit, divisor)


def count_axis(highest: int, unit: str, *, max_steps: int = 4) -> Axis:
    """The same for things that are not divided."""
    axis = number_axis(max(1, highest), unit, max_steps=max_steps)
    return axis if axis.ticks[1] >= 1 else _axis(max(1, highest), 1.0, unit, 1.0)


def _axis(highest: float, step: float, unit: str, divisor: float) -> Axis:
    steps = max(1, math.ceil(highest / step * (1 - 1e-9)))
    values = [number * step for number in range(steps + 1)]
    return Axis(tuple(value * divisor for value in values), tuple(f"{value:,.6g}" for value in values), unit)


def rate_axis(highest_bytes_per_second: float) -> Axis:
    """An axis of bytes over time, in the unit that fits."""
    for divisor, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if highest_bytes_per_second >= divisor:
            return number_axis(highest_bytes_per_second, unit, divisor=divisor)
    return number_axis(max(highest_bytes_per_second, 1), "bytes/s")


def seconds_axis(highest_seconds: float, *, max_steps: int = 4) -> Axis:
    """An axis of times, in steps that clocks have."""
    highest = highest_seconds or 1.0
    if highest < max_steps:
        return number_axis(highest, "s", max_steps=max_steps)
    step = next((each for each in _SECONDS_STEPS if each * max_steps >= highest), None)
    step = step or 365 * _DAY * math.ceil(highest / (365 * _DAY) / max_steps)
    ticks = [number * step for number in range(math.ceil(highest / step) + 1)]
    size, unit = next(
        (size, unit) for size, unit in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s")) if step >= size
    )
    # Steps of 90 s do not exist, so every tick is a whole number of its unit.
    return Axis(tuple(map(float, ticks)), tuple(f"{tick / size:,.6g}" for tick in ticks), unit)


def time_ticks(period: Period, max_ticks: int) -> Sequence[tuple[datetime, str]]:
    """Round times of a period, each with its label; a day is named where it begins, and at the first tick.

    Args:
        period: What the axis covers.
        max_ticks: Labels that there is room for.
    """
    step = next((each for each in _SECONDS_STEPS if period.seconds / each <= max_ticks), None)
    step = step or _DAY * math.ceil(period.seconds / _DAY / max_ticks)
    ticks = list(_times(period, timedelta(seconds=step)))
    return [(tick, _label(tick, step, is_first=number == 0)) for number, tick in enumerate(ticks)]


def _times(period: Period, step: timedelta) -> Iterator[datetime]:
    tick = _EPOCH + -((_EPOCH - period.since) // step) * step
    while tick < period.since:
        tick += step
    while tick < period.until:
        yield tick
        tick += step


def _label(tick: datetime, step_seconds: int, *, is_first: bool) -> str:
    if step_seconds >= 90 * _DAY:
        return f"{tick:%b %Y}"
    day = f"{tick.day} {tick:%b}"
    if step_seconds >= _DAY or (tick.hour, tick.minute, tick.second) == (0, 0, 0):
        return day
    clock = f"{tick:%H:%M}" if step_seconds >= _MINUTE else f"{tick:%H:%M:%S}"
    return f"{clock}\n{day}" if is_first else clock
