"""The metrics of one batch."""

from collections.abc import Sequence

from compactor.core.distributions import Distribution, distribution_of
from compactor.core.documents.records import NEEDS_OPERATOR, Commit, DeadLetter, FileStatus
from compactor.job.steps.results import CompactionResult, Ending
from compactor.ledger.sizing import sizes_by_partition, sizing_hits

MAX_DISTINCT_LATENCIES = 150
"""The most distinct values that CloudWatch takes for one metric in one request."""


def batch_metrics(
    results: Sequence[CompactionResult],
    *,
    failed: int,
    stuck: int,
    retrying: int,
    seconds: float,
    target_file_bytes: int,
) -> dict[str, float | Distribution]:
    """The figures of one batch.

    Args:
        results: One for each manifest that finished.
        failed: How many manifests did not finish.
        stuck: How many manifests a person must fix.
        retrying: How many manifests failed and wait for their next attempt.
        seconds: How long the batch took.
        target_file_bytes: How large an output file should be.
    """
    fresh = [result for result in results if result.ending is not Ending.ALREADY_DONE]
    wasted = sum(result.wasted for result in results)
    commits = [result.outcome for result in fresh if isinstance(result.outcome, Commit)]
    reports = [report for commit in commits for report in commit.files]
    sizes = [[file.size_bytes for file in commit.outputs] for commit in commits]
    hits = [sizing_hits(each, target_file_bytes) for commit in commits for each in sizes_by_partition(commit)]
    counted = sum(files for _, files in hits)
    bytes_in = sum(report.size_bytes for report in reports if report.status == FileStatus.COMPACTED)
    values: dict[str, float | Distribution] = {
        "ManifestsCommitted": len(commits),
        "ManifestsDeadLettered": sum(isinstance(result.outcome, DeadLetter) for result in fresh),
        "ManifestsStuck": stuck,
        "ManifestsRetrying": retrying,
        "BatchDurationSeconds": seconds,
        "RecordsIn": sum(report.lines - report.blank_lines for report in reports),
        "RecordsOut": sum(report.records for report in reports),
        "RecordsRejected": sum(report.rejected_lines for report in reports),
        "FilesQuarantined": sum(report.status in NEEDS_OPERATOR for report in reports),
        "BytesIn": bytes_in,
        "BytesOut": sum(map(sum, sizes)),
        "OutputFiles": sum(map(len, sizes)),
        **_partition_metrics(commits, target_file_bytes),
        "ValuesRescued": sum(commit.rescued_values for commit in commits),
        "BinsRedone": sum(commit.redone_bins for commit in commits),
        "ColumnsRefused": sum(commit.refused_keys for commit in commits),
        "NewColumns": sum(result.new_columns for result in fresh),
        "Attempts": sum(result.attempts > 0 for result in fresh) + failed + wasted,
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
    """What partitions make of the output; nothing without them."""
    divided = [commit for commit in commits if commit.partition_by]
    sizes = [each for commit in divided for each in sizes_by_partition(commit)]
    small = sum(len(each) for each in sizes if not sizing_hits(each, target_file_bytes)[1])
    outside = sum(file.rows for commit in divided for file in commit.outputs if None in file.partition)
    return {"SmallPartitionFiles": small, "RowsOfNoPartition": outside} if divided else {}
