"""Judges the health of a period: in order, with warnings, or in need of an operator."""

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.control.health import Condition, Finding, Severity, finding
from compactor.core.formatting import by_name, count, duration, percent
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.report.figures import Figures

MIN_HIT_RATE = 0.9
"""Share of output files that should be near the target, as the catalogue of metrics advises."""

MAX_REJECT_RATE = 0.01
"""Share of lines, blank ones aside, that may be rejected. Production alarms use the same number."""

HEADLINES: dict[Severity, str] = {
    "nothing": "No work in this period",
    "in_order": "Everything is in order",
    "look": "Completed, with warnings",
    "act": "Action needed",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The health of a period: the worst severity of its findings, and the findings, worst first."""

    severity: Severity  # verdict, as one word: the worst of the reasons
    points: tuple[Finding, ...]

    @property
    def headline(self) -> str:
        """Verdict, as a sentence."""
        return HEADLINES[self.severity]


def judge(figures: Figures, sla_seconds: float) -> Verdict:
    """Judge a period. A file may take `sla_seconds` to become visible, a manifest half of that."""
    points = (*_to_act(figures), *_to_look(figures, sla_seconds))
    if points:
        return Verdict(points[0].severity, points)
    is_idle = not figures.totals.manifests and not figures.totals.dead_letters
    return Verdict("nothing" if is_idle else "in_order", ())


def _to_act(figures: Figures) -> Iterator[Finding]:
    files = figures.quarantined_files
    if waiting := sum(letter.redriven is not True for letter in figures.dead_letters.latest):
        have = f"{count(waiting, 'dead letter')} {'has' if waiting == 1 else 'have'} not been redriven"
        move = "Fix the cause, then run `compactor redrive manifests`"
        yield finding(Condition.MANIFESTS_DEAD_LETTERED, have, move)
    if older := figures.dead_letters.older:
        yield _unchecked(Condition.MANIFESTS_DEAD_LETTERED, count(older, "older dead letter"), older)
    if any(file.redriven is not True for file in files.latest):
        have = f"Not all quarantined files have been redriven ({by_name(files.for_operator)})"
        yield finding(Condition.FILES_QUARANTINED, have, "Find the cause, then run `compactor redrive files`")
    if older := files.older:
        yield _unchecked(Condition.FILES_QUARANTINED, count(older, "older quarantined file"), older)
    if unreadable := figures.unreadable.records:
        are = f"{'is' if unreadable == 1 else 'are'} not part of this report"
        reason = f"{count(unreadable, 'record')} could not be read and {are}"
        yield finding(Condition.RECORDS_UNREADABLE, reason, "Run `compactor verify` to see what is damaged")


def _unchecked(condition: Condition, things: str, number: int) -> Finding:
    reason = f"{things} {'was' if number == 1 else 'were'} not checked for a redrive"
    return finding(condition, reason, "Report on shorter periods, one after the other")


def _to_look(figures: Figures, sla_seconds: float) -> Iterator[Finding]:
    totals, sizes = figures.totals, figures.sizes
    if totals.latency and totals.latency.p99_seconds > sla_seconds:
        took = f"1 % of the files took {duration(totals.latency.p99_seconds)} or longer to become visible"
        limit = f"the SLA is {duration(sla_seconds)}. Redriven files count with their full age"
        yield finding(Condition.LATE_FILES, f"{took}; {limit}")
    if totals.durations and totals.durations.p99_seconds > sla_seconds / 2:
        took = f"1 % of the manifests took {duration(totals.durations.p99_seconds)} or longer"
        reason = f"{took}; half the SLA is {duration(sla_seconds / 2)}"
        yield finding(Condition.SLOW_MANIFESTS, reason, "Add workers or make manifests smaller")
    read_lines = totals.lines - totals.blank_lines
    if totals.rejected_lines > MAX_REJECT_RATE * read_lines:
        share = f"{percent(totals.rejected_lines, read_lines)} of the lines were rejected"
        move = "Tell the producer: `compactor rejects` shows what is wrong with each line"
        yield finding(Condition.REJECTS_RATE, f"{share}; more than {100 * MAX_REJECT_RATE:g} % is unusual", move)
    if sizes.counted and sizes.hits < MIN_HIT_RATE * sizes.counted:
        share = f"{percent(sizes.hits, sizes.counted)} of the output files are within {100 * SIZE_TOLERANCE:g} %"
        expected = f"expect {100 * MIN_HIT_RATE:g} % unless the data changes quickly"
        yield finding(Condition.OFF_TARGET_SIZES, f"{share} of the target; {expected}")
    if totals.clocks_off:
        off = f"The records of {count(totals.clocks_off, 'manifest')} are dated more than five minutes off the store's"
        why = "Either a clock was wrong or the records were copied"
        yield finding(Condition.CLOCKS_OFF, f"{off} time, which this report uses instead. {why}")
