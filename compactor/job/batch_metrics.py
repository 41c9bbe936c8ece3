"""The metrics of one batch."""

from collections.abc import Sequence

from compactor.core.distributions import Distribution, distribution_of
from compactor.core.documents.closed_dates import commit_totals
from compactor.core.documents.records import Commit, DeadLetter
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
    found = [commit_totals(commit, with_source=False) for commit in commits]
    hits = [sizing_hits(each, target_file_bytes) for commit in commits for each in sizes_by_partition(commit)]
    counted = sum(files for _, files in hits)
    bytes_in = sum(each.input_bytes for each in found)
    values: dict[str, float | Distribution] = {
        "ManifestsCommitted": len(commits),
        "ManifestsDeadLettered": sum(isinstance(result.outcome, DeadLetter) for result in fresh),
        "ManifestsStuck": stuck,
        "ManifestsRetrying": retrying,
        "BatchDurationSeconds": seconds,
        "RecordsIn": sum(each.lines - each.blank_lines for each in found),
        "RecordsOut": sum(each.rows for each in found),
        "RecordsRejected": sum(each.rejected_lines for each in found),
        "FilesQuarantined": sum(each.quarantined_by_status.total() for each in found),
        "BytesIn": bytes_in,
        "BytesOut": sum(each.output_bytes for each in found),
        "OutputFiles": sum(each.output_files for each in found),
        **_partition_metrics(commits, target_file_bytes),
        "ValuesRescued": sum(each.rescued_values for each in found),
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
