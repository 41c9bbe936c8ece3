"""Judges a period in words: was all well, is there something to look at, or something only a person can settle?"""

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.core.formatting import by_name, count, duration, percent
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.report.figures import Figures, Health

MIN_HIT_RATE = 0.9
"""Of the output files, those that should be right-sized; as the catalogue of metrics advises."""

MAX_REJECT_RATE = 0.01
"""Of the lines that are not blank, those that may be rejects; the alarm of a productive deployment is set to this."""

HEADLINES: dict[Health, str] = {
    "nothing": "Nothing was done in this period",
    "in_order": "All in order",
    "look": "Done, with something to look at",
    "act": "Somebody has to act",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that a reader should know, with the next move; `health` is how bad it is."""

    health: Health
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a period went.

    Attributes:
        health: That of the worst point.
        points: What it rests on, the worst first; none if all is in order.
    """

    health: Health
    points: tuple[Point, ...]

    @property
    def headline(self) -> str:
        return HEADLINES[self.health]


def judge(figures: Figures, sla_seconds: float) -> Verdict:
    """Judge a period.

    Args:
        figures: What was found.
        sla_seconds: How long a file may take to be visible; a manifest may take half of it.
    """
    points = (*_to_act(figures), *_to_look(figures, sla_seconds))
    if points:
        return Verdict(points[0].health, points)
    is_idle = not figures.totals.manifests and not figures.totals.dead_letters
    return Verdict("nothing" if is_idle else "in_order", ())


def _to_act(figures: Figures) -> Iterator[Point]:
    waiting = sum(letter.is_redriven is not True for letter in figures.dead_letters)
    if waiting:
        verb = "was" if waiting == 1 else "were"
        yield Point(
            "act",
            f"{count(waiting, 'dead letter')} {verb} not put back. Mend the cause, then `compactor redrive manifests`.",
        )
    if older := figures.older_dead_letters:
        yield _not_looked_at(count(older, "older dead letter"))
    if any(file.is_redriven is not True for file in figures.quarantined_files):
        yield Point(
            "act",
            f"Files were set aside whole and not all put back ({by_name(figures.files_for_operator)}). See why, then "
            "`compactor redrive files`.",
        )
    if older := figures.older_quarantined_files:
        yield _not_looked_at(f"{count(older, 'older file')} that {'was' if older == 1 else 'were'} set aside")
    if figures.unreadable_records:
        yield Point(
            "act",
            f"{count(figures.unreadable_records, 'record')} could not be read and is left out here. "
            "`compactor verify` says what is damaged.",
        )


def _not_looked_at(things: str) -> Point:
    return Point(
        "act", f"Whether {things} came back was not looked at. Report on a shorter period, one after the other."
    )


def _to_look(figures: Figures, sla_seconds: float) -> Iterator[Point]:
    totals, sizes = figures.totals, figures.sizes
    if totals.arrivals and totals.arrivals.p99_seconds > sla_seconds:
        yield Point(
            "look",
            f"One file in a hundred took {duration(totals.arrivals.p99_seconds)} or longer to be visible; the SLA "
            f"is {duration(sla_seconds)}. Old files that were put back count with their full age.",
        )
    if totals.durations and totals.durations.p99_seconds > sla_seconds / 2:
        yield Point(
            "look",
            f"One manifest in a hundred took {duration(totals.durations.p99_seconds)} or longer; half the SLA is "
            f"{duration(sla_seconds / 2)}. Add workers, or make manifests smaller.",
        )
    read_lines = totals.lines - totals.blank_lines
    if totals.rejected_lines > MAX_REJECT_RATE * read_lines:
        yield Point(
            "look",
            f"{percent(totals.rejected_lines, read_lines)} of the lines were rejected; more than "
            f"{100 * MAX_REJECT_RATE:g} % is unusual. Tell the producer; once they can be read, "
            "`compactor redrive rejects` puts them back.",
        )
    if sizes.counted and sizes.hits < MIN_HIT_RATE * sizes.counted:
        yield Point(
            "look",
            f"{percent(sizes.hits, sizes.counted)} of the output files are within {100 * SIZE_TOLERANCE:g} % of the "
            f"target; {100 * MIN_HIT_RATE:g} % is expected unless the data changes quickly.",
        )
    if totals.clocks_off:
        yield Point(
            "look",
            f"The records of {count(totals.clocks_off, 'manifest')} are dated more than five minutes off the "
            "store's time, which is used here instead: a clock was wrong, or the records were copied.",
        )
