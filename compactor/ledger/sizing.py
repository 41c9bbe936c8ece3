"""Decides the size of manifests and the distribution of their rows; counts right-sized files. No I/O."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import RecentCommit

RATIO_HISTORY = 16  # commits that the ratio is learned from
MIN_LEARNING_BYTES = 8 * 1024 * 1024  # smaller commits mostly reflect Parquet's fixed costs
SIZE_TOLERANCE = 0.25
"""The relative deviation from the target within which a file counts as right-sized."""

Partitioning = Literal["coalesce", "rebalance"]


@dataclass(frozen=True, slots=True)
class SizedBytes:
    """Bytes of output files, and how many of them are right-sized."""

    size_bytes: int  # bytes of all output files
    right_sized_bytes: int  # in files within 25 % of the target
    small_bytes: int  # of manifests, or partitions within a manifest, too small to fill a file of the target size
    # Share of all bytes in files within 25 % of the target; None if nothing could fill such a file
    hit_rate: float | None


def learned_ratio(recent: Sequence[RecentCommit]) -> float | None:
    """Parquet bytes per decoded input byte in the latest commits; None if too little was committed.

    Args:
        recent: Summaries in any order.
    """
    telling = _telling(recent)
    decoded_bytes = sum(commit.decoded_bytes for commit in telling)
    return sum(commit.output_bytes for commit in telling) / decoded_bytes if decoded_bytes else None


def _telling(recent: Sequence[RecentCommit]) -> list[RecentCommit]:
    latest = sorted(recent, key=lambda commit: commit.decided_at, reverse=True)
    return [commit for commit in latest if commit.decoded_bytes >= MIN_LEARNING_BYTES][:RATIO_HISTORY]


def stored_ratio(recent: Sequence[RecentCommit]) -> float | None:
    """Parquet bytes per stored input byte in the latest commits; None if too little was committed.

    Planners know only the stored sizes of files, which differ from the decoded ones if files are compressed.
    """
    telling = _telling(recent)
    input_bytes = sum(commit.input_bytes for commit in telling)
    return sum(commit.output_bytes for commit in telling) / input_bytes if input_bytes else None


def whole_files_bytes(target_manifest_bytes: int, ratio: float | None, target_file_bytes: int) -> float:
    """The stored manifest size nearest to the target that makes a whole number of output files.

    Args:
        target_manifest_bytes: The target size; also the result while the ratio is unknown.
        ratio: Parquet bytes per stored input byte.
        target_file_bytes: Target size of an output file.
    """
    if not ratio:
        return target_manifest_bytes
    one_file_bytes = target_file_bytes / ratio
    whole = max(1, round(target_manifest_bytes / one_file_bytes)) * one_file_bytes
    # Data that shrinks to almost nothing makes one small file rather than a huge manifest.
    return min(whole, 2 * target_manifest_bytes)


def partitioning(files: int, manifests_in_flight: int, cores: int) -> Partitioning:
    """Decide how to distribute rows over `files` files.

    Coalescing moves no rows, but runs only one task per file. That is enough if the manifests in flight together keep
    all cores busy. Otherwise rows are shuffled, so that all cores convert.
    """
    return "coalesce" if files * manifests_in_flight >= cores else "rebalance"


def is_right_sized(size_bytes: int, target_file_bytes: int) -> bool:
    """Whether an output file is within tolerance of the target."""
    return abs(size_bytes - target_file_bytes) <= SIZE_TOLERANCE * target_file_bytes


def sizes_by_partition(commit: Commit) -> list[list[int]]:
    """Sizes of a manifest's output files, grouped by partition; in one group without partitions."""
    sizes: dict[tuple[tuple[str | None, ...], bool], list[int]] = {}
    for file in commit.outputs:
        sizes.setdefault((tuple(file.partition), file.holds_others), []).append(file.size_bytes)
    return list(sizes.values())


def sized_bytes(partitions: Iterable[Sequence[int]], target_file_bytes: int) -> SizedBytes:
    """Count the bytes in right-sized output files.

    Args:
        partitions: Sizes of the output files of one manifest, or of one of its partitions.
        target_file_bytes: Target size of an output file.
    """
    size_bytes = right_sized = small = 0
    for sizes in partitions:
        size_bytes += sum(sizes)
        right_sized += sum(size for size in sizes if is_right_sized(size, target_file_bytes))
        small += sum(sizes) if _fills_none(sizes, target_file_bytes) else 0
    return with_share(size_bytes, right_sized, small)


