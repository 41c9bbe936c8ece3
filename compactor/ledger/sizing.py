"""Decides how large manifests are, and how their rows are distributed; counts files of the right size. No I/O."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import RecentCommit

RATIO_HISTORY = 16  # commits that the ratio is learned from
MIN_LEARNING_BYTES = 8 * 1024 * 1024  # smaller commits mostly show Parquet's fixed costs
SIZE_TOLERANCE = 0.25
"""How far from the target a file may be and still count as right-sized."""

Partitioning = Literal["coalesce", "rebalance"]


@dataclass(frozen=True, slots=True)
class SizedBytes:
    """Bytes of output files, and how many of them are in files of the right size."""

    size_bytes: int  # bytes of all output files
    right_sized_bytes: int  # those in files within 25 % of the target
    small_bytes: int  # those of manifests, or of partitions of one, that do not fill a file of the target size
    # Share of all bytes that is in files within 25 % of the target; None if nothing could fill a file of that size
    hit_rate: float | None


def learned_ratio(recent: Sequence[RecentCommit]) -> float | None:
    """Parquet bytes per decoded input byte of the latest commits; None if too little was committed.

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
    """Parquet bytes per stored input byte of the latest commits; None if too little was committed.

    Planners know only the stored sizes of files, which differ from the decoded ones if files are compressed.
    """
    telling = _telling(recent)
    input_bytes = sum(commit.input_bytes for commit in telling)
    return sum(commit.output_bytes for commit in telling) / input_bytes if input_bytes else None


def whole_files_bytes(target_manifest_bytes: int, ratio: float | None, target_file_bytes: int) -> float:
    """The stored size of a manifest that makes a whole number of output files, as close to the target as possible.

    Args:
        target_manifest_bytes: The size to aim at; the result if nothing was learned yet.
        ratio: Parquet bytes per stored input byte.
        target_file_bytes: How large an output file should be.
    """
    if not ratio:
        return target_manifest_bytes
    one_file_bytes = target_file_bytes / ratio
    whole = max(1, round(target_manifest_bytes / one_file_bytes)) * one_file_bytes
    # Data that shrinks to almost nothing makes one small file rather than a huge manifest.
    return min(whole, 2 * target_manifest_bytes)


def partitioning(files: int, manifests_in_flight: int, cores: int) -> Partitioning:
    """Decide how to distribute rows over `files` files.

    Coalescing moves no row, but runs only as many tasks as there are files. That is enough if the manifests in flight
    fill the cores together. Otherwise rows are shuffled, so that all cores convert.
    """
    return "coalesce" if files * manifests_in_flight >= cores else "rebalance"


def is_right_sized(size_bytes: int, target_file_bytes: int) -> bool:
    """Return whether an output file is within the tolerance of the target."""
    return abs(size_bytes - target_file_bytes) <= SIZE_TOLERANCE * target_file_bytes


def sizes_by_partition(commit: Commit) -> list[list[int]]:
    """Bytes of each output file of a manifest, together those of one partition; without partitions, all of them."""
    sizes: dict[tuple[tuple[str | None, ...], bool], list[int]] = {}
    for file in commit.outputs:
        sizes.setdefault((tuple(file.partition), file.holds_others), []).append(file.size_bytes)
    return list(sizes.values())


def sized_bytes(partitions: Iterable[Sequence[int]], target_file_bytes: int) -> SizedBytes:
    """Count the bytes in output files of the right size.

    Args:
        partitions: Bytes of each output file of one manifest, or of one of its partitions.
        target_file_bytes: How large an output file should be.
    """
    size_bytes = right_sized = small = 0
    for sizes in partitions:
        size_bytes += sum(sizes)
        right_sized += sum(size for size in sizes if is_right_sized(size, target_file_bytes))
        small += sum(sizes) if _fills_none(sizes, target_file_bytes) else 0
    return with_share(size_bytes, right_sized, small)


