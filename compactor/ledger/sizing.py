"""How many output files a manifest makes, and how its rows are brought together. Decisions, no I/O."""

from collections.abc import Sequence
from typing import Literal

from compactor.core.records import RecentCommit

RATIO_HISTORY = 16  # commits that the learned ratio looks at
MIN_LEARNING_BYTES = 8 * 1024 * 1024  # smaller commits say more about Parquet's fixed costs than about the data
SIZE_TOLERANCE = 0.25
"""How far from the target a file may be and still count as right-sized."""

Partitioning = Literal["coalesce", "rebalance"]


def learned_ratio(recent: Sequence[RecentCommit]) -> float | None:
    """Parquet bytes per decoded input byte of the latest commits; None where too little was committed to say.

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
    """Parquet bytes per stored input byte of the latest commits; None where too little was committed to say.

    Whoever groups files knows their stored sizes only, which differ from the decoded ones where they are compressed.
    """
    telling = _telling(recent)
    input_bytes = sum(commit.input_bytes for commit in telling)
    return sum(commit.output_bytes for commit in telling) / input_bytes if input_bytes else None


def whole_files_bytes(target_manifest_bytes: int, ratio: float | None, target_file_bytes: int) -> float:
    """The stored size of a manifest that makes a whole number of output files, as near to the target as can be.

    Args:
        target_manifest_bytes: The size to aim at; it holds as it is where nothing was learned yet.
        ratio: Parquet bytes per stored input byte.
        target_file_bytes: How large an output file should be.
    """
    if not ratio:
        return target_manifest_bytes
    one_file_bytes = target_file_bytes / ratio
    whole = max(1, round(target_manifest_bytes / one_file_bytes)) * one_file_bytes
    # Data that shrinks to next to nothing makes one small file rather than a manifest that nobody can hold.
    return min(whole, 2 * target_manifest_bytes)


def planned_files(input_bytes: int, ratio: float, target_file_bytes: int) -> int:
    """The number of output files that brings each closest to the target; at least one.

    Args:
        input_bytes: All input of the manifest, decoded or as stored.
        ratio: Parquet bytes per byte of it.
        target_file_bytes: How large an output file should be.
    """
    return max(1, round(input_bytes * ratio / target_file_bytes))


def closes_file(current_bytes: int, finished_bytes: int, done: float, target_file_bytes: int) -> bool:
    """Whether an output file that is being written is to end here, and the rest to go into others.

    What was written so far tells how much is still to come. A file that is planned well never ends early.

    Args:
        current_bytes: The length of the file so far.
        finished_bytes: The length of those before it, of the same input.
        done: The share of the input that is in them, above 0.
        target_file_bytes: How large an output file should be.
    """
    written_bytes = finished_bytes + current_bytes
    left_bytes = written_bytes / done - finished_bytes
    files = max(1, round(left_bytes / target_file_bytes))
    return files > 1 and current_bytes >= left_bytes / files


def partitioning(files: int, manifests_in_flight: int, cores: int) -> Partitioning:
    """How rows come together in `files` files.

    Coalescing moves no row but converts with only as many tasks as there are files; that is enough when the manifests
    in flight fill the cores together. Else rows are shuffled, so that all cores convert.
    """
    return "coalesce" if files * manifests_in_flight >= cores else "rebalance"


def is_right_sized(size_bytes: int, target_file_bytes: int) -> bool:
    """Whether an output file is within the tolerance of the target."""
    return abs(size_bytes - target_file_bytes) <= SIZE_TOLERANCE * target_file_bytes


def sizing_hits(output_sizes: Sequence[int], target_file_bytes: int) -> tuple[int, int]:
    """How many output files had to be right-sized, and how many were.

    A manifest that fills less than one file leaves nothing to choose, so it counts on neither side.

    Args:
        output_sizes: Bytes of the files of one manifest.
        target_file_bytes: How large an output file should be.

    Returns:
        Hits, and files that counted.
    """
    if sum(output_sizes) < (1 - SIZE_TOLERANCE) * target_file_bytes:
        return 0, 0
    return sum(is_right_sized(size, target_file_bytes) for size in output_sizes), len(output_sizes)
