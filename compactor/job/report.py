"""Summarises a run from its batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from compactor.core.distributions import Distribution, distribution_of
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.counts import counts_of
from compactor.core.errors import TryAgainError
from compactor.job.results import FINISHED, Ending, Result, Results
from compactor.ledger.sizing import sizes_by_partition, sizing_hits
from compactor.telemetry.error_text import described

MAX_DISTINCT_LATENCIES = 150
"""The most distinct values per metric in a CloudWatch request."""


def batch_metrics(
    results: Results, *, retrying: int, seconds: float, target_file_bytes: int
) -> dict[str, float | Distribution]:
    """The metrics of manifests that ended. `seconds` is the time since the first of them was taken in."""
    fresh = [result for result in results.finished if result.ending is not Ending.ALREADY_DONE]
    wasted = sum(result.wasted for result in results.finished)
    commits = [result.outcome for result in fresh if isinstance(result.outcome, Commit)]
    found = [counts_of(commit, with_source=False) for commit in commits]
    hits = [sizing_hits(each, target_file_bytes) for commit in commits for each in sizes_by_partition(commit)]
    counted = sum(files for _, files in hits)
    bytes_in = sum(each.input_bytes for each in found)
    values: dict[str, float | Distribution] = {
        "ManifestsCommitted": len(commits),
        "ManifestsDeadLettered": sum(isinstance(result.outcome, DeadLetter) for result in fresh),
        "ManifestsStuck": len(results.stuck),
        "ManifestsRetrying": retrying,
        "BatchDurationSeconds": seconds,
        "RecordsIn": sum(each.lines - each.blank_lines for each in found),
        "RecordsOut": sum(each.rows for each in found),
        "RecordsRejected": sum(each.rejected_lines for each in found),
        "FilesQuarantined": sum(each.left_to_operator.total() for each in found),
        "BytesIn": bytes_in,
        "BytesOut": sum(each.output_bytes for each in found),
        "OutputFiles": sum(each.output_files for each in found),
        **_partition_metrics(commits, target_file_bytes),
        "ValuesRescued": sum(each.rescued_values for each in found),
        "BinsRedone": sum(commit.redone_bins for commit in commits),
        "ColumnsRefused": sum(commit.refused_keys for commit in commits),
        "NewColumns": sum(result.new_columns for result in fresh),
        "Attempts": sum(result.attempts > 0 for result in fresh) + len(results.failures) + wasted,
        "AttemptsWasted": wasted,
        "Heartbeat": 1,
    }
    used = [100 * commit.columns / commit.max_columns for commit in commits if commit.max_columns]
    if used:
        values["ColumnsUsedPercent"] = max(used)
    if seconds > 0:
        values["InputBytesPerSecond"] = bytes_in / seconds
    if counted:
        values["OutputFileSizeHitRate"] = 100 * sum(hit for hit, _ in hits) / counted
    arrivals = [seconds for result in fresh for seconds in result.arrival_seconds]
    if arrivals:
        values["ArrivalToVisibleSeconds"] = distribution_of(arrivals).coarsened(MAX_DISTINCT_LATENCIES)
    return values


def _partition_metrics(commits: Sequence[Commit], target_file_bytes: int) -> dict[str, float | Distribution]:
    """The effect of partitioning on the output; empty without it."""
    divided = [commit for commit in commits if commit.partition_by]
    sizes = [each for commit in divided for each in sizes_by_partition(commit)]
    small = sum(len(each) for each in sizes if not sizing_hits(each, target_file_bytes)[1])
    outside = sum(file.rows for commit in divided for file in commit.outputs if None in file.partition)
    return {"SmallPartitionFiles": small, "RowsOfNoPartition": outside} if divided else {}


class ManifestsUnfinished(TryAgainError):
    """A run with `once` gave up on some manifests; a later run retries them.

    Args:
        failures: The last error of each unfinished manifest, by manifest id; at least one.
    """

    next_move = "run it again, no data is lost; `compactor trace` shows each attempt"

    def __init__(self, failures: Mapping[str, str]) -> None:
        self.failures = dict(failures)
        manifest_id, error = next(iter(failures.items()))
        super().__init__(f"{len(failures)} manifests are not done; manifest {manifest_id}: {error}")


@dataclass(slots=True)
class RunReport:
    """The results of a run.

    Attributes:
        committed: Manifests that this run committed or finished.
        dead_lettered: Manifests that it made dead letters.
        quarantined_files: Files that it quarantined.
        records: Rows that became visible.
        rejected_lines: Lines that became rejects.
        input_files: Compacted input files, without those of redriven lines.
        input_bytes: Their stored bytes.
        output_bytes: Bytes of Parquet.
        output_files: Parquet files with rows.
        failures: The last error of each unfinished manifest, by manifest id.
        stuck: Why each manifest needs an operator, by manifest id.
    """

    committed: int = 0
    dead_lettered: int = 0
    quarantined_files: int = 0
    records: int = 0
    rejected_lines: int = 0
    input_files: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    output_files: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    stuck: dict[str, str] = field(default_factory=dict)
    _unreceived: dict[str, str] = field(default_factory=dict)

    def add(self, results: Results) -> None:
        for each in results.all:
            if each.ending in {Ending.COMMITTED, Ending.DEAD_LETTERED}:
                self._add_result(each)
            if each.ending in FINISHED:
                self._forget(each.manifest_id)
            if (each.delivery is not None or each.ending is Ending.GONE) and each.uri in self._unreceived:
                self._forget(self._unreceived.pop(each.uri))
            if each.ending is Ending.NOT_DUE:
                due = "later" if each.due_at is None else f"at {each.due_at:%Y-%m-%d %H:%M:%S} UTC"
                self.failures.setdefault(each.manifest_id, f"it failed before, and its next attempt is due {due}")
            if each.error is not None:
                kind = self.stuck if each.ending is Ending.STUCK else self.failures
                kind[each.manifest_id] = described(each.error)
                if each.delivery is None and each.uri:
                    self._unreceived[each.uri] = each.manifest_id

    def _forget(self, manifest_id: str) -> None:
        self.failures.pop(manifest_id, None)
        self.stuck.pop(manifest_id, None)

    def merge(self, other: "RunReport") -> None:
        """Add the results of a later run."""
        self._add_figures(other)
        self.failures, self.stuck = other.failures, other.stuck

    def add_stream(self, other: "RunReport") -> None:
        """Add the results of a run on another stream."""
        self._add_figures(other)
        self.failures.update(other.failures)
        self.stuck.update(other.stuck)

    def _add_figures(self, other: "RunReport") -> None:
        for each in fields(self):
            if each.type is int:
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def _add_result(self, result: Result) -> None:
        if not isinstance(result.outcome, Commit):
            self.dead_lettered += 1
            return
        self.committed += 1
        own, among_all = (counts_of(result.outcome, with_source=each) for each in (False, True))
        self.quarantined_files += own.left_to_operator.total()
        self.records += own.rows
        self.rejected_lines += own.rejected_lines
        self.input_files += among_all.input_files
        self.input_bytes += among_all.input_bytes
        self.output_bytes += own.output_bytes
        self.output_files += own.output_files