def with_share(size_bytes: int, right_sized_bytes: int, small_bytes: int) -> SizedBytes:
    """These bytes, and the share that follows from them."""
    hit_rate = right_sized_bytes / size_bytes if small_bytes < size_bytes else None
    return SizedBytes(size_bytes, right_sized_bytes, small_bytes, hit_rate)


def _fills_none(sizes: Sequence[int], target_file_bytes: int) -> bool:
    return sum(sizes) < (1 - SIZE_TOLERANCE) * target_file_bytes


def sizing_hits(output_sizes: Sequence[int], target_file_bytes: int) -> tuple[int, int]:
    """Count the output files that have the right size, and those that should have.

    A manifest, or a partition of one, that fills less than one file cannot reach the target, so it does not count.

    Args:
        output_sizes: Bytes of each output file of one manifest, or of one of its partitions.
        target_file_bytes: How large an output file should be.

    Returns:
        Right-sized files, and files that count.
    """
    if _fills_none(output_sizes, target_file_bytes):
        return 0, 0
    return sum(is_right_sized(size, target_file_bytes) for size in output_sizes), len(output_sizes)


_MIDDLE = math.sqrt((1 - SIZE_TOLERANCE) * (1 + SIZE_TOLERANCE))
"""Targets of the size that may be as many times smaller as it may be larger: estimates are wrong by factors."""


def best_count(output_bytes: float, target_file_bytes: int) -> int:
    """The number of files of like size that are furthest from being too small or too large; at least one.

    Files of one output are of like size, so only their number is to be chosen. With a tolerance of a quarter, files of
    the right size can be made of 0.75 to 1.25 times the target, and of 1.5 times the target or more. Less is one small
    file; what is in between is one file that is too large, or two that are too small, whichever is less so.

    Args:
        output_bytes: The total length of the files, which may be an estimate.
        target_file_bytes: How large an output file should be.
    """
    middles = output_bytes / target_file_bytes / _MIDDLE
    fewer = max(1, math.floor(middles))
    return fewer if middles * middles <= fewer * (fewer + 1) else fewer + 1


def leeway(output_bytes: float, target_file_bytes: int) -> float:
    """By which factor an estimate may be wrong before files leave the tolerance; below 1 if they are outside anyway.

    Args:
        output_bytes: The estimate, of which `best_count` files are made.
        target_file_bytes: How large an output file should be.
    """
    share = output_bytes / target_file_bytes / best_count(output_bytes, target_file_bytes)
    return min(share / (1 - SIZE_TOLERANCE), (1 + SIZE_TOLERANCE) / share) if share else 0.0


def can_be_right_sized(output_bytes: float, target_file_bytes: int) -> bool:
    """Whether files of like size and of this length together can all be of the right size."""
    return leeway(output_bytes, target_file_bytes) >= 1


def planned_files(input_bytes: int, ratio: float, target_file_bytes: int) -> int:
    """The number of output files of a manifest; at least one.

    Args:
        input_bytes: All input of the manifest, decoded or as stored.
        ratio: Parquet bytes per input byte.
        target_file_bytes: How large an output file should be.
    """
    return best_count(input_bytes * ratio, target_file_bytes)


def closes_file(
    current_bytes: int, finished_bytes: int, done: float, target_file_bytes: int, *, step_bytes: int = 0
) -> bool:
    """Decide whether to end the current output file and write the remaining input to further files.

    Extrapolates the remaining output from what was written so far. A well planned file never ends early.

    Args:
        current_bytes: Length of the file so far.
        finished_bytes: Total length of the earlier files of the same input.
        done: Share of the input that is written, above 0.
        target_file_bytes: How large an output file should be.
        step_bytes: By how much the file grows before this is asked again, so that it ends where it is closest.
    """
    written_bytes = finished_bytes + current_bytes
    left_bytes = written_bytes / done - finished_bytes
    files = best_count(left_bytes, target_file_bytes)
    return files > 1 and current_bytes + step_bytes / 2 >= left_bytes / files
