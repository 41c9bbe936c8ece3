"""What a report takes from the records of one manifest. No I/O."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.documents.records import Accepted, Commit, Done, FileStatus
from compactor.core.documents.totals import totals_of, without_zeros
from compactor.core.layout import root_id
from compactor.ledger.sizing import sizes_by_partition
from compactor.ledger.work_time import arrival_seconds
from compactor.ops.redrive.settling.quarantined_file import QuarantinedFile, quarantined_files
from compactor.ops.report.figures import DeadLetterLine
from compactor.ops.report.reading.quarantined import SHOWN_FILES

_SUMMED = ("input_bytes", "lines", "rows", "rejected_lines", "blank_lines", "tombstones")

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
    rejects: Counter[str]  # rejected lines by reason
    quarantined: Counter[str]  # quarantined files by status
    for_operator: list[QuarantinedFile]  # the first of those that need an operator
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
    with_source: bool,
    sla_seconds: float | None = None,
) -> CommitFacts:
    """Reduce the records of a committed manifest to their figures.

    `with_source` says whether the manifest that rejected its redriven lines, if there is one, is of the period as well.
    """
    arrivals = arrival_seconds(accepted, commit, done.done_at)
    # Clocks differ: what seems to end before it began took no time.
    duration_seconds = max(0.0, (done.done_at - commit.started_at).total_seconds())
    late = 0 if sla_seconds is None else sum(seconds > sla_seconds for seconds in arrivals)
    files, output_sizes = commit.files, sizes_by_partition(commit)
    found = totals_of(files, with_source=with_source)
    return CommitFacts(
        moment=moment,
        sums={
            "output_files": sum(map(len, output_sizes)),
            "output_bytes": sum(map(sum, output_sizes)),
            **{name: getattr(found, name) for name in _SUMMED},
            "input_files": found.files_by_status[FileStatus.COMPACTED],
            "manifests": 1,
            "late_files": late,
            "late_redriven_files": late if root_id(commit.manifest_id) != commit.manifest_id else 0,
            "slow_manifests": int(sla_seconds is not None and duration_seconds > sla_seconds / 2),
            "clocks_off": int(moment != done.done_at),
        },
        duration_seconds=duration_seconds,
        rejects=without_zeros(found.rejects_by_reason),
        quarantined=Counter(str(file.status) for file in files if file.status != FileStatus.COMPACTED),
        for_operator=quarantined_files(commit, moment)[:SHOWN_FILES],
        output_sizes=output_sizes,
        arrivals=arrivals,
        reject_files=tuple(file.final for file in commit.rejects),
    )
