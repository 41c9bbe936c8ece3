"""Judges the health of a period: in order, with warnings, or in need of an operator."""

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.core.formatting import by_name, count, duration, percent
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.report.figures import Figures, Health

MIN_HIT_RATE = 0.9
"""Share of output files that should be near the target, as the catalogue of metrics advises."""

MAX_REJECT_RATE = 0.01
"""Share of lines, blank ones aside, that may be rejected. Production alarms use the same number."""

HEADLINES: dict[Health, str] = {
    "nothing": "No work in this period",
    "in_order": "Everything is in order",
    "look": "Completed, with warnings",
    "act": "Action needed",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One finding with its next action."""

    health: Health
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The health of a period: the worst health of its points, and the points, worst first."""

    health: Health
    points: tuple[Point, ...]

    @property
    def headline(self) -> str:
        return HEADLINES[self.health]


def judge(figures: Figures, sla_seconds: float) -> Verdict:
    """Judge a period. A file may take `sla_seconds` to become visible, a manifest half of that."""
    points = (*_to_act(figures), *_to_look(figures, sla_seconds))
    if points:
        return Verdict(points[0].health, points)
    is_idle = not figures.totals.manifests and not figures.totals.dead_letters
    return Verdict("nothing" if is_idle else "in_order", ())


def _to_act(figures: Figures) -> Iterator[Point]:
    waiting = sum(letter.is_redriven is not True for letter in figures.dead_letters)
    if waiting:
        yield Point(
            "act",
            f"{count(waiting, 'dead letter')} {'has' if waiting == 1 else 'have'} not been redriven. Fix the cause, "
            "then run `compactor redrive manifests`.",
        )
    if older := figures.older_dead_letters:
        yield _unchecked(count(older, "older dead letter"), older)
    if any(file.is_redriven is not True for file in figures.quarantined_files):
        yield Point(
            "act",
            f"Not all quarantined files have been redriven ({by_name(figures.files_for_operator)}). Find the cause, "
            "then run `compactor redrive files`.",
        )
    if older := figures.older_quarantined_files:
        yield _unchecked(count(older, "older quarantined file"), older)
    if unreadable := figures.unreadable_records:
        yield Point(
            "act",
            f"{count(unreadable, 'record')} could not be read and {'is' if unreadable == 1 else 'are'} not part of "
            "this report. Run `compactor verify` to see what is damaged.",
        )


def _unchecked(things: str, number: int) -> Point:
    verb = "was" if number == 1 else "were"
    return Point("act", f"{things} {verb} not checked for a redrive. Report on shorter periods, one after the other.")


def _to_look(figures: Figures, sla_seconds: float) -> Iterator[Point]:
    totals, sizes = figures.totals, figures.sizes
    if totals.arrivals and totals.arrivals.p99_seconds > sla_seconds:
        yield Point(
            "look",
            f"1 % of the files took {duration(totals.arrivals.p99_seconds)} or longer to become visible; the SLA is "
            f"{duration(sla_seconds)}. Redriven files count with their full age.",
        )
    if totals.durations and totals.durations.p99_seconds > sla_seconds / 2:
        yield Point(
            "look",
            f"1 % of the manifests took {duration(totals.durations.p99_seconds)} or longer; half the SLA is "
            f"{duration(sla_seconds / 2)}. Add workers or make manifests smaller.",
        )
    read_lines = totals.lines - totals.blank_lines
    if totals.rejected_lines > MAX_REJECT_RATE * read_lines:
        yield Point(
            "look",
            f"{percent(totals.rejected_lines, read_lines)} of the lines were rejected; more than "
            f"{100 * MAX_REJECT_RATE:g} % is unusual. Tell the producer. Once the lines can be read, run "
            "`compactor redrive rejects`.",
        )
    if sizes.counted and sizes.hits < MIN_HIT_RATE * sizes.counted:
        yield Point(
            "look",
            f"{percent(sizes.hits, sizes.counted)} of the output files are within {100 * SIZE_TOLERANCE:g} % of the "
            f"target; expect {100 * MIN_HIT_RATE:g} % unless the data changes quickly.",
        )
    if totals.clocks_off:
        yield Point(
            "look",
            f"The records of {count(totals.clocks_off, 'manifest')} are dated more than five minutes off the store's "
            "time, which this report uses instead. Either a clock was wrong or the records were copied.",
        )
