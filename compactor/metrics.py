"""The catalogue of metrics: name, unit, meaning, and what to do when one moves. Nothing else may be emitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compactor.compaction import CompactionResult, Ending
from compactor.records import Commit, DeadLetter, FileStatus
from compactor.sizing import sizing_hits

Unit = Literal["Count", "Bytes", "Bytes/Second", "Seconds", "Percent"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: As CloudWatch shows it.
        unit: One of CloudWatch's units.
        meaning: What it counts.
        advice: What to do when it moves.
    """

    name: str
    unit: Unit
    meaning: str
    advice: str


CATALOGUE = {
    metric.name: metric
    for metric in (
        Metric(
            "ManifestsCommitted",
            "Count",
            "manifests committed by the batch, or carried to done",
            "0 with work waiting: look at the log",
        ),
        Metric(
            "ManifestsDeadLettered",
            "Count",
            "manifests set aside by the batch",
            "read failed/*.reason.json under the state",
        ),
        Metric(
            "ManifestsStuck",
            "Count",
            "manifests that only a person can put right; they stay as they are",
            "the log's manifest.stuck says what is wrong",
        ),
        Metric(
            "BatchDurationSeconds",
            "Seconds",
            "time from the batch's start to its end",
            "above half the SLA: add workers",
        ),
        Metric(
            "InputBytesPerSecond",
            "Bytes/Second",
            "stored input of the batch over its duration",
            "below arrival: add workers",
        ),
        Metric("RecordsIn", "Count", "lines read, blank ones not counted", "compare with what producers sent"),
        Metric("RecordsOut", "Count", "rows that became visible", "always RecordsIn less RecordsRejected"),
        Metric("RecordsRejected", "Count", "lines set aside", "look at the rejects by reason; tell the producer"),
        Metric(
            "FilesSetAside",
            "Count",
            "input files that were missing, changed, unreadable, too large or had too many keys",
            "trace one of them",
        ),
        Metric("BytesIn", "Bytes", "stored size of the input files", "falls: producers or events stopped"),
        Metric("BytesOut", "Bytes", "size of the Parquet files", "its ratio to BytesIn is what sizing learns"),
        Metric("OutputFiles", "Count", "Parquet files of rows", "rises against BytesOut: files get too small"),
        Metric(
            "OutputFileSizeHitRate",
            "Percent",
            "output files within 25 % of the target",
            "below 90: the data changes quickly",
        ),
        Metric(
            "ValuesRescued",
            "Count",
            "values that do not fit the type of their column, kept as text in _rescued_data",
            "rises: a producer changed its events, or the schema file is wrong",
        ),
        Metric("NewColumns", "Count", "columns that appeared", "a producer changed its events"),
        Metric("Attempts", "Count", "attempts made by the batch", "above ManifestsCommitted: read the attempt records"),
        Metric("Heartbeat", "Count", "1 with every batch and every idle minute", "stops: the job is down or hangs"),
        Metric(
            "JobState",
            "Count",
            "what Glue's runs are, each minute: 2 running, 1 on the way up or down, 0 no run, -1 no run and the "
            "breaker open after too many failures",
            "below 2 for long: `compactor control --dry-run` says why; -1: mend the cause, then close the breaker",
        ),
        Metric("Restarts", "Count", "runs that the control plane started", "rises: read the reasons in its messages"),
        Metric("QueueDepth", "Count", "S3 events in the queue, in flight or not", "grows: the builder is too slow"),
        Metric(
            "QueueOldestAgeSeconds",
            "Seconds",
            "age of the oldest S3 event in the queue, some minutes late",
            "above the SLA: read the builder's log",
        ),
        Metric(
            "DeadLetterDepth",
            "Count",
            "S3 events that nobody could read",
            "above 0: look at them, mend the cause, move them back to the queue",
        ),
        Metric(
            "ManifestsPending",
            "Count",
            "manifests in the watched prefix",
            "grows: the job is down, hangs, or has too few workers",
        ),
        Metric(
            "OldestManifestAgeSeconds",
            "Seconds",
            "age of the oldest manifest in the watched prefix",
            "above the SLA: look at JobState, then at BatchDurationSeconds",
        ),
    )
}
"""All metrics by name."""


def batch_metrics(
    results: Sequence[CompactionResult], *, failed: int, stuck: int, seconds: float, target_file_bytes: int
) -> dict[str, float]:
    """The figures of one batch.

    Args:
        results: One for each manifest that came to an end.
        failed: How many manifests did not.
        stuck: How many manifests wait for a person.
        seconds: How long the batch took.
        target_file_bytes: How large an output file should be.
    """
    fresh = [result for result in results if result.ending is not Ending.ALREADY_DONE]
    commits = [result.outcome for result in fresh if isinstance(result.outcome, Commit)]
    reports = [report for commit in commits for report in commit.files]
    sizes = [[file.size_bytes for file in commit.outputs] for commit in commits]
    hits = [sizing_hits(each, target_file_bytes) for each in sizes]
    counted = sum(files for _, files in hits)
    bytes_in = sum(report.size_bytes for report in reports if report.status == FileStatus.COMPACTED)
    values: dict[str, float] = {
        "ManifestsCommitted": len(commits),
        "ManifestsDeadLettered": sum(isinstance(result.outcome, DeadLetter) for result in fresh),
        "ManifestsStuck": stuck,
        "BatchDurationSeconds": seconds,
        "RecordsIn": sum(report.lines - report.blank_lines for report in reports),
        "RecordsOut": sum(report.records for report in reports),
        "RecordsRejected": sum(report.rejected_lines for report in reports),
        "FilesSetAside": sum(report.status != FileStatus.COMPACTED for report in reports),
        "BytesIn": bytes_in,
        "BytesOut": sum(map(sum, sizes)),
        "OutputFiles": sum(map(len, sizes)),
        "ValuesRescued": sum(commit.rescued_values for commit in commits),
        "NewColumns": sum(result.new_columns for result in fresh),
        "Attempts": sum(result.attempts > 0 for result in fresh) + failed,
        "Heartbeat": 1,
    }
    if seconds > 0:
        values["InputBytesPerSecond"] = bytes_in / seconds
    if counted:
        values["OutputFileSizeHitRate"] = 100 * sum(hit for hit, _ in hits) / counted
    return values