def with_share(size_bytes: int, right_sized_bytes: int, small_bytes: int) -> SizedBytes:
    """These byte counts with their share."""
    hit_rate = right_sized_bytes / size_bytes if small_bytes < size_bytes else None
    return SizedBytes(size_bytes, right_sized_bytes, small_bytes, hit_rate)


def _fills_none(sizes: Sequence[int], target_file_bytes: int) -> bool:
    return sum(sizes) < (1 - SIZE_TOLERANCE) * target_file_bytes


def sizing_hits(output_sizes: Sequence[int], target_file_bytes: int) -> tuple[int, int]:
    """Count the right-sized output files, and those that should be.

    A manifest or partition that cannot fill one file cannot reach the target, so it does not count.

    Args:
        output_sizes: Sizes of the output files of one manifest, or of one of its partitions.
        target_file_bytes: Target size of an output file.

    Returns:
        Right-sized files, and files that count.
    """
    if _fills_none(output_sizes, target_file_bytes):
        return 0, 0
    return sum(is_right_sized(size, target_file_bytes) for size in output_sizes), len(output_sizes)


_MIDDLE = math.sqrt((1 - SIZE_TOLERANCE) * (1 + SIZE_TOLERANCE))
"""The middle of the tolerance, in targets: a size there may be off by the same factor in either direction."""


def best_count(output_bytes: float, target_file_bytes: int) -> int:
    """The number of equally large files that are furthest from being too small or too large; at least one.

    The files of one output are about equally large, so only their number is chosen. With a tolerance of a quarter, an
    output of 0.75 to 1.25 times the target can be right-sized, and so can one of 1.5 times or more. Less makes one
    small file; in between it makes one file that is too large, or two that are too small, whichever is closer.

    Args:
        output_bytes: The total size of the files, possibly an estimate.
        target_file_bytes: Target size of an output file.
    """
    middles = output_bytes / target_file_bytes / _MIDDLE
    fewer = max(1, math.floor(middles))
    return fewer if middles * middles <= fewer * (fewer + 1) else fewer + 1


def leeway(output_bytes: float, target_file_bytes: int) -> float:
    """The factor by which an estimate may be wrong before files leave the tolerance; below 1 if they are outside.

    Args:
        output_bytes: The estimate; divided into `best_count` files.
        target_file_bytes: Target size of an output file.
    """
    share = output_bytes / target_file_bytes / best_count(output_bytes, target_file_bytes)
    return min(share / (1 - SIZE_TOLERANCE), (1 + SIZE_TOLERANCE) / share) if share else 0.0


def can_be_right_sized(output_bytes: float, target_file_bytes: int) -> bool:
    """Whether equally large files of this total size can all be right-sized."""
    return leeway(output_bytes, target_file_bytes) >= 1


def planned_files(input_bytes: int, ratio: float, target_file_bytes: int) -> int:
    """A manifest's number of output files; at least one.

    Args:
        input_bytes: All input of the manifest, decoded or as stored.
        ratio: Parquet bytes per input byte.
        target_file_bytes: Target size of an output file.
    """
    return best_count(input_bytes * ratio, target_file_bytes)


def closes_file(
    current_bytes: int, finished_bytes: int, done: float, target_file_bytes: int, *, step_bytes: int = 0
) -> bool:
    """Decide whether to close the current output file and write the remaining input to further files.

    Extrapolates the remaining output from the data written so far. A well planned file never closes early.

    Args:
        current_bytes: Size of the file so far.
        finished_bytes: Total size of the earlier files from the same input.
        done: Written share of the input, above 0.
        target_file_bytes: Target size of an output file.
        step_bytes: How much the file grows between calls, so that it closes at the nearest point.
    """
    written_bytes = finished_bytes + current_bytes
    left_bytes = written_bytes / done - finished_bytes
    files = best_count(left_bytes, target_file_bytes)
    return files > 1 and current_bytes + step_bytes / 2 >= left_bytes / files
