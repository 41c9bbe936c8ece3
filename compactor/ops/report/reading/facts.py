"""What a report takes from the records of one manifest. No I/O."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.documents.records import Accepted, Commit, Done
from compactor.core.documents.totals import commit_totals, without_zeros
from compactor.core.layout import root_id
from compactor.ledger.accounts.account import QuarantinedFile, quarantined_files
from compactor.ledger.sizing import sizes_by_partition
from compactor.ledger.work_time import arrival_seconds
from compactor.ops.report.figures import DeadLetterLine

_SUMMED = (
    *("input_files", "input_bytes", "output_files", "output_bytes"),
    *("lines", "rows", "rejected_lines", "blank_lines", "tombstones", "erased_lines"),
)

CLOCK_TOLERANCE_SECONDS = 300.0
"""How far the clock of a driver may differ from that of the store before the store is believed instead."""


def moment_of(done_at: datetime, written_at: datetime) -> datetime:
    """When something became visible: as its record says, unless the clock that dated it was wrong.

    This does not depend on the period asked for, so adjacent periods count everything once.
    """
    return done_at if abs(done_at - written_at) <= timedelta(seconds=CLOCK_TOLERANCE_SECONDS) else written_at


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """The figures of a committed manifest."""

    moment: datetime  # when its rows became visible (see `moment_of`)
    sums: dict[str, int]  # by the names of the fields of `Totals`
    duration_seconds: float
    work: tuple[datetime, datetime]  # from the start of the successful attempt to its decision
    rejects: Counter[str]  # rejected lines by reason
    files_by_status: Counter[str]  # files by the result for each
    for_operator: list[QuarantinedFile]  # those that were quarantined
    output_sizes: list[list[int]]  # bytes of each Parquet file, together those of one partition
    arrivals: tuple[float, ...]  # seconds from the arrival of each compacted file until its rows were visible
    reject_files: tuple[str, ...]  # places of the rejected lines


@dataclass(frozen=True, slots=True)
class DeadLetterFacts:
    """A dead letter."""

    letter: DeadLetterLine
    is_clock_off: bool


def commit_facts(
    moment: datetime,
    accepted: Accepted,
    commit: Commit,
    done: Done,
    *,
    decided_at: datetime,
    with_source: bool,
    sla_seconds: float | None = None,
) -> CommitFacts:
    """Reduce the records of a committed manifest to their figures.

    Args:
        moment: When its rows became visible (see `moment_of`).
        accepted: The record of its acceptance.
        commit: The valid commit.
        done: The record of when its rows were first visible.
        decided_at: When its first generation was decided.
        with_source: Whether the manifest that rejected its redriven lines, if there is one, is of the period as well.
        sla_seconds: How long a file may take to be visible.
    """
    arrivals = arrival_seconds(accepted, commit, done.done_at)
    # Clocks differ: what seems to end before it began took no time.
    duration_seconds = max(0.0, (done.done_at - commit.started_at).total_seconds())
    late = 0 if sla_seconds is None else sum(seconds > sla_seconds for seconds in arrivals)
    found, clock_off = commit_totals(commit, with_source=with_source), moment - done.done_at
    return CommitFacts(
        moment=moment,
        sums={
            **{name: getattr(found, name) for name in _SUMMED},
            "manifests": 1,
            "late_files": late,
            "late_redriven_files": late if root_id(commit.manifest_id) != commit.manifest_id else 0,
            "slow_manifests": int(sla_seconds is not None and duration_seconds > sla_seconds / 2),
            "clocks_off": int(bool(clock_off)),
        },
        duration_seconds=duration_seconds,
        work=(commit.started_at + clock_off, decided_at + clock_off),
        rejects=without_zeros(found.rejects_by_reason),
        files_by_status=found.files_by_status,
        for_operator=quarantined_files(commit, moment),
        output_sizes=sizes_by_partition(commit),
        arrivals=arrivals,
        reject_files=tuple(file.final for file in commit.rejects),
    )
