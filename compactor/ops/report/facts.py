"""What a report takes from the records of one manifest, without its files. No I/O."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.manifest_key import ManifestKey
from compactor.core.records import NEEDS_OPERATOR, Accepted, Commit, DeadLetter, Done, RecentCommit
from compactor.ledger.sizing_history import summarised
from compactor.ledger.work_time import arrival_seconds

CLOCK_TOLERANCE_SECONDS = 300.0
"""How far the clock of a driver may be from that of the store. Beyond it, the store is believed."""


def moment_of(done_at: datetime, written_at: datetime) -> datetime:
    """When something became visible: as its record says, unless the clock that dated it was wrong.

    Each record has one moment, whatever period is asked for, so that periods side by side count everything once.

    Args:
        done_at: As the record says.
        written_at: When the store wrote the record.
    """
    return done_at if abs(done_at - written_at) <= timedelta(seconds=CLOCK_TOLERANCE_SECONDS) else written_at


@dataclass(frozen=True, slots=True)
class Finished:
    """A manifest that came to its end, with the moment from which its end was to be seen.

    Attributes:
        moment: As `moment_of` tells it.
        is_clock_off: Its driver's clock was not believed.
    """

    key: ManifestKey
    moment: datetime
    is_clock_off: bool


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """The figures of a committed manifest.

    Attributes:
        summary: Its sums over compacted files.
        duration_seconds: From the begin of the winning attempt to its rows being visible.
        lines: Of all files that were read.
        blank_lines: Of those.
        rows: Likewise; with rejects and blank lines, they are all lines.
        rejected_lines: Likewise.
        rejects: Rejected lines by reason.
        quarantined: Files that were set aside whole, by status.
        output_sizes: Bytes of each Parquet file.
        arrivals: For each compacted file, the seconds from its arrival to its rows being visible.
        reject_files: Where the rejects are.
    """

    finished: Finished
    summary: RecentCommit
    duration_seconds: float
    lines: int
    blank_lines: int
    rows: int
    rejected_lines: int
    rejects: Counter[str]
    quarantined: Counter[str]
    output_sizes: tuple[int, ...]
    arrivals: tuple[float, ...]
    reject_files: tuple[str, ...]

    @property
    def needs_operator(self) -> bool:
        """Whether it has files that somebody should look at."""
        return any(status in NEEDS_OPERATOR for status in self.quarantined)


@dataclass(frozen=True, slots=True)
class DeadLetterFacts:
    """A manifest that was set aside."""

    finished: Finished
    outcome: DeadLetter


def commit_facts(finished: Finished, accepted: Accepted, commit: Commit, done: Done) -> CommitFacts:
    """Reduce the records of a committed manifest to their figures."""
    summary = summarised(commit)
    rejects = Counter[str]()
    for report in commit.files:
        rejects.update(report.rejects)
    statuses = Counter(str(report.status) for report in commit.files)
    del statuses["compacted"]
    return CommitFacts(
        finished=finished,
        summary=summary,
        # Clocks differ: what seems to end before it began took no time.
        duration_seconds=max(0.0, (done.done_at - commit.started_at).total_seconds()),
        lines=sum(report.lines for report in commit.files),
        blank_lines=sum(report.blank_lines for report in commit.files),
        rows=sum(report.records for report in commit.files),
        rejected_lines=sum(report.rejected_lines for report in commit.files),
        rejects=rejects,
        quarantined=statuses,
        output_sizes=tuple(file.size_bytes for file in commit.outputs),
        arrivals=arrival_seconds(accepted, commit, done.done_at),
        reject_files=tuple(file.final for file in commit.rejects),
    )
