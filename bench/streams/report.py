"""Reports a run: what the flood of one stream costs each of the others, and whether all totals add up."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import nan
from typing import Any

from bench.streams.run import CALM, FLOOD, Result, Totals
from bench.streams.traffic import FLOODING, STREAMS
from compactor.cli.ui.output import Field
from compactor.core.distributions import Distribution, distribution_of

MOST_TIMES_SLOWER = 1.5
"""A flood in one stream may make the p99 of another one so many times as long."""

OTHERS = tuple(name for name in STREAMS if name != FLOODING)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a flood costs one stream.

    Attributes:
        stream: Its name.
        manifests: How many it had in each phase.
        calm: Seconds from arrival to visible without the flood.
        flood: The same beside the flood.
    """

    stream: str
    manifests: int
    calm: Distribution
    flood: Distribution

    @property
    def ratio(self) -> float:
        """How many times as long its p99 is beside the flood."""
        return _percentile(self.flood, 99) / _percentile(self.calm, 99)


def costs(result: Result) -> list[Cost]:
    """What the flood cost each of the other streams."""
    return [
        Cost(name, seconds[CALM].total, seconds[CALM], seconds[FLOOD])
        for name in OTHERS
        for seconds in [{phase: _seconds(result, {name}, phase) for phase in (CALM, FLOOD)}]
    ]


def together(result: Result) -> Cost:
    """What the flood cost all other streams, as if they were one."""
    calm, flood = (_seconds(result, set(OTHERS), phase) for phase in (CALM, FLOOD))
    return Cost("together", calm.total, calm, flood)


def _seconds(result: Result, streams: set[str], phase: str) -> Distribution:
    return distribution_of(
        seconds for each, seconds in result.seconds.items() if each.stream in streams and each.phase == phase
    )


def produced(result: Result) -> dict[str, Totals]:
    """The totals that the deliveries to each stream have to come to: one line of each is no JSON."""
    of_streams = {name: [each.lines for each in result.deliveries if each.stream == name] for name in STREAMS}
    return {name: Totals(len(lines), sum(lines) - len(lines), len(lines)) for name, lines in of_streams.items()}


def faults(result: Result) -> Iterator[str]:
    """What does not add up, in words."""
    missing = [each for each in result.deliveries if each not in result.seconds]
    if missing:
        yield f"{len(missing)} of {len(result.deliveries)} manifests are not done, such as {missing[0].key.id}"
    if result.discrepancies:
        yield f"verify found {result.discrepancies} discrepancies"
    wanted = produced(result)
    sources = {"verify": result.verified, "report": result.reported, "the metrics": result.measured}
    for source, found in sources.items():
        for name in STREAMS:
            if found.get(name) != wanted[name]:
                yield f"{name}: {source} found {found.get(name)}, expected {wanted[name]}"


def slow(result: Result) -> Iterator[str]:
    """Which streams the flood slowed down by more than is promised, in words."""
    for cost in costs(result):
        if cost.ratio > MOST_TIMES_SLOWER:
            yield f"{cost.stream}: p99 {cost.ratio:.2f} times as long, expected {MOST_TIMES_SLOWER} times at most"


def figures(result: Result) -> dict[str, Any]:
    """All figures, for programs."""
    return {
        "streams": {
            each.stream: {
                "manifests": each.manifests,
                **{f"calm_p{at}_seconds": _percentile(each.calm, at) for at in (50, 99)},
                **{f"flood_p{at}_seconds": _percentile(each.flood, at) for at in (50, 99)},
                "ratio": each.ratio,
            }
            for each in costs(result)
        },
        "cores": dict(result.cores),
        "drain_seconds": result.drain_seconds,
        "totals": {name: asdict(each) for name, each in produced(result).items()},
        "faults": [*faults(result), *slow(result)],
    }


def fields(result: Result) -> Iterator[Field]:
    """All figures, for people: names and values."""
    yield (
        "arrival to visible",
        ["seconds, without and beside the flood", *map(_row, (*costs(result), together(result)))],
    )
    flood = _seconds(result, {FLOODING}, FLOOD)
    yield (
        "the flood",
        f"{flood.total:,} manifests, p50 {_percentile(flood, 50):.1f} s, drained in {result.drain_seconds:.0f} s",
    )
    yield "cores in use", ", ".join(f"{phase} {cores:.2f}" for phase, cores in result.cores.items())
    yield "totals", _sum(produced(result))
    wrong = [*faults(result), *slow(result)]
    yield "held", ["no", *wrong[:10]] if wrong else "yes"


def _percentile(seconds: Distribution, percent: float) -> float:
    return seconds.percentile(percent) if seconds.total else nan  # the manifests that are missing are a fault


def _row(cost: Cost) -> str:
    calm, flood = (f"{_percentile(each, 50):5.2f} {_percentile(each, 99):6.2f}" for each in (cost.calm, cost.flood))
    return f"{cost.stream:8} {cost.manifests:5}   p50, p99 {calm}   beside {flood}   p99 x {cost.ratio:.2f}"


def _sum(totals: Mapping[str, Totals]) -> str:
    manifests, rows, rejected = (
        sum(getattr(each, name) for each in totals.values()) for name in ("manifests", "rows", "rejected_lines")
    )
    return (
        f"{manifests:,} manifests, {rows:,} rows + {rejected:,} rejects: those produced, by verify, report and metrics"
    )
