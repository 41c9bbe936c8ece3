"""Into how many files an output is divided: the pure decision, for any size, and for estimates that are wrong."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.ledger.sizing import best_count, can_be_right_sized, closes_file, is_right_sized, leeway, planned_files

MIB = 1024 * 1024
TARGET = 128 * MIB
OUTPUTS = st.integers(1, 40 * TARGET)


@pytest.mark.parametrize(
    ("decoded_bytes", "ratio", "files"),
    [
        (0, 0.25, 1),
        (1, 0.25, 1),
        (512 * MIB, 0.25, 1),
        (1024 * MIB, 0.25, 2),
        (1210 * MIB, 0.25, 2),
        (1220 * MIB, 0.25, 3),
        (1024 * MIB, 0.0, 1),
        (1024 * MIB, 1.0, 8),
    ],
)
def test_planned_files(decoded_bytes: int, ratio: float, files: int) -> None:
    """Files are as many as bring each closest to the middle of the right sizes, at least one."""
    assert planned_files(decoded_bytes, ratio, TARGET) == files


def test_output_of_two_and_a_half_targets_makes_three_files() -> None:
    """Two files of 166 MB would be 1.23 times the target: those of 155 and 176 MB, as bins are, are not both right."""
    assert best_count(331e6, TARGET) == 3
    assert leeway(331e6, TARGET) > 1.09


@given(output=OUTPUTS)
def test_no_other_number_of_files_has_more_leeway(output: int) -> None:
    """For any output: also where no number of files is right, the sizes are as near to right as can be."""

    def of(files: int) -> float:
        share = output / files / TARGET
        return min(share / 0.75, 1.25 / share)

    most = max(of(files) for files in range(1, 60))
    assert of(best_count(output, TARGET)) == pytest.approx(most)
    assert leeway(output, TARGET) == pytest.approx(most)


@given(output=OUTPUTS)
def test_which_output_cannot_be_right(output: int) -> None:
    """Less than 0.75 targets, and what is between 1.25 and 1.5: nothing else."""
    targets = output / TARGET
    assert can_be_right_sized(output, TARGET) == (0.75 <= targets <= 1.25 or targets >= 1.5)


@given(output=st.integers(int(1.5 * TARGET), 40 * TARGET), error=st.floats(-0.04, 0.04))
def test_an_estimate_may_be_wrong(output: int, error: float) -> None:
    """From 1.6 targets on, files are right although the estimate is 4 % wrong; between 1.5 and 1.6, if it is right."""
    files = best_count(output * (1 + error), TARGET)
    assert is_right_sized(output // files, TARGET) or output < 1.6 * TARGET


@given(output=OUTPUTS, steps_per_target=st.integers(16, 100))
def test_a_file_that_turns_out_larger_is_divided(output: int, steps_per_target: int) -> None:
    """Whatever a bin was planned for: each file ends where it is closest to what makes all of them right."""
    steps = math.ceil(output / TARGET * steps_per_target)
    sizes, finished, current = [], 0, 0
    for step in range(1, steps + 1):
        grown, current = current, output * step // steps - finished
        if closes_file(current, finished, step / steps, TARGET, step_bytes=current - grown):
            sizes.append(current)
            finished, current = finished + current, 0
    sizes += [current] if current else []
    assert sum(sizes) == output
    if leeway(output, TARGET) > 1.05:
        assert all(is_right_sized(size, TARGET) for size in sizes)
