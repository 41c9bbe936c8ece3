"""Gives sizing advice: how long manifests take against the SLA, what arrives against what is processed. No I/O."""

from collections.abc import Iterator
from statistics import median

from compactor.control.diagnosis.health import Condition, Finding, finding
from compactor.control.diagnosis.symptoms import Case
from compactor.core.text.formatting import shown_seconds
from compactor.ledger.backlog import Backlog
from compactor.ledger.work_time import covered_seconds, work_spans

MIN_COMMITS = 8  # fewer commits than this do not show a pace

MIN_WAITING = 3  # fewer waiting manifests than this do not show what arrives

LEAST_BUSY_SHARE = 0.2
LEAST_SPAN_SECONDS = 3600.0


def advice(case: Case) -> Iterator[Finding]:
    """What a person may want to change about the size of the job, by its pace over the latest commits."""
    recent, policy = case.snapshot.recent or (), case.policy
    spans = work_spans(recent)
    busy_seconds = covered_seconds(spans)
    if len(recent) < MIN_COMMITS or busy_seconds <= 0:
        return
    commit_seconds = median(each.seconds for each in recent)
    if commit_seconds > policy.sla_seconds / 2:
        takes, sla = shown_seconds(commit_seconds), shown_seconds(policy.sla_seconds)
        yield finding(Condition.SLOW_MANIFESTS, f"a manifest takes {takes}, more than half of the SLA of {sla}")
    input_bytes = sum(each.input_bytes for each in recent)
    processed = input_bytes / busy_seconds
    arriving = _arriving_bytes_per_second(input_bytes / len(recent), case.snapshot.backlog)
    if arriving is not None and arriving > processed:
        rates = f"{arriving / 1e6:,.1f} MB/s arrive and {processed / 1e6:,.1f} MB/s are processed"
        reason = f"{rates}: {arriving / processed:.1f} times the workers would keep up"
        yield finding(Condition.TOO_FEW_WORKERS, reason)
    span_seconds = (max(end for _, end in spans) - spans[0][0]).total_seconds()
    is_quiet = busy_seconds / span_seconds < LEAST_BUSY_SHARE and span_seconds >= LEAST_SPAN_SECONDS
    if is_quiet and arriving is None and policy.mode == "always":
        reason = f"the job was at work for {busy_seconds / span_seconds:.0%} of the last {shown_seconds(span_seconds)}"
        yield finding(Condition.TOO_MANY_WORKERS, reason)


def _arriving_bytes_per_second(manifest_bytes: float, backlog: Backlog | None) -> float | None:
    """The stored input that arrives; None where too little waits to tell.

    Manifests are taken in order, so all that wait arrived within the age of the oldest. Their number over that age is
    the rate of arrival.
    """
    if backlog is None or backlog.manifests < MIN_WAITING or backlog.oldest_seconds <= 0:
        return None
    return manifest_bytes * backlog.manifests / backlog.oldest_seconds
