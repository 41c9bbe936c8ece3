"""Judges the health of a period: in order, with warnings, or in need of an operator."""

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.control.diagnosis.alarms import (
    dead_letters,
    few_rows,
    housekeeping_fails,
    logs_behind,
    manifests_held_back,
    quarantined_files,
    table_behind,
)
from compactor.control.diagnosis.health import Condition, Finding, Severity, finding
from compactor.core.results import as_document
from compactor.core.text.formatting import count, duration, percent
from compactor.core.text.safe_text import Suggestions
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.report.figures import Figures

MIN_HIT_RATE = 0.9
"""Share of output files that should be near the target, as the catalogue of metrics advises."""

MIN_SIZED_FILES = 10
"""Output files below which the share says nothing: a folder has a few, and its last one is seldom full."""

MAX_REJECT_RATE = 0.01
"""Share of lines, blank ones aside, that may be rejected. Production alarms use the same number."""

HEADLINES: dict[Severity, str] = {
    "nothing": "No work in this period",
    "in_order": "Everything is in order",
    "look": "Completed, with warnings",
    "act": "Action needed",
}


@as_document(shows=("headline",))
@dataclass(frozen=True, slots=True)
class Verdict:
    """How the period went."""

    severity: Severity  # verdict, as one word: the worst of the reasons
    points: tuple[Finding, ...]  # reasons, most serious first; empty if all is in order

    @property
    def headline(self) -> str:
        """Verdict, as a sentence."""
        return HEADLINES[self.severity]


def judge(figures: Figures, sla_seconds: float | None, suggest: Suggestions) -> Verdict:
    """Judge a period. With an SLA, a file may take that long to become visible, a manifest half of that."""
    suggest = suggest.marked()
    points = (*_to_act(figures, suggest), *_to_look(figures, sla_seconds, suggest))
    if points:
        return Verdict(points[0].severity, points)
    is_idle = not figures.totals.manifests and not figures.totals.dead_letters
    return Verdict("nothing" if is_idle else "in_order", ())


def _to_act(figures: Figures, suggest: Suggestions) -> Iterator[Finding]:
    totals, letters, files = figures.totals, figures.dead_letters, figures.quarantined_files
    table = figures.table
    if table is not None and table.noted_at is not None and figures.period.holds(table.noted_at):
        yield from table_behind(table)
        yield from manifests_held_back(table)
    yield from logs_behind(each for each in figures.logs if each.seen_at and figures.period.holds(each.seen_at))
    waiting = [letter for letter in letters.latest if not letter.is_settled]
    if waiting:
        yield from dead_letters(len(waiting), waiting[0].manifest_id, suggest)
    if letters.older:
        yield _unchecked(Condition.MANIFESTS_DEAD_LETTERED, count(letters.older, "older dead letter"), letters.older)
    yield from quarantined_files(files.by_status, files.by_cause, suggest)
    if files.older:
        yield _unchecked(Condition.FILES_QUARANTINED, count(files.older, "older quarantined file"), files.older)
    yield from few_rows(totals.rows, totals.rejected_lines, suggest)
    if unreadable := figures.unreadable.records:
        are = f"{'is' if unreadable == 1 else 'are'} not part of this report"
        reason = f"{count(unreadable, 'record')} could not be read and {are}"
        yield finding(Condition.RECORDS_UNREADABLE, reason, suggest.at(Condition.RECORDS_UNREADABLE.next_move))


def _unchecked(condition: Condition, things: str, number: int) -> Finding:
    reason = f"{things} {'was' if number == 1 else 'were'} not checked for a redrive"
    return finding(condition, reason, "report on shorter periods, one after the other")


def _to_look(figures: Figures, sla_seconds: float | None, suggest: Suggestions) -> Iterator[Finding]:
    totals, sizes = figures.totals, figures.sizes
    if sla_seconds is not None:
        yield from _of_times(figures, sla_seconds)
    read_lines = totals.rows + totals.rejected_lines
    if MAX_REJECT_RATE * read_lines < totals.rejected_lines <= totals.rows:  # else few rows
        share = f"{percent(totals.rejected_lines, read_lines)} of the lines were rejected"
        move = suggest.at(Condition.REJECTS_RATE.next_move)
        yield finding(Condition.REJECTS_RATE, f"{share}; more than {100 * MAX_REJECT_RATE:g} % is unusual", move)
    if sizes.counted >= MIN_SIZED_FILES and sizes.hits < MIN_HIT_RATE * sizes.counted:
        share = f"{percent(sizes.hits, sizes.counted)} of the output files are within {100 * SIZE_TOLERANCE:g} %"
        expected = f"expect {100 * MIN_HIT_RATE:g} % unless the data changes quickly"
        yield finding(Condition.OFF_TARGET_SIZES, f"{share} of the target; {expected}")
    if totals.clocks_off:
        off = f"the records of {count(totals.clocks_off, 'manifest')} are dated more than five minutes off the store's"
        why = "Either a clock was wrong or the records were copied"
        yield finding(Condition.CLOCKS_OFF, f"{off} time, which this report uses instead. {why}")
    since, until = figures.period.since, figures.period.until
    yield from housekeeping_fails(
        each for each in figures.housekeeping if each.failing_since < until and each.failed_at >= since
    )


def _of_times(figures: Figures, sla_seconds: float) -> Iterator[Finding]:
    totals = figures.totals
    files, manifests, half = totals.latency, totals.durations, sla_seconds / 2
    if files and files.p99_seconds > sla_seconds:
        late = f"{totals.late_files:,} of {count(files.files, 'file')} took longer than the SLA of"
        visible = f"{duration(sla_seconds)} to become visible; the slowest took {duration(files.longest_seconds)}"
        over = f"{duration(files.longest_seconds - sla_seconds)} too long"
        redriven = totals.late_redriven_files
        why = f". {redriven:,} of the late ones were redriven and count with their full age" if redriven else ""
        yield finding(Condition.LATE_FILES, f"{late} {visible}, {over}{why}")
    if manifests and manifests.p99_seconds > half:
        slow = f"{totals.slow_manifests:,} of {count(manifests.manifests, 'manifest')} took longer than half the SLA,"
        reason = f"{slow} {duration(half)}; the slowest took {duration(manifests.longest_seconds)}"
        yield finding(Condition.SLOW_MANIFESTS, reason)
