"""A report: the figures of a period, the verdict on them and their cost. Decisions, no I/O."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

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
from compactor.core.layout import is_s3
from compactor.core.results import as_document
from compactor.core.text.formatting import count, duration, percent
from compactor.core.text.safe_text import Suggestions
from compactor.cost.cost import Shape, estimate
from compactor.cost.measured_cost import MeasuredCost
from compactor.cost.prices import HOUR_SECONDS, PricedJob
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.report.figures import Figures

MIN_HIT_RATE = 0.9
"""Least share of bytes in files near the target, among bytes that could fill one; as the metrics catalogue advises."""

MIN_SIZED_FILES = 10
"""With fewer output files the share means little: the last file of a folder is seldom full."""

MAX_REJECT_RATE = 0.01
"""Highest share of non-blank lines that may be rejected. Production alarms use the same number."""

HEADLINES: dict[Severity, str] = {
    "nothing": "No work in this period",
    "in_order": "Everything is in order",
    "look": "Completed, with warnings",
    "act": "Action needed",
}


@as_document(shows=("headline",))
@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the period."""

    severity: Severity  # verdict, as one word: the worst of the reasons
    points: tuple[Finding, ...]  # reasons, most serious first; empty if all is in order

    @property
    def headline(self) -> str:
        """Verdict, as a sentence."""
        return HEADLINES[self.severity]


def judge(figures: Figures, sla_seconds: float | None, suggest: Suggestions) -> Verdict:
    """Judge a period. With an SLA, a file may take that long to become visible, and a manifest half of it."""
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
        yield from dead_letters(len(waiting), [(each.reason, each.manifest_id) for each in waiting], suggest)
    if letters.older:
        yield _unchecked(Condition.MANIFESTS_DEAD_LETTERED, count(letters.older, "older dead letter"), letters.older)
    uris = [each.uri for each in files.latest if not each.is_settled]
    yield from quarantined_files(files.by_status, files.by_cause, uris, suggest)
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
    large_bytes = sizes.size_bytes - sizes.small_bytes
    if totals.output_files >= MIN_SIZED_FILES and sizes.right_sized_bytes < MIN_HIT_RATE * large_bytes:
        share = f"{percent(sizes.right_sized_bytes, large_bytes)} of the output is in files within"
        expected = f"expect {100 * MIN_HIT_RATE:g} % unless the data changes quickly"
        reason = f"{share} {100 * SIZE_TOLERANCE:g} % of the target; {expected}"
        yield finding(Condition.OFF_TARGET_SIZES, reason)
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
        late = f"{totals.late_files:,} of {count(files.times, 'file')} took longer than the SLA of"
        visible = f"{duration(sla_seconds)} to become visible; the slowest took {duration(files.longest_seconds)}"
        over = f"{duration(files.longest_seconds - sla_seconds)} too long"
        yield finding(Condition.LATE_FILES, f"{late} {visible}, {over}")
    if manifests and manifests.p99_seconds > half:
        slow = f"{totals.slow_manifests:,} of {count(manifests.times, 'manifest')} took longer than half the SLA,"
        reason = f"{slow} {duration(half)}; the slowest took {duration(manifests.longest_seconds)}"
        yield finding(Condition.SLOW_MANIFESTS, reason)


def measured_in(figures: Figures, dollars_per_hour: float) -> MeasuredCost:
    """The cost of all commits of a period, from its start to its end, on workers of this price."""
    period, totals = figures.period, figures.totals
    return MeasuredCost(
        commits=totals.manifests,
        since=period.since,
        until=period.until,
        input_files=totals.input_files,
        input_bytes=totals.input_bytes,
        at_work_seconds=totals.at_work_seconds,
        dollars_per_hour=dollars_per_hour,
    )


@as_document(inlines={"measured": ()}, shows=("compared", "compared_dollars"))
@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of the period on the workers to price, at list prices."""

    measured: MeasuredCost
    job: PricedJob  # the workers to price
    is_job_named: bool  # whether the user named them; the ledger does not record workers
    services_dollars: float  # estimate of requests and other services for this load; 0 without input

    @property
    def compared(self) -> PricedJob:
        """A common job to compare with."""
        return self.job.compared

    @property
    def compared_dollars(self) -> float:
        """Cost of that job, around the clock."""
        return self.compared.dollars_per_hour * self.measured.elapsed_seconds / HOUR_SECONDS


def cost_of(figures: Figures, job: PricedJob, shape: Shape, *, is_job_named: bool) -> Cost:
    """Price a period for some workers, which the user may have named."""
    measured, services = measured_in(figures, job.dollars_per_hour), 0.0
    if measured.input_bytes:
        others = (line for line in estimate(measured.load, job, shape).lines if line.service != "Glue")
        services = sum(line.dollars_per_hour for line in others) * measured.elapsed_seconds / HOUR_SECONDS
    return Cost(measured, job, is_job_named, services)


@as_document(shows=("folder", "needs_operator"), omits=("suggest", "has_samples"), inlines={"figures": ()})
@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a period. No page is written unless `--out` names a file."""

    as_of: datetime  # time at which the ledger was read
    state_folder: str  # the place `paths.state`
    suggest: Suggestions  # how to suggest commands to the readers
    # Longest time a file should take to be visible; null for a folder without `control.sla_seconds`
    sla_seconds: float | None
    has_samples: bool  # rejected lines were read as well
    figures: Figures
    verdict: Verdict  # how the period went
    cost: Cost | None  # its cost; null for work on a machine of unknown price, unless workers were given

    @property
    def folder(self) -> str:
        """The folder that `compact` wrote, as named in commands; empty for a job."""
        return self.suggest.folder

    @property
    def is_local(self) -> bool:
        """Whether the state is on a disk, so AWS cost nothing."""
        return not is_s3(self.state_folder)

    @property
    def needs_operator(self) -> bool:
        """Whether the period needs an operator: the exit code is 3."""
        return self.verdict.severity == "act"
