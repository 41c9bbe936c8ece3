"""Finds reportable conditions, whatever is done about them. Decisions, no I/O."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from compactor.control.diagnosis.health import Condition, Finding, columns_nearly_full, finding, is_late, started_work
from compactor.control.diagnosis.symptoms import STALL_RESTARTS, Case
from compactor.control.snapshot import JobRun, JobState, Source
from compactor.core.documents.counts import are_few_rows
from compactor.core.rules.next_steps import Cause, letter_step, letter_steps, quarantined_steps
from compactor.core.text.formatting import by_name, count, percent, shown_seconds
from compactor.core.text.safe_text import Suggestions
from compactor.ledger.housekeeping import FailingTask
from compactor.ledger.landing.progress import LogSeen
from compactor.schema.schema import ColumnsUsed
from compactor.table.standing import TableSeen


def dead_letters(number: int, latest: Sequence[tuple[str, str]], suggest: Suggestions) -> Iterator[Finding]:
    """Whether there are dead letters that nothing settled; `latest` has the reason and the id of some."""
    if number:
        what = "1 manifest is a dead letter" if number == 1 else f"{number:,} manifests are dead letters"
        moves = letter_steps(latest, suggest)
        if len({reason for reason, _ in latest}) > 1:
            moves = [
                letter_step(*latest[0], suggest).text,
                f"{suggest.call('verify')} shows what to do about the others",
            ]
        yield finding(Condition.MANIFESTS_DEAD_LETTERED, what, "; ".join(moves))


def quarantined_files(
    by_status: Mapping[str, int], causes: Mapping[Cause, int], uris: Sequence[str], suggest: Suggestions
) -> Iterator[Finding]:
    """Whether files are quarantined and not settled, with their number by status and by cause, and some of them."""
    if number := sum(by_status.values()):
        what = f"{count(number, 'input file')} {'is' if number == 1 else 'are'} quarantined: {by_name(by_status)}"
        yield finding(Condition.FILES_QUARANTINED, what, "; ".join(quarantined_steps(causes, suggest, uris)))


def table_behind(table: TableSeen | None) -> Iterator[Finding]:
    """Whether published manifests wait too long for the table, or commits to it keep failing."""
    if table is not None and table.is_behind:
        why = f": {table.error}" if table.error else ""
        yield finding(Condition.TABLE_BEHIND, f"table {table.name}: {table.words}{why}")


def manifests_held_back(table: TableSeen | None) -> Iterator[Finding]:
    """Whether manifests are held back from the table."""
    if table is not None and table.held:
        yield finding(Condition.MANIFESTS_HELD_BACK, f"table {table.name}: {table.held_words}")


def housekeeping_fails(tasks: Iterable[FailingTask]) -> Iterator[Finding]:
    """Whether recurring tasks keep failing, so that state or table metadata grows."""
    for each in tasks:
        reason = f"{each.name} has failed since {each.failing_since:%Y-%m-%d %H:%M} UTC: {each.error}"
        yield finding(Condition.HOUSEKEEPING_FAILS, reason, subject=each.name.replace(" ", "_"))


def logs_behind(logs: Iterable[LogSeen]) -> Iterator[Finding]:
    """Whether records of topics or streams wait too long to be landed, or landing fails."""
    for each in logs:
        if each.is_behind:
            why = f": {each.error}" if each.error else ""
            subject = each.name.replace("://", "/")
            yield finding(Condition.LOG_BEHIND, f"{each.name}: {each.words}{why}", subject=subject)


def few_rows(rows: int, rejected_lines: int, suggest: Suggestions) -> Iterator[Finding]:
    """Whether less than half of the lines became rows: the input may have a different format."""
    if are_few_rows(rows, rejected_lines):
        share = percent(rejected_lines, rows + rejected_lines)
        what = f"less than half of the lines are rows: {share} were rejected" if rows else "no line became a row"
        yield finding(Condition.FEW_ROWS, what, suggest.at(Condition.FEW_ROWS.next_move))


MANY_REFUSALS = 5
"""This many refused starts in a row are not transient: a new run is listed within a minute or two."""


def alarms(case: Case) -> Iterator[Finding]:
    """Every reportable condition."""
    for source, why in case.snapshot.unknown.items():
        yield unread(source, why)
    yield from _of_runs(case)
    yield from _of_backlog(case)
    yield from logs_behind(case.snapshot.logs or ())
    for latest in (case.snapshot.recent or ())[-1:]:
        yield from columns_nearly_full(ColumnsUsed(latest.columns, latest.max_columns))


def unread(source: Source, why: str) -> Finding:
    """The finding for an unreadable source."""
    return finding(Condition.UNKNOWN, f"{source} could not be read: {why.rstrip('.')}", subject=source.name.lower())


def _of_runs(case: Case) -> Iterator[Finding]:
    living = case.snapshot.living_runs
    if case.snapshot.runs is not None:
        breaker = case.breaker()
        if breaker.opened_at:
            every = shown_seconds(case.policy.breaker_cooldown_seconds)
            failed = f"{breaker.failures} runs failed in a row, so only one run is tried every {every}"
            yield finding(Condition.CRASH_LOOP, failed)
        if not living:
            yield from _of_refusals(case)
            yield from _of_foreign_runs(case)
    if len(living) > 1:
        names = ", ".join(run.run_id for run in living)
        yield finding(Condition.SEVERAL_RUNS, f"runs {names} are alive at the same time")
    elif living:
        yield from _of_run(living[0], case)


def _of_refusals(case: Case) -> Iterator[Finding]:
    starts, since = case.snapshot.seen.refused_starts, case.snapshot.refused_since
    if since and starts >= MANY_REFUSALS:
        refused = f"{case.policy.service} has refused {count(starts, 'start')} in a row for {case.age(since)}"
        yield finding(Condition.STARTS_REFUSED, f"{refused}: it counts a run, but lists none that is alive")


def _of_foreign_runs(case: Case) -> Iterator[Finding]:
    snapshot, policy = case.snapshot, case.policy
    latest = snapshot.runs[0] if snapshot.runs else None
    since = case.seconds_since(latest.last_at) if latest else policy.hang_seconds
    if snapshot.heartbeats and snapshot.heartbeats.living and since >= policy.hang_seconds:
        run = snapshot.heartbeats.living[0]
        works = f"run {run.run_id} uses this state, but {case.policy.service} has no run; no other one is started"
        yield finding(Condition.FOREIGN_RUN, works)


def _of_run(run: JobRun, case: Case) -> Iterator[Finding]:
    if run.state is JobState.UNKNOWN:
        yield finding(Condition.UNKNOWN_STATE, f"run {run.run_id} is in a state unknown to this release")
    elif run.state is not JobState.RUNNING:
        limit = case.policy.drain_seconds if run.state is JobState.STOPPING else case.policy.start_grace_seconds
        if case.state_seconds(run) >= limit:
            yield finding(Condition.STATE_LASTS, case.standing(run))
    elif case.is_silent(run):
        work = case.work or "no manifest is known to wait"
        yield finding(Condition.NO_HEARTBEAT, f"run {run.run_id} is RUNNING and sends no heartbeat; {work}")
    elif case.is_stuck(run):
        vain = case.runs_without_commit
        more = "" if vain <= STALL_RESTARTS else (f"; {vain} runs in a row did no better, so it is not restarted again")
        reason = f"run {run.run_id} has committed nothing while {case.work}{more}"
        yield finding(Condition.NO_PROGRESS, reason)


def _of_backlog(case: Case) -> Iterator[Finding]:
    snapshot, policy = case.snapshot, case.policy
    sla = shown_seconds(policy.sla_seconds)
    if letters := snapshot.dead_letters:
        are = f"{count(letters, 'S3 event')} {'is' if letters == 1 else 'are'} in the dead-letter queue"
        yield finding(Condition.EVENTS_DEAD_LETTERED, are)
    if snapshot.queue_oldest_seconds is not None and snapshot.queue_oldest_seconds > policy.sla_seconds:
        age = shown_seconds(snapshot.queue_oldest_seconds)
        yield finding(Condition.QUEUE_AGE, f"the oldest event has waited in the queue for {age}; the SLA is {sla}")
    if snapshot.backlog is not None and is_late(snapshot.backlog, policy.sla_seconds):
        yield finding(Condition.OLDEST_MANIFEST, f"{case.work}; the SLA is {sla}")
    if begun := case.begun(had_chance=True):
        them = "it" if len(begun) == 1 else "them"
        had = f"{started_work(len(begun))}, although a run had time to finish {them}: {begun[0]}"
        yield finding(Condition.MANIFESTS_STUCK, had)
