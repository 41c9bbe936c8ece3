"""Decides into how many files an output is divided, so that each of them has the right size. No I/O.

Files of one output are of like size, so only their number is to be chosen. With a tolerance of a quarter, files of the
right size can be made of 0.75 to 1.25 times the target, and of 1.5 times the target or more. Less is one small file;
what is in between is one file that is too large, or two that are too small, whichever is less so.
"""

import math

from compactor.ledger.sizing import SIZE_TOLERANCE

_MIDDLE = math.sqrt((1 - SIZE_TOLERANCE) * (1 + SIZE_TOLERANCE))
"""Targets of the size that may be as many times smaller as it may be larger: estimates are wrong by factors."""


def best_count(output_bytes: float, target_file_bytes: int) -> int:
    """The number of files of like size that are furthest from being too small or too large; at least one.

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
